import { closeSync, constants, fstatSync, openSync, type Stats, statSync } from 'node:fs';
import type { Problem } from '../model/collection.ts';
import { errnoName } from './fs/tree.ts';
import { kmsgDevice } from './kmsg-device.ts';
import { FILE_START, type FilePosition, KmsgFile } from './kmsg-file.ts';
import { kmsgProblem } from './kmsg-problems.ts';
import type { KmsgSource } from './kmsg-source.ts';

/** Between two attempts to open a log that could not be opened. */
const RETRY_MS = 1_000;
/** A file that is being replaced may be gone for so long before that is told. */
const REPLACED_WITHIN_MS = 1_000;
/** `/dev/kmsg` is character device 1:11. Linux Documentation/admin-guide/devices.txt. */
const KMSG = { major: 1, minor: 11 };

/** Keeps one log open: tries again after failures, and goes on in the file that took another one's place. */
export class KmsgOpener {
  readonly #path: string;
  readonly #monotonic: () => number;
  #source: KmsgSource | undefined;
  #position: FilePosition = FILE_START;
  #error: string | undefined;
  #retryAtMs = Number.NEGATIVE_INFINITY;
  #replacedAtMs: number | undefined;

  constructor(path: string, monotonic: () => number) {
    this.#path = path;
    this.#monotonic = monotonic;
  }

  /** The open log; undefined while there is none. */
  source(): KmsgSource | undefined {
    if (this.#source !== undefined || this.#monotonic() < this.#retryAtMs) return this.#source;
    try {
      this.#source = openLog(this.#path, this.#position, this.#monotonic);
      this.#error = undefined;
      this.#replacedAtMs = undefined;
    } catch (error) {
      this.#failedToOpen(errnoName(error));
    }
    return this.#source;
  }

  /** What a read of the open log ended with. */
  failed(error: string): void {
    if (this.#source instanceof KmsgFile) this.#position = this.#source.position;
    this.close();
    if (error === 'ESTALE') {
      this.#replacedAtMs = this.#monotonic();
    } else {
      this.#error = error;
      this.#retryAtMs = this.#monotonic() + RETRY_MS;
    }
  }

  problem(): Problem | undefined {
    return this.#error === undefined ? undefined : kmsgProblem(this.#path, this.#error);
  }

  close(): void {
    this.#source?.close();
    this.#source = undefined;
  }

  #failedToOpen(error: string): void {
    const now = this.#monotonic();
    if (error === 'ENOENT' && this.#replacedAtMs !== undefined && now - this.#replacedAtMs < REPLACED_WITHIN_MS) return;
    this.#error = error;
    this.#retryAtMs = now + RETRY_MS;
  }
}

/** Looks before it opens, since opening a terminal or a watchdog in the log's place has effects. */
function openLog(path: string, from: FilePosition, monotonic: () => number): KmsgSource {
  check(statSync(path));
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  try {
    const stats = fstatSync(fd);
    check(stats);
    return stats.isFile() ? new KmsgFile({ path, fd, from, monotonic }) : kmsgDevice(fd);
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

function check(stats: Stats): void {
  if (stats.isFile() || isKernelLog(stats)) return;
  const code = stats.isDirectory() ? 'EISDIR' : 'ENOTKMSG';
  throw Object.assign(new Error(code), { code });
}

function isKernelLog(stats: Stats): boolean {
  const major = (stats.rdev >> 8) & 0xfff;
  const minor = (stats.rdev & 0xff) | ((stats.rdev >> 12) & 0xfff00);
  return stats.isCharacterDevice() && major === KMSG.major && minor === KMSG.minor;
}
