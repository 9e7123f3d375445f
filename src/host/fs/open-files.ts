import { closeSync, openSync, readFileSync, readSync } from 'node:fs';

/** Descriptors that open files leave to sockets, threads, pipes and files that are open for a moment. */
const RESERVE = 256;
const MOST = 65_536;

interface OpenFile {
  readonly descriptor: number;
  /** Number of the read that was the last of this file. */
  lastRead: number;
}

/**
 * Files that stay open, path to descriptor. The kernel makes the text of a sysfs attribute anew at each read from position 0, at a third
 * of the cost of opening the file too. When there are too many, the quarter that was read longest ago is closed.
 *
 * A descriptor of an attribute that the kernel has removed fails, and the path is opened anew. A descriptor follows a device that is
 * renamed: who reads below the name of a device calls {@link forget} when the name stands for another one. Other file systems give
 * the content of a removed file for as long as it is open, so that a simulated tree must change files in place, or empty those that
 * it removes: a file that reads as empty is opened anew, too.
 */
export class OpenFiles {
  readonly #root: string;
  readonly #files = new Map<string, OpenFile>();
  #most: number;
  #reads = 0;

  /** Paths are relative to `root`. */
  constructor(root: string, most = keepableDescriptors()) {
    this.#root = root;
    this.#most = most;
  }

  /** Reads a file from its beginning, with one call: number of bytes. Throws what the system says. */
  read(path: string, into: Buffer): number {
    const file = this.#files.get(path);
    if (file === undefined) return this.#open(path, into);
    const count = readAgain(file.descriptor, into);
    if (count > 0) {
      file.lastRead = ++this.#reads;
      return count;
    }
    this.#close(path, file);
    return this.#open(path, into);
  }

  /** Closes the files below a directory. */
  forget(directory: string): void {
    for (const [path, file] of this.#files) if (path.startsWith(`${directory}/`)) this.#close(path, file);
  }

  /** To be called when the process has no descriptor left: half of the files are closed, and no more are kept from now on. */
  giveWay(): void {
    const { size } = this.#files;
    if (size === 0) return;
    this.#most = Math.floor(size / 2);
    this.#closeDownTo(this.#most);
  }

  #open(path: string, into: Buffer): number {
    const descriptor = openSync(`${this.#root}/${path}`, 'r');
    try {
      const count = readSync(descriptor, into, 0, into.length, 0);
      this.#files.set(path, { descriptor, lastRead: ++this.#reads });
      if (this.#files.size > this.#most) this.#closeDownTo(Math.floor(this.#most * 0.75));
      return count;
    } catch (error) {
      closeSync(descriptor);
      throw error;
    }
  }

  #closeDownTo(most: number): void {
    const files = [...this.#files].sort(([, a], [, b]) => a.lastRead - b.lastRead);
    for (const [path, file] of files.slice(0, files.length - most)) this.#close(path, file);
  }

  #close(path: string, { descriptor }: OpenFile): void {
    this.#files.delete(path);
    closeSync(descriptor);
  }
}

/** 0 where that fails: the path tells why. */
function readAgain(descriptor: number, into: Buffer): number {
  try {
    return readSync(descriptor, into, 0, into.length, 0);
  } catch {
    return 0;
  }
}

/**
 * How many files this process may keep open: half of its soft limit, and never so many that fewer than 256 are left for
 * everything else. With a limit of 256 or less that is none. Unknown limit (no procfs): as if it were 1,024.
 */
export function keepableDescriptors(limit: number | undefined = softDescriptorLimit()): number {
  const allowed = limit ?? 1_024;
  return Math.max(0, Math.min(Math.floor(allowed / 2), allowed - RESERVE, MOST));
}

/** Soft limit of open files of this process itself, whose procfs is not that of the machine in a container. */
function softDescriptorLimit(): number | undefined {
  try {
    return parseSoftLimit(readFileSync('/proc/self/limits', 'utf8'));
  } catch {
    return undefined;
  }
}

/** Of the text of `/proc/<pid>/limits`; undefined where it has no such line. */
export function parseSoftLimit(text: string): number | undefined {
  const word = /^Max open files\s+(\S+)/m.exec(text)?.[1];
  if (word === 'unlimited') return MOST * 2;
  return word !== undefined && /^\d+$/.test(word) ? Number(word) : undefined;
}
