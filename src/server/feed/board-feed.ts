import type { Board } from '../../board/board.ts';
import type { DeviceView } from '../../board/device-view.ts';
import type { Clock } from '../../host/clock.ts';
import { seconds } from '../../model/duration.ts';

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

/** The connection of one client. */
export interface BoardSink {
  /** Sends bytes. Calls `done` when the operating system has taken them. */
  write(bytes: Buffer, done: () => void): void;
  /** Closes the connection at once. */
  cut(): void;
}

interface Client {
  readonly sink: BoardSink;
  isWriting: boolean;
  /** The client missed a change, so that it needs a full board. */
  isBehind: boolean;
  /** It took nothing for one heartbeat. */
  isStalled: boolean;
}

/**
 * The board for clients that follow it, as server-sent events: a full one first, then what changed. Each event is encoded once for all
 * clients. At most one event is being sent to a client: one that missed some gets a full board, and one that takes nothing is cut.
 * Without a client it does nothing.
 */
export class BoardFeed {
  readonly #parts: BoardFeedDependencies;
  readonly #clients = new Set<Client>();
  /** Text of each device that was sent. */
  #sent = new Map<string, string>();
  #full: Buffer | undefined;
  #sentAtMs = Number.NEGATIVE_INFINITY;
  #waiting: (() => void) | undefined;
  #stop: (() => void) | undefined;

  constructor(parts: BoardFeedDependencies) {
    this.#parts = parts;
  }

  get clients(): number {
    return this.#clients.size;
  }

  /** Sends the board at once, each change, and heartbeats. Returns a function that ends it. */
  follow(sink: BoardSink): () => void {
    if (this.#clients.size === 0) this.#start();
    const client: Client = { sink, isWriting: false, isBehind: false, isStalled: false };
    this.#clients.add(client);
    this.#write(client, this.#fullBoard());
    return () => {
      this.#clients.delete(client);
      if (this.#clients.size === 0) this.#end();
    };
  }

  #start(): void {
    const { subscribe, clock, heartbeatMs = BOARD_HEARTBEAT_MS } = this.#parts;
    this.#sent = textsOf(this.#parts.current());
    const unsubscribe = subscribe(() => this.#changed());
    let cancel: () => void;
    const wait = (): void => {
      cancel = clock.after(heartbeatMs, () => {
        wait();
        for (const client of [...this.#clients]) this.#beat(client);
      });
    };
    wait();
    this.#stop = () => {
      unsubscribe();
      cancel();
      this.#waiting?.();
      this.#waiting = undefined;
    };
  }

  #end(): void {
    this.#stop?.();
    this.#full = undefined;
    this.#sent = new Map();
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
    const event = eventOf('change', { ...head, devices: changed, removed }, board.sequence);
    for (const client of [...this.#clients]) {
      if (client.isWriting) client.isBehind = true;
      else this.#write(client, event);
    }
  }

  #beat(client: Client): void {
    if (!client.isWriting) this.#write(client, BEAT);
    else if (client.isStalled) client.sink.cut();
    else client.isStalled = true;
  }

  #fullBoard(): Buffer {
    if (this.#full !== undefined) return this.#full;
    const board = this.#parts.current();
    if (board === undefined) return BEAT;
    this.#full = eventOf('board', board, board.sequence);
    return this.#full;
  }

  #write(client: Client, bytes: Buffer): void {
    client.isWriting = true;
    client.sink.write(bytes, () => {
      client.isWriting = false;
      client.isStalled = false;
      if (!client.isBehind || !this.#clients.has(client)) return;
      client.isBehind = false;
      this.#write(client, this.#fullBoard());
    });
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

const textOf = ({ readAt: _readAt, ...device }: DeviceView): string => JSON.stringify(device);
