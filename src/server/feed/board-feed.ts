import type { Board } from '../../board/board.ts';
import type { DeviceView } from '../../board/device-view.ts';
import type { Clock } from '../../host/clock.ts';
import { seconds } from '../../model/duration.ts';
import { memoizedBy } from '../../model/readings.ts';
import { Broadcast, type Sink } from './broadcast.ts';

/** How often each client receives a message. */
export const BOARD_HEARTBEAT_MS = seconds(15);
/** Boards follow each other no faster. */
export const BOARD_SPACING_MS = 500;

export interface BoardFeedDependencies {
  subscribe(notify: () => void): () => void;
  current(): Board | undefined;
  readonly clock: Clock;
  readonly heartbeatMs?: number;
}

/**
 * The board for clients that follow it, as server-sent events: a full one first, then what changed. Each event is encoded once for all
 * clients.
 */
export class BoardFeed {
  readonly #parts: BoardFeedDependencies;
  readonly #broadcast: Broadcast<Buffer>;
  /** Text of each device that was sent. */
  #sent = new Map<string, string>();
  #full: Buffer | undefined;
  #sentAtMs = Number.NEGATIVE_INFINITY;
  #waiting: (() => void) | undefined;

  constructor(parts: BoardFeedDependencies) {
    this.#parts = parts;
    const { clock, heartbeatMs = BOARD_HEARTBEAT_MS } = parts;
    const full = (): Buffer => this.#fullBoard();
    this.#broadcast = new Broadcast({ clock, heartbeatMs, begin: () => this.#begin(), full, beat: () => this.#beat() });
  }

  get clients(): number {
    return this.#broadcast.clients;
  }

  follow(sink: Sink<Buffer>): () => void {
    return this.#broadcast.follow(sink);
  }

  #begin(): () => void {
    this.#sent = textsOf(this.#parts.current());
    const unsubscribe = this.#parts.subscribe(() => this.#changed());
    return () => {
      unsubscribe();
      this.#waiting?.();
      this.#waiting = undefined;
      this.#full = undefined;
      this.#sent = new Map();
    };
  }

  #changed(): void {
    if (this.#waiting !== undefined) return;
    const { clock } = this.#parts;
    const waitMs = this.#sentAtMs + BOARD_SPACING_MS - clock.monotonic();
    if (waitMs <= 0) this.#send();
    else
      this.#waiting = clock.after(waitMs, () => {
        this.#waiting = undefined;
        this.#send();
      });
  }

  #send(): void {
    const board = this.#parts.current();
    if (board === undefined) return;
    this.#sentAtMs = this.#parts.clock.monotonic();
    const before = this.#sent;
    this.#sent = textsOf(board);
    this.#full = undefined;
    const { devices, ...head } = board;
    const changed = devices.filter(({ key }) => this.#sent.get(key) !== before.get(key));
    const removed = [...before.keys()].filter((key) => !this.#sent.has(key));
    this.#broadcast.send(eventOf('change', { ...head, devices: changed, removed }, board.sequence));
  }

  /** A fault of the agent comes without a new snapshot: each heartbeat tells it. */
  #beat(): { readonly message: Buffer; readonly isNews: boolean } {
    const isNews = this.#parts.current()?.fault !== undefined;
    return { message: isNews ? this.#fullBoard() : BEAT, isNews };
  }

  #fullBoard(): Buffer {
    const board = this.#parts.current();
    if (board === undefined) return BEAT;
    if (this.#full === undefined || board.fault !== undefined) this.#full = eventOf('board', board, board.sequence);
    return this.#full;
  }
}

/** A comment, which no client sees as an event. */
const BEAT = Buffer.from(': heartbeat\n\n');

const eventOf = (name: string, data: object, id: number): Buffer =>
  Buffer.from(`event: ${name}\nid: ${id}\ndata: ${JSON.stringify(data)}\n\n`);

/** The time of the read differs at each read. Alone it is no change. */
function textsOf(board: Board | undefined): Map<string, string> {
  return new Map(board?.devices.map((device) => [device.key, textOf(device)]) ?? []);
}

const textOf = memoizedBy(({ readAt: _readAt, ...device }: DeviceView): string => JSON.stringify(device));
