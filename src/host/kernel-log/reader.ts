import { readFileSync, statSync } from 'node:fs';
import type { Problem } from '../../model/collection.ts';
import type { Observe } from '../../model/observation.ts';
import { atEach, type Clock } from '../clock.ts';
import { errnoName } from '../fs/tree.ts';
import { capturedError } from '../recorded/replayed-tree.ts';
import { kmsgProblem, type ReadFailure } from './problems.ts';
import { endsBeforeName, type KmsgRecord, parseKmsgRecord, recordsIn } from './record.ts';
import { RelayedLog } from './relayed-log.ts';
import { onceInTurn } from './shared.ts';
import { DeviceLog, isKernelLog, type LogSource, notALog } from './source.ts';

export interface KmsgMessage extends KmsgRecord {
  /**
   * Wall clock. For a record logged while the reader ran, the time of arrival, because the kernel's clock drifts. For an older record,
   * the time computed from the boot time; absent when the boot time is unknown.
   */
  readonly timeMs?: number;
  /** False for records that were in the log before the reader first reached its end. */
  readonly live: boolean;
}

export interface KmsgOptions {
  /** `/dev/kmsg`, a regular file in its format to which records are appended, or the socket of a process that passes the log on. */
  readonly path: string;
  readonly clock: Clock;
  /** Wall clock of the machine's boot, see `parseBootTimeMs`. */
  readonly bootTimeMs?: number | undefined;
  /** Takes each record, that the log could be read, and why it cannot. */
  readonly observe?: Observe | undefined;
  /** Called during `poll`, in the order of the log. */
  onRecord(message: KmsgMessage): void;
  /** Called before the first record behind lost ones. Not for the gaps of a file as it was found: somebody may have selected its records. */
  onLost?(): void;
}

export interface KmsgStatus {
  /** Present while the log cannot be read; its code is one of `kmsgProblems`. */
  readonly problem?: Problem;
  readonly records: number;
  /** Number of records that were overwritten or too large, counted from gaps in the sequence numbers. */
  readonly lost: number;
  /** Number of entries that are not valid records. */
  readonly malformed: number;
}

/** Reads the kernel log of this boot, starting at its oldest record. */
export interface KmsgReader {
  /** Reads all available records without blocking. The first call opens the log. After a failure the next call tries again. */
  poll(): void;
  /** Starts polling and calls `onPoll` after each poll; returns a function that stops it. */
  follow(onPoll?: () => void): () => void;
  status(): KmsgStatus;
  /** Closes the log and stops polling. */
  close(): void;
}

/** Poll interval. Polling is needed because inotify reports no events for a character device. */
const POLL_MS = 1_000;
/** The same for a log that was never readable, as in a container without it. */
const UNREAD_POLL_MS = 10_000;
/** Limit of records per poll. A full ring buffer of the largest usual size, 16 MiB, has fewer records. */
const RECORDS_PER_POLL = 160_000;
/** A piece of a message can follow so much later: its process may wait for a processor. */
const PIECES_WITHIN_USEC = 10_000_000;

const parsed = onceInTurn(parseKmsgRecord);
const split = onceInTurn(recordsIn);

export function openKmsg(options: KmsgOptions): KmsgReader {
  return new Reader(options);
}

class Reader implements KmsgReader {
  readonly #options: KmsgOptions;
  /** The device or the socket while it is open. */
  #source: LogSource | undefined;
  /** The number of the latest record since the source was opened. */
  #openSeq: number | undefined;
  /** Complete lines of the file that were already delivered. */
  #givenText = '';
  #lastSeq: number | undefined;
  #isLive = false;
  /** Until this time of the kernel a piece can be a mere name. */
  #namesUntilUsec = -1;
  #failure: ReadFailure | undefined;
  #records = 0;
  #lost = 0;
  #malformed = 0;
  #stop = (): void => {};

  constructor(options: KmsgOptions) {
    this.#options = options;
  }

  poll(): void {
    const hadSource = this.#source !== undefined;
    this.#failure = this.#read();
    // A process that passes the log on was replaced; the next one may be there already.
    if (hadSource && this.#source === undefined && this.#failure !== undefined) this.#failure = this.#read();
    const { path, observe } = this.#options;
    if (this.#failure === undefined) observe?.({ kind: 'file', path, bytes: new Uint8Array() });
    else observe?.({ kind: 'error', path, errno: this.#failure.errno });
  }

  follow(onPoll?: () => void): () => void {
    this.#stop();
    let isFollowing = true;
    const periodMs = (): number => (this.#failure !== undefined && this.#records === 0 ? UNREAD_POLL_MS : POLL_MS);
    const end = atEach(this.#options.clock, periodMs, () => {
      this.poll();
      // The poll itself may have stopped the polling.
      if (isFollowing) onPoll?.();
    });
    this.#stop = () => {
      isFollowing = false;
      end();
    };
    return this.#stop;
  }

  status(): KmsgStatus {
    const problem = this.#problem();
    return { ...(problem && { problem }), records: this.#records, lost: this.#lost, malformed: this.#malformed };
  }

  close(): void {
    this.#stop();
    this.#closeSource();
  }

  #problem(): Problem | undefined {
    const { path } = this.#options;
    if (this.#failure !== undefined) return kmsgProblem(path, this.#failure);
    if (this.#records > 0 || this.#malformed === 0) return undefined;
    return { code: 'kmsg-malformed', message: `${path} holds no record of the kernel log` };
  }

  #read(): ReadFailure | undefined {
    try {
      const stats = statSync(this.#options.path);
      if (stats.isFile()) this.#readFile();
      else if (isKernelLog(stats)) return this.#readSource(() => new DeviceLog(this.#options.path));
      else if (stats.isSocket()) return this.#readSource(() => new RelayedLog(this.#options.path));
      else throw notALog(stats);
      return undefined;
    } catch (error) {
      this.#closeSource();
      return { errno: errnoName(error), isTold: (error as { isTold?: boolean }).isTold === true };
    }
  }

  #readSource(open: () => LogSource): ReadFailure | undefined {
    this.#source ??= open();
    const source = this.#source;
    source.begin?.();
    const givenThrough = this.#lastSeq ?? -1;
    for (let count = 0; count < RECORDS_PER_POLL && this.#source !== undefined; count += 1) {
      const next = source.next();
      if (next === 'late') return { errno: 'ETIMEDOUT', isTold: false };
      if (next === 'end') {
        this.#isLive = true;
        return this.#isAnotherLog() ? { errno: 'ESTALE', isTold: false } : undefined;
      }
      this.#take(next.toString('utf8'), givenThrough);
    }
    return undefined;
  }

  /**
   * An opened log begins with its oldest record and so has the numbers that were given, unless it is another one. Without this look, all of its
   * records would pass for known ones. The next poll reads it as a new log.
   */
  #isAnotherLog(): boolean {
    if (this.#openSeq === undefined || this.#lastSeq === undefined || this.#openSeq >= this.#lastSeq) return false;
    this.#lastSeq = undefined;
    this.#closeSource();
    return true;
  }

  /** Reads the file from its begin and delivers the lines that were not delivered before. Other content counts as a new log. */
  #readFile(): void {
    const text = readFileSync(this.#options.path, 'utf8');
    const error = capturedError(text);
    if (error !== undefined) throw Object.assign(new Error(), { code: error });
    const lines = text.slice(0, text.lastIndexOf('\n') + 1);
    // When the file is a prefix of the delivered lines, it is being rewritten and its next content is still unknown.
    if (!this.#givenText.startsWith(lines)) {
      const added = lines.startsWith(this.#givenText) ? lines.slice(this.#givenText.length) : lines;
      this.#givenText = lines;
      for (const record of split(added)) this.#take(record);
    }
    this.#isLive = true;
  }

  /** Parses, counts and dates a record, and delivers it unless its sequence number was already delivered. */
  #take(text: string, givenThrough = -1): void {
    const record = parsed(text);
    if (record === undefined) {
      this.#malformed += 1;
      return;
    }
    this.#openSeq = record.seq;
    if (record.seq <= givenThrough) return;
    this.#options.observe?.({ kind: 'kernel-log', path: this.#options.path, text });
    this.#records += 1;
    // A number that does not grow starts a new sequence: another file, or a file written by hand.
    const missing = this.#lastSeq === undefined ? 0 : Math.max(0, record.seq - this.#lastSeq - 1);
    this.#lastSeq = record.seq;
    this.#lost += missing;
    if (missing > 0 && (this.#isLive || this.#source !== undefined)) this.#options.onLost?.();
    const timeMs = this.#timeOf(record);
    const origin = this.#originOf(record);
    this.#options.onRecord({ ...record, origin, live: this.#isLive, ...(timeMs !== undefined && { timeMs }) });
  }

  #originOf(record: KmsgRecord): KmsgRecord['origin'] {
    const isName = record.origin === 'piece' && record.timeUsec <= this.#namesUntilUsec;
    if (endsBeforeName(record)) this.#namesUntilUsec = record.timeUsec + PIECES_WITHIN_USEC;
    return isName ? 'about-process' : record.origin;
  }

  #timeOf({ timeUsec }: KmsgRecord): number | undefined {
    const { clock, bootTimeMs } = this.#options;
    if (this.#isLive) return clock.now();
    return bootTimeMs === undefined ? undefined : Math.min(clock.now(), bootTimeMs + Math.floor(timeUsec / 1_000));
  }

  /** Records of the time in which the source is closed arrive late: their time is not now, and another process may have the PID by then. */
  #closeSource(): void {
    this.#source?.close();
    if (this.#source !== undefined) this.#isLive = false;
    this.#source = undefined;
    this.#openSeq = undefined;
  }
}
