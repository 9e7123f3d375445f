import { closeSync, constants, openSync, readFileSync, readSync, type Stats, statSync } from 'node:fs';
import type { Problem } from '../../model/collection.ts';
import { atEach, type Clock } from '../clock.ts';
import { errnoName } from '../fs/tree.ts';
import { kmsgProblem } from './problems.ts';
import { type KmsgRecord, parseKmsgRecord, recordsIn } from './record.ts';

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
  /** Reads what is there now, without ever waiting. Nothing is opened before the first call. A failure is tried again at the next. */
  poll(): void;
  /** Polls by itself from now on, `onPoll` after each; returns the way to stop. */
  follow(onPoll?: () => void): () => void;
  status(): KmsgStatus;
  /** Also stops following. */
  close(): void;
}

/** Time between two looks. A timer rather than an event: inotify tells nothing of a character device. */
const POLL_MS = 1_000;
/** The kernel's own bound for one record with everything around it. A smaller buffer is answered with EINVAL. */
const RECORD_BYTES = 8_192;
/** Of one poll. A full ring of the largest usual size, 16 MiB, has fewer. */
const RECORDS_PER_POLL = 160_000;
/** Records that do not fit come one at a time; as many in a row come from something that is no kernel log. */
const REFUSALS_IN_A_ROW = 64;
/** `/dev/kmsg` is character device 1:11. Linux Documentation/admin-guide/devices.txt. */
const KMSG = { major: 1, minor: 11 };

export function openKmsg(options: KmsgOptions): KmsgReader {
  return new Reader(options);
}

class Reader implements KmsgReader {
  readonly #options: KmsgOptions;
  /** Of the device, while it is open. */
  #fd: number | undefined;
  /** Complete lines of the file that were given. */
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
      // Looked at before it is opened: opening a terminal or a watchdog in the log's place has effects.
      const stats = statSync(this.#options.path);
      if (isKernelLog(stats)) this.#readDevice();
      else if (stats.isFile()) this.#readFile();
      else throw Object.assign(new Error(), { code: stats.isDirectory() ? 'EISDIR' : 'ENOTKMSG' });
      this.#errno = undefined;
    } catch (error) {
      this.#errno = errnoName(error);
      this.#closeDevice();
    }
  }

  follow(onPoll?: () => void): () => void {
    this.#stop();
    let isFollowing = true;
    const end = atEach(this.#options.clock, POLL_MS, () => {
      this.poll();
      // It may have been stopped from within the poll.
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
   * One read gives one record, the oldest kept one first; EAGAIN says that there is no more. Opened anew, the device begins at its
   * oldest record again, and the sequence numbers tell what was given before. Calls are synchronous: without O_NONBLOCK a read
   * would hold a thread, and keep the process from ending.
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
        // EPIPE: overwritten before it was read. EINVAL: larger than the buffer. In both cases the next read is at a record that
        // is there, whose sequence number tells how many were lost.
        refused = errno === 'EINVAL' ? refused + 1 : 0;
        if ((errno !== 'EPIPE' && errno !== 'EINVAL' && errno !== 'EINTR') || refused > REFUSALS_IN_A_ROW) throw error;
      }
    }
  }

  /** Reads the file anew and gives what it has beyond what was given. Any other content begins a new log. */
  #readFile(): void {
    const text = readFileSync(this.#options.path, 'utf8');
    const lines = text.slice(0, text.lastIndexOf('\n') + 1);
    // Lines that are fewer than before but the same: somebody is writing the file anew, and how it goes on cannot be told yet.
    if (!this.#givenText.startsWith(lines)) {
      const added = lines.startsWith(this.#givenText) ? lines.slice(this.#givenText.length) : lines;
      this.#givenText = lines;
      for (const record of recordsIn(added)) this.#take(record);
    }
    this.#isLive = true;
  }

  /** Parses, counts and dates a record, and gives it unless its number is one of those that were given. */
  #take(text: string, givenThrough = -1): void {
    const record = parseKmsgRecord(text);
    if (record === undefined) {
      this.#malformed += 1;
      return;
    }
    if (record.seq <= givenThrough) return;
    this.#records += 1;
    // A number that does not grow begins a new count: another file, or one written by hand.
    if (this.#lastSeq !== undefined && record.seq > this.#lastSeq + 1) this.#lost += record.seq - this.#lastSeq - 1;
    this.#lastSeq = record.seq;
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
