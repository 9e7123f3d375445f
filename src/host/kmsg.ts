import type { Problem } from '../model/collection.ts';
import { atEach, type Clock } from './clock.ts';
import { KmsgOpener } from './kmsg-open.ts';
import { type KmsgRecord, parseKmsgRecord } from './kmsg-record.ts';
import type { KmsgSource } from './kmsg-source.ts';

export interface KmsgMessage extends KmsgRecord {
  /**
   * Wall clock. Of arrival for what was logged while the reader ran, since the kernel's clock drifts from it; for older ones
   * counted from boot, and absent when that is not known.
   */
  readonly timeMs?: number;
  /** False for what was in the log before the reader had caught up with it for the first time. */
  readonly live: boolean;
}

export interface KmsgOptions {
  /** `/dev/kmsg`, or an ordinary file in its format to which records are appended. */
  readonly path: string;
  readonly clock: Clock;
  /** Wall clock of the machine's boot, see `parseBootTimeMs`. */
  readonly bootTimeMs?: number | undefined;
  /** Called from within `poll`, in the order of the log. */
  onRecord(message: KmsgMessage): void;
}

export interface KmsgStatus {
  /** Present while the log cannot be read; its code is one of `kmsgProblems`. */
  readonly problem?: Problem;
  readonly records: number;
  /** Records that were gone or too large when they were to be read, by gaps in the sequence numbers. */
  readonly lost: number;
  /** What was there and is no record. */
  readonly malformed: number;
}

/** Reads the kernel log of this boot from its oldest kept record on. */
export interface KmsgReader {
  /** Reads all that is there now, without ever waiting. The first call, or the first after a failure, opens the log. */
  poll(): void;
  /** Polls by itself from now on, `onPoll` after each; returns the way to stop. */
  follow(onPoll?: () => void): () => void;
  status(): KmsgStatus;
  /** Also stops following. */
  close(): void;
}

/**
 * Time between two looks. A timer rather than an event: inotify tells nothing of a character device, and a waiting read would hold
 * a thread. One look at a silent log costs 7 to 20 µs, waking the thread for it twenty times as much.
 */
const POLL_MS = 1_000;
/** Bounds one poll to 160,000 records or 128 MiB. */
const PASSES_PER_POLL = 8;

/** Nothing is opened before the first poll. */
export function openKmsg(options: KmsgOptions): KmsgReader {
  const { path, clock } = options;
  const intake = new Intake(options);
  const opener = new KmsgOpener(path, () => clock.monotonic());
  let stopFollowing = (): void => {};

  const poll = (): void => {
    for (let pass = 0; pass < PASSES_PER_POLL; pass++) {
      const source = opener.source();
      if (source === undefined) return;
      const end = intake.readFrom(source);
      if (end.state === 'drained') return;
      if (end.state === 'failed') opener.failed(end.error);
    }
  };

  const follow = (onPoll?: () => void): (() => void) => {
    stopFollowing();
    let isFollowing = true;
    const end = atEach(clock, POLL_MS, () => {
      poll();
      // It may have been stopped from within the poll.
      if (isFollowing) onPoll?.();
    });
    stopFollowing = () => {
      isFollowing = false;
      end();
    };
    return stopFollowing;
  };

  return {
    poll,
    follow,
    status: () => {
      const problem = opener.problem() ?? intake.problem();
      const { records, lost, malformed } = intake;
      return { ...(problem && { problem }), records, lost, malformed };
    },
    close: () => {
      stopFollowing();
      opener.close();
    },
  };
}

/** Parses, counts and dates what the log gives. */
class Intake {
  records = 0;
  lost = 0;
  malformed = 0;
  readonly #options: KmsgOptions;
  #source: KmsgSource | undefined;
  #lastSeq: number | undefined;
  /** Records of the device up to this one were given before it was opened anew. */
  #knownThrough = -1;
  #live = false;

  constructor(options: KmsgOptions) {
    this.#options = options;
  }

  readFrom(source: KmsgSource): ReturnType<KmsgSource['read']> {
    if (source !== this.#source) this.#knownThrough = source.isDevice && this.#source?.isDevice ? (this.#lastSeq ?? -1) : -1;
    this.#source = source;
    const end = source.read((text) => this.#take(text));
    if (end.state === 'drained') this.#live = true;
    return end;
  }

  problem(): Problem | undefined {
    if (this.records > 0 || this.malformed === 0) return undefined;
    return { code: 'kmsg-malformed', message: `${this.#options.path} holds no record of the kernel log` };
  }

  #take(text: string): void {
    const record = parseKmsgRecord(text);
    if (record === undefined) {
      this.malformed += 1;
      return;
    }
    if (record.seq <= this.#knownThrough) return;
    this.records += 1;
    // A number that does not grow begins a new count: another file, or one written by hand.
    if (this.#lastSeq !== undefined && record.seq > this.#lastSeq + 1) this.lost += record.seq - this.#lastSeq - 1;
    this.#lastSeq = record.seq;
    const timeMs = this.#timeOf(record);
    this.#options.onRecord({ ...record, live: this.#live, ...(timeMs !== undefined && { timeMs }) });
  }

  #timeOf({ timeUsec }: KmsgRecord): number | undefined {
    const { clock, bootTimeMs } = this.#options;
    if (this.#live) return clock.now();
    return bootTimeMs === undefined ? undefined : Math.min(clock.now(), bootTimeMs + Math.floor(timeUsec / 1_000));
  }
}
