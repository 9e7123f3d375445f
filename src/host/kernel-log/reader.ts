import { closeSync, constants, openSync, readFileSync, readSync, type Stats, statSync } from 'node:fs';
import type { Problem } from '../../model/collection.ts';
import type { Observe } from '../../model/observation.ts';
import { atEach, type Clock } from '../clock.ts';
import { errnoName } from '../fs/tree.ts';
import { capturedError } from '../recorded/replayed-tree.ts';
import { kmsgProblem } from './problems.ts';
import { type KmsgRecord, parseKmsgRecord, recordsIn } from './record.ts';

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
  /** `/dev/kmsg`, or a regular file in its format to which records are appended. */
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
/** The kernel's limit for one record with its header. With a smaller buffer the read fails with EINVAL. */
const RECORD_BYTES = 8_192;
/** Limit of records per poll. A full ring buffer of the largest usual size, 16 MiB, has fewer records. */
const RECORDS_PER_POLL = 160_000;
/** Limit of consecutive EINVAL failures. Records that are too large occur one at a time, so more failures mean that it is no kernel log. */
const REFUSALS_IN_A_ROW = 64;
/** `/dev/kmsg` is character device 1:11. Linux Documentation/admin-guide/devices.txt. */
const KMSG = { major: 1, minor: 11 };

export function openKmsg(options: KmsgOptions): KmsgReader {
  return new Reader(options);
}

class Reader implements KmsgReader {
  readonly #options: KmsgOptions;
  /** Descriptor of the device while it is open. */
  #fd: number | undefined;
  /** Complete lines of the file that were already delivered. */
  #givenText = '';
  #lastSeq: number | undefined;
  #isLive = false;
  #errno: string | undefined;
  #records = 0;
  #lost = 0;
  #malformed = 0;
  #stop = (): void => {};

  constructor(options: KmsgOptions) {
    this.#options = options;
  }

  poll(): void {
    try {
      // Checks the type first, because opening a terminal or a watchdog device has side effects.
      const stats = statSync(this.#options.path);
      if (isKernelLog(stats)) this.#readDevice();
      else if (stats.isFile()) this.#readFile();
      else throw Object.assign(new Error(), { code: stats.isDirectory() ? 'EISDIR' : 'ENOTKMSG' });
      this.#errno = undefined;
      this.#options.observe?.({ kind: 'file', path: this.#options.path, bytes: new Uint8Array() });
    } catch (error) {
      this.#errno = errnoName(error);
      this.#options.observe?.({ kind: 'error', path: this.#options.path, errno: this.#errno });
      this.#closeDevice();
    }
  }

  follow(onPoll?: () => void): () => void {
    this.#stop();
    let isFollowing = true;
    const end = atEach(this.#options.clock, POLL_MS, () => {
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
    this.#closeDevice();
  }

  #problem(): Problem | undefined {
    const { path } = this.#options;
    if (this.#errno !== undefined) return kmsgProblem(path, this.#errno);
    if (this.#records > 0 || this.#malformed === 0) return undefined;
    return { code: 'kmsg-malformed', message: `${path} holds no record of the kernel log` };
  }

  /**
   * One read returns one record, the oldest first; EAGAIN means that there are no more. After a reopen the device starts at its oldest
   * record again, and the sequence numbers show which records were already delivered. Calls are synchronous and use O_NONBLOCK:
   * otherwise a read would block a thread and keep the process from ending.
   */
  #readDevice(): void {
    this.#fd ??= openSync(this.#options.path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
    const givenThrough = this.#lastSeq ?? -1;
    const buffer = Buffer.allocUnsafe(RECORD_BYTES);
    let refused = 0;
    for (let count = 0; count < RECORDS_PER_POLL && this.#fd !== undefined; count += 1) {
      try {
        const length = readSync(this.#fd, buffer, 0, buffer.length, null);
        refused = 0;
        this.#take(buffer.toString('utf8', 0, length), givenThrough);
      } catch (error) {
        const errno = errnoName(error);
        if (errno === 'EAGAIN') {
          this.#isLive = true;
          return;
        }
        // EPIPE: the record was overwritten. EINVAL: the record is larger than the buffer. In both cases the next read returns an
        // existing record, and its sequence number shows how many were lost.
        refused = errno === 'EINVAL' ? refused + 1 : 0;
        if ((errno !== 'EPIPE' && errno !== 'EINVAL' && errno !== 'EINTR') || refused > REFUSALS_IN_A_ROW) throw error;
      }
    }
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
      for (const record of recordsIn(added)) this.#take(record);
    }
    this.#isLive = true;
  }

  /** Parses, counts and dates a record, and delivers it unless its sequence number was already delivered. */
  #take(text: string, givenThrough = -1): void {
    const record = parseKmsgRecord(text);
    if (record === undefined) {
      this.#malformed += 1;
      return;
    }
    if (record.seq <= givenThrough) return;
    this.#options.observe?.({ kind: 'kernel-log', path: this.#options.path, text });
    this.#records += 1;
    // A number that does not grow starts a new sequence: another file, or a file written by hand.
    const missing = this.#lastSeq === undefined ? 0 : Math.max(0, record.seq - this.#lastSeq - 1);
    this.#lastSeq = record.seq;
    this.#lost += missing;
    if (missing > 0 && (this.#isLive || this.#fd !== undefined)) this.#options.onLost?.();
    const timeMs = this.#timeOf(record);
    this.#options.onRecord({ ...record, live: this.#isLive, ...(timeMs !== undefined && { timeMs }) });
  }

  #timeOf({ timeUsec }: KmsgRecord): number | undefined {
    const { clock, bootTimeMs } = this.#options;
    if (this.#isLive) return clock.now();
    return bootTimeMs === undefined ? undefined : Math.min(clock.now(), bootTimeMs + Math.floor(timeUsec / 1_000));
  }

  #closeDevice(): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
  }
}

function isKernelLog(stats: Stats): boolean {
  const major = (stats.rdev >> 8) & 0xfff;
  const minor = (stats.rdev & 0xff) | ((stats.rdev >> 12) & 0xfff00);
  return stats.isCharacterDevice() && major === KMSG.major && minor === KMSG.minor;
}
