import { closeSync, constants, fstatSync, openSync, readSync, type Stats, statSync } from 'node:fs';
import { errnoName } from '../fs/tree.ts';
import { recordsIn } from './record.ts';

/** `end`: every record so far was given. `late`: there may be more, and whoever passes them on does not answer now. */
type LogPause = 'end' | 'late';

/** An open kernel log, which begins at its oldest record. */
export interface LogSource {
  /** Called before the reads of one poll. */
  begin?(): void;
  /** The bytes of the next record, valid until the next call. Does not block. Throws an error with the code of an errno. */
  next(): Buffer | LogPause;
  close(): void;
}

/** The kernel's limit for one record with its header. With a smaller buffer the read fails with EINVAL. */
export const RECORD_BYTES = 8_192;
/** Limit of consecutive EINVAL failures. Records that are too large occur one at a time, so more failures mean that it is no kernel log. */
const REFUSALS_IN_A_ROW = 64;
/** `/dev/kmsg` is character device 1:11. Linux Documentation/admin-guide/devices.txt. */
const KMSG = { major: 1, minor: 11 };

/**
 * The device. One read returns one record, the oldest first; EAGAIN means that there are no more. After a reopen the device starts at its
 * oldest record again, and the sequence numbers show which records were already delivered. Calls are synchronous and use O_NONBLOCK:
 * otherwise a read would block a thread and keep the process from ending.
 */
export class DeviceLog implements LogSource {
  readonly #fd: number;
  readonly #buffer = Buffer.allocUnsafe(RECORD_BYTES);

  constructor(path: string) {
    this.#fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  }

  next(): Buffer | LogPause {
    for (let refused = 0; ; ) {
      try {
        return this.#buffer.subarray(0, readSync(this.#fd, this.#buffer, 0, RECORD_BYTES, null));
      } catch (error) {
        const errno = errnoName(error);
        if (errno === 'EAGAIN') return 'end';
        // EPIPE: the record was overwritten. EINVAL: the record is larger than the buffer. In both cases the next read returns an
        // existing record, and its sequence number shows how many were lost.
        refused = errno === 'EINVAL' ? refused + 1 : 0;
        if ((errno !== 'EPIPE' && errno !== 'EINVAL' && errno !== 'EINTR') || refused > REFUSALS_IN_A_ROW) throw error;
      }
    }
  }

  close(): void {
    closeSync(this.#fd);
  }
}

/** A regular file in the format of the device, to which records are appended. */
class FileLog implements LogSource {
  readonly #fd: number;
  readonly #buffer = Buffer.allocUnsafe(65_536);
  #at = 0;
  #rest = '';
  #records: string[] = [];

  constructor(path: string) {
    this.#fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  }

  next(): Buffer | LogPause {
    while (this.#records.length === 0) {
      if (fstatSync(this.#fd).size < this.#at) throw Object.assign(new Error(), { code: 'ESTALE' });
      const length = readSync(this.#fd, this.#buffer, 0, this.#buffer.length, this.#at);
      if (length === 0) return 'end';
      this.#at += length;
      const text = this.#rest + this.#buffer.toString('latin1', 0, length);
      const end = text.lastIndexOf('\n') + 1;
      this.#rest = text.slice(end);
      this.#records = recordsIn(text.slice(0, end)).reverse();
    }
    return Buffer.from((this.#records.pop() as string).slice(0, RECORD_BYTES), 'latin1');
  }

  close(): void {
    closeSync(this.#fd);
  }
}

/** Opens the device, or a file in its format. Checks the type first, because opening a terminal or a watchdog device has side effects. */
export function openLog(path: string): LogSource {
  const stats = statSync(path);
  if (isKernelLog(stats)) return new DeviceLog(path);
  if (stats.isFile()) return new FileLog(path);
  throw notALog(stats);
}

/** `ENOTKMSG` is not from the system: the path is neither the log nor a file. */
export const notALog = (stats: Stats): Error => Object.assign(new Error(), { code: stats.isDirectory() ? 'EISDIR' : 'ENOTKMSG' });

export function isKernelLog(stats: Stats): boolean {
  const major = (stats.rdev >> 8) & 0xfff;
  const minor = (stats.rdev & 0xff) | ((stats.rdev >> 12) & 0xfff00);
  return stats.isCharacterDevice() && major === KMSG.major && minor === KMSG.minor;
}
