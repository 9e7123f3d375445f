import { closeSync, openSync, readFileSync, readSync, readvSync } from 'node:fs';
import type { StepPlace } from './step-guard.ts';

/** Descriptors reserved for sockets, threads, pipes and short-lived files. */
const RESERVE = 256;
const MOST = 65_536;
/** A full cache closes the files that were not read for this time: their devices or processes have ended. */
const IDLE_MS = 600_000;
/** Shortest time between two searches for such files. */
const SEARCH_EVERY_MS = 60_000;

interface OpenFile extends StepPlace {
  readonly full: string;
  readonly descriptor: number;
  lastReadMs: number;
  /** What it held at the last read. */
  read: { readonly text: string } | undefined;
}

/**
 * Cache of open files, path to descriptor. The kernel generates the text of a sysfs attribute at each read from position 0. Such a read
 * costs a third of a read that also opens the file. When the cache is full, further files are opened and closed at each read. They do not
 * displace others: all files are read in turn, so the file read longest ago is the one that is read next.
 *
 * A read of an attribute that the kernel has removed fails, and the path is opened again. A descriptor follows a renamed device: a caller
 * that reads below a device's name must call {@link forget} when the name belongs to another device. Other file systems return the
 * content of a removed file while it is open. A simulated tree must therefore change files in place, or truncate the files that it
 * removes: a file that reads as empty is opened again, too.
 */
export class OpenFiles {
  readonly #root: string;
  readonly #now: () => number;
  readonly #files = new Map<string, OpenFile>();
  #most: number;
  #searchedMs = Number.NEGATIVE_INFINITY;

  /**
   * Paths are relative to `root`. `now`: clock in milliseconds. The wall clock costs a third of the monotonic one at each read, and after it
   * was set, a file at most closes too early or too late.
   */
  constructor(root: string, most = keepableDescriptors(), now = Date.now) {
    this.#root = root;
    this.#most = most;
    this.#now = now;
  }

  /** The file while it is open. */
  known(path: string): OpenFile | undefined {
    return this.#files.get(path);
  }

  /** Path with the root. */
  full(path: string): string {
    return `${this.#root}/${path}`;
  }

  /**
   * Reads a file from its beginning with one call; undefined when it fills the memory. It gives the same object while the file holds the same,
   * so that no reader needs to parse it again. Throws the error of the system. `file`: the open file of the path.
   */
  read(path: string, into: readonly [Buffer], file = this.known(path)): { readonly text: string } | undefined {
    if (file === undefined) return this.#open(path, into[0]);
    const count = readAgain(file.descriptor, into);
    if (count > 0) {
      file.lastReadMs = this.#now();
      const { read } = file;
      const text = textIn(into[0], count);
      if (read !== undefined && read.text === text) return read;
      file.read = text === undefined ? undefined : { text };
      return file.read;
    }
    this.#close(path, file);
    return this.#open(path, into[0]);
  }

  /** Closes the files below a directory. */
  forget(directory: string): void {
    for (const [path, file] of this.#files) if (path.startsWith(`${directory}/`)) this.#close(path, file);
  }

  /** Must be called when no descriptor is left: closes half of the files and halves the limit of the cache. */
  giveWay(): void {
    const { size } = this.#files;
    if (size === 0) return;
    this.#most = Math.floor(size / 2);
    for (const [path, file] of [...this.#files].slice(this.#most)) this.#close(path, file);
  }

  #open(path: string, into: Buffer): { readonly text: string } | undefined {
    const full = this.full(path);
    const descriptor = openSync(full, 'r');
    let isKept = false;
    try {
      const text = textIn(into, readSync(descriptor, into, 0, into.length, 0));
      const read = text === undefined ? undefined : { text };
      isKept = this.#hasRoom();
      if (isKept) this.#files.set(path, { full, descriptor, lastReadMs: this.#now(), read });
      return read;
    } finally {
      if (!isKept) closeSync(descriptor);
    }
  }

  #hasRoom(): boolean {
    if (this.#files.size < this.#most) return true;
    const nowMs = this.#now();
    if (this.#most === 0 || nowMs - this.#searchedMs < SEARCH_EVERY_MS) return false;
    this.#searchedMs = nowMs;
    for (const [path, file] of this.#files) if (nowMs - file.lastReadMs >= IDLE_MS) this.#close(path, file);
    return this.#files.size < this.#most;
  }

  #close(path: string, { descriptor }: OpenFile): void {
    this.#files.delete(path);
    closeSync(descriptor);
  }
}

const textIn = (bytes: Buffer, length: number): string | undefined =>
  length === bytes.length ? undefined : bytes.toString('utf8', 0, length);

/** Number of bytes, or 0 on failure. The caller then opens the path again, which gives the error. `readvSync` checks less than `readSync`. */
function readAgain(descriptor: number, into: readonly [Buffer]): number {
  try {
    return readvSync(descriptor, into, 0);
  } catch {
    return 0;
  }
}

/**
 * Limit of the files kept open: half of the soft limit, but at least 256 descriptors stay free. With a soft limit of 256 or less the
 * result is 0. An unknown limit (no procfs) counts as 1,024.
 */
export function keepableDescriptors(limit: number | undefined = softDescriptorLimit()): number {
  const allowed = limit ?? 1_024;
  return Math.max(0, Math.min(Math.floor(allowed / 2), allowed - RESERVE, MOST));
}

/** Soft limit of open files of this process. It is read from /proc, because in a container the machine's procfs is another mount. */
function softDescriptorLimit(): number | undefined {
  try {
    return parseSoftLimit(readFileSync('/proc/self/limits', 'utf8'));
  } catch {
    return undefined;
  }
}

/** Soft limit of open files in the text of `/proc/<pid>/limits`; undefined when the line is absent. */
export function parseSoftLimit(text: string): number | undefined {
  const word = /^Max open files\s+(\S+)/m.exec(text)?.[1];
  if (word === 'unlimited') return MOST * 2;
  return word !== undefined && /^\d+$/.test(word) ? Number(word) : undefined;
}
