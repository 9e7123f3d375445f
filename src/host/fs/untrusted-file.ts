import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { resolve as absolute } from 'node:path';
import { systemWords } from '../../errors.ts';
import { defined } from '../../model/defined.ts';
import type { Observe } from '../../model/observation.ts';
import type { Clock } from '../clock.ts';
import { SingleFlight } from '../single-flight.ts';
import { descriptorPath, type OpenedPath, openPath, RefusedLink } from './open-path.ts';
import { errnoName } from './tree.ts';

/** Why a file was not read. Closed set. */
export type FileProblemCode = 'absent' | 'not-a-file' | 'too-large' | 'unreadable' | 'timeout';

export type UntrustedRead =
  | {
      readonly text: string;
      /** Why others can change the file, as {@link OpenedPath.untrusted}. */
      readonly untrusted?: string;
      readonly problem?: undefined;
      readonly message?: undefined;
      readonly reason?: undefined;
    }
  | {
      readonly text?: undefined;
      readonly problem: FileProblemCode;
      /** The path and the reason. */
      readonly message: string;
      /** The reason alone. */
      readonly reason: string;
    };

export interface UntrustedFileLimits {
  readonly mostBytes: number;
  readonly timeoutMs: number;
}

/**
 * A file that other programs can replace: by a pipe, a device, a link to an endless file, or a file on a file system that hangs.
 *
 * {@link openPath} names the file and follows no link that others can put there; the type is checked before the file is opened for reading.
 * The read has a limit of bytes and of time. At most one read is in progress, so that a hanging file system blocks one thread of Node's pool and never more.
 */
export class UntrustedFile {
  readonly #path: string;
  readonly #limits: UntrustedFileLimits;
  readonly #clock: Clock;
  readonly #observe: Observe | undefined;
  readonly #reads = new SingleFlight(() => readWhole(this.#path, this.#limits.mostBytes));

  /** `observe`: that of a capture. */
  constructor(path: string, limits: UntrustedFileLimits, clock: Clock, { observe }: UntrustedFileDependencies = {}) {
    this.#observe = observe;
    this.#path = path;
    this.#limits = limits;
    this.#clock = clock;
  }

  /** True while a read has not returned. Such a read can keep the process from exiting. */
  get isPending(): boolean {
    return this.#reads.running !== undefined;
  }

  /** Never rejects, and resolves within the timeout. While an earlier read hangs, it waits for that read and starts no other. */
  read(): Promise<UntrustedRead> {
    const pending = this.#reads.join();
    return new Promise((resolve) => {
      const { timeoutMs } = this.#limits;
      let end = (result: UntrustedRead): void => {
        cancel();
        // What a read gives after its time does not count.
        end = () => {};
        observeRead(this.#observe, this.#path, result);
        resolve(result);
      };
      const cancel = this.#clock.after(timeoutMs, () =>
        end(failure('timeout', this.#path, `the read has not returned after ${timeoutMs} ms`)),
      );
      void pending.then((result) => end(result));
    });
  }
}

export interface UntrustedFileDependencies {
  readonly observe?: Observe | undefined;
}

const FLAGS = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY;
const PART_BYTES = 65_536;

/** Reads a regular file of at most `mostBytes`. Never rejects. It has no time limit: see {@link UntrustedFile}. */
export async function readUntrustedFile(path: string, mostBytes: number, observe?: Observe): Promise<UntrustedRead> {
  const read = await readWhole(path, mostBytes);
  observeRead(observe, path, read);
  return read;
}

function observeRead(observe: Observe | undefined, path: string, read: UntrustedRead): void {
  if (read.text !== undefined) observe?.({ kind: 'file', path, bytes: Buffer.from(read.text) });
  else if (read.problem === 'absent') observe?.({ kind: 'absent', path });
  else observe?.({ kind: 'error', path, errno: read.problem });
}

async function readWhole(path: string, mostBytes: number): Promise<UntrustedRead> {
  let opened: OpenedPath | undefined;
  try {
    opened = await openPath(absolute(path));
    if (!opened.stats.isFile()) return failure('not-a-file', path, 'not a regular file');
    const text = (await readOpened(opened, mostBytes))?.toString('utf8');
    const { untrusted } = opened;
    if (text === undefined) return failure('too-large', path, `larger than ${mostBytes} bytes`);
    return { text, ...defined({ untrusted }) };
  } catch (error) {
    return failed(path, error);
  } finally {
    await opened?.handle.close().catch(() => undefined);
  }
}

/** Bytes of an open regular file; undefined when they are more. The size of its metadata does not count: the file may grow meanwhile. */
export async function readOpened(opened: OpenedPath, mostBytes: number): Promise<Buffer | undefined> {
  const file = await open(descriptorPath(opened), FLAGS);
  try {
    const parts: Buffer[] = [];
    for (let length = 0; length <= mostBytes; ) {
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(PART_BYTES), 0, PART_BYTES, null);
      if (bytesRead === 0) return Buffer.concat(parts);
      parts.push(buffer.subarray(0, bytesRead));
      length += bytesRead;
    }
    return undefined;
  } finally {
    await file.close().catch(() => undefined);
  }
}

function failed(path: string, error: unknown): UntrustedRead {
  if (error instanceof RefusedLink) return failure('not-a-file', path, error.message);
  const errno = errnoName(error);
  return failure(errno === 'ENOENT' || errno === 'ENOTDIR' ? 'absent' : 'unreadable', path, systemWords(error));
}

const failure = (problem: FileProblemCode, path: string, reason: string): UntrustedRead => ({
  problem,
  reason,
  message: `${path}: ${reason}`,
});
