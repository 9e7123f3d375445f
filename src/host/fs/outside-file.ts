import { constants, type FileHandle, open, stat } from 'node:fs/promises';
import type { Clock } from '../clock.ts';
import { errnoName } from './tree.ts';

/** Why a file was not read. Closed set. */
export type FileProblemCode = 'absent' | 'not-a-file' | 'too-large' | 'unreadable' | 'timeout';

export type OutsideRead =
  | { readonly text: string; readonly problem?: undefined }
  | { readonly text?: undefined; readonly problem: FileProblemCode; readonly message: string };

export interface OutsideFileLimits {
  readonly mostBytes: number;
  readonly timeoutMs: number;
}

/**
 * A file that other programs can replace: by a pipe, a device, a link to an endless file, or a file on a file system that hangs.
 *
 * The type is checked before the file is opened, and once more on the open file. The read has a limit of bytes and of time. At most one
 * read is in progress, so that a hanging file system blocks one thread of Node's pool and never more.
 */
export class OutsideFile {
  readonly #path: string;
  readonly #limits: OutsideFileLimits;
  readonly #clock: Clock;
  #pending: Promise<OutsideRead> | undefined;

  constructor(path: string, limits: OutsideFileLimits, clock: Clock) {
    this.#path = path;
    this.#limits = limits;
    this.#clock = clock;
  }

  /** True while a read has not returned. Such a read can keep the process from exiting. */
  get isPending(): boolean {
    return this.#pending !== undefined;
  }

  /** Never rejects, and resolves within the timeout. While an earlier read hangs, it waits for that read and starts no other. */
  read(): Promise<OutsideRead> {
    this.#pending ??= readRegular(this.#path, this.#limits.mostBytes).finally(() => {
      this.#pending = undefined;
    });
    const pending = this.#pending;
    return new Promise((resolve) => {
      const { timeoutMs } = this.#limits;
      const cancel = this.#clock.after(timeoutMs, () => {
        resolve({ problem: 'timeout', message: `${this.#path}: the read has not returned after ${timeoutMs} ms` });
      });
      void pending.then((result) => {
        cancel();
        resolve(result);
      });
    });
  }
}

async function readRegular(path: string, mostBytes: number): Promise<OutsideRead> {
  let file: FileHandle | undefined;
  try {
    if (!(await stat(path)).isFile()) return notAFile(path);
    // Another file may have taken the name since: without O_NONBLOCK, opening a pipe waits for a writer.
    file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
    if (!(await file.stat()).isFile()) return notAFile(path);
    return await readAll(file, path, mostBytes);
  } catch (error) {
    const errno = errnoName(error);
    if (errno === 'ENOENT' || errno === 'ENOTDIR') return { problem: 'absent', message: `${path} does not exist` };
    return { problem: 'unreadable', message: `${path}: ${errno}` };
  } finally {
    await file?.close().catch(() => undefined);
  }
}

/** The size that `stat` reports is not used: the file may grow while it is read. */
async function readAll(file: FileHandle, path: string, mostBytes: number): Promise<OutsideRead> {
  const parts: Buffer[] = [];
  let length = 0;
  for (;;) {
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(65_536), 0, 65_536, null);
    if (bytesRead === 0) return { text: Buffer.concat(parts).toString('utf8') };
    length += bytesRead;
    if (length > mostBytes) return { problem: 'too-large', message: `${path} has more than ${mostBytes} bytes` };
    parts.push(buffer.subarray(0, bytesRead));
  }
}

function notAFile(path: string): OutsideRead {
  return { problem: 'not-a-file', message: `${path} is not a regular file` };
}
