import { closeQuietly } from './descriptors.ts';
import { DirectoryMarks } from './directory-marks.ts';
import type { ReadResult, Tree } from './fs/tree.ts';
import type { Tenant } from './kept-room.ts';
import type { NativeFiles } from './native-files.ts';

const CLOSED = -1;

/** One small file that is read again and again. Belongs to the group that made it. */
export interface KeptFile {
  readonly path: string;
  readonly fullPath: string;
  /** Its number in the group. */
  readonly index: number;
  /** What it said last, with its bytes: most attributes say the same for days. */
  said: { readonly bytes: Buffer; readonly result: ReadResult } | undefined;
}

/** By which a group opens and reads its files. */
export interface GroupReader {
  readonly tree: Tree;
  readonly native: NativeFiles | undefined;
  /** Whether so many descriptors are left that directories may be kept open too. */
  readonly hasPlenty: boolean;
  /** False where a descriptor of a removed file goes on giving its last content: everywhere but in sysfs. */
  readonly invalidates: boolean;
  /** What the last read gave. */
  readonly bytes: Buffer;
  /** Errno name of the last read that failed. */
  readonly error: string;
  /** Of an open file: number of bytes read into {@link bytes}; -1: gone, failing for good or too large, of which the path tells which. */
  readKept(group: KeptGroup, fd: number): number;
  /** Opens a file and reads it: number of bytes, or -1 and {@link error}. Keeps it open where there is room. */
  readAnew(group: KeptGroup, file: KeptFile): number;
  /** To be called before a round of reads. A file that hangs hangs its device, so the guard is told of the group and not of each file. */
  note(group: KeptGroup): void;
  /** A descriptor is kept no more. */
  freed(): void;
  forget(group: KeptGroup): void;
}

/**
 * The files of one device or port, and the directories they lie in. Whoever makes the group looks after the directories above
 * these: when one of them is replaced, the group is closed and made anew.
 */
export class KeptGroup implements Tenant {
  /** How many of its files are open. */
  kept = 0;
  /** Per file its descriptor, -1 while it is not kept open. Together, since all of them are looked at in each round. */
  fds = new Int32Array(64).fill(CLOSED);
  /** Full path of the directory that all its files lie below. */
  readonly directory: string;
  readonly #reader: GroupReader;
  /** Undefined where a descriptor of a removed file fails by itself. */
  readonly #marks: DirectoryMarks | undefined;
  readonly #files = new Set<KeptFile>();
  /** Numbers of files that were forgotten. */
  readonly #free: number[] = [];

  constructor(reader: GroupReader, directory: string, directories: readonly string[]) {
    this.#reader = reader;
    this.directory = directory;
    this.#marks = reader.invalidates ? undefined : new DirectoryMarks(reader.tree, directories);
    this.#look();
  }

  /** The bytes of the last read that succeeded. */
  get bytes(): Buffer {
    return this.#reader.bytes;
  }

  /** Why the last read failed. */
  get error(): string {
    return this.#reader.error;
  }

  file(path: string): KeptFile {
    const fullPath = this.#reader.tree.path(path);
    const index = this.#free.pop() ?? this.#files.size;
    if (index === this.fds.length) {
      const longer = new Int32Array(index * 2).fill(CLOSED);
      longer.set(this.fds);
      this.fds = longer;
    }
    const file: KeptFile = { path, fullPath, index, said: undefined };
    this.#files.add(file);
    return file;
  }

  /** Number of bytes now in {@link bytes}; -1 when the read failed, and {@link error} says why. */
  read(file: KeptFile): number {
    const fd = this.fds[file.index] as number;
    if (fd === CLOSED) return this.#reader.readAnew(this, file);
    const count = this.#reader.readKept(this, fd);
    if (count >= 0) return count;
    this.#drop(file);
    return this.#reader.readAnew(this, file);
  }

  /** As {@link read} of the file with that number, as long as it is open; -1 when it is not, or fails: to be read by itself then. */
  readAt(index: number): number {
    const fd = this.fds[index] as number;
    return fd === CLOSED ? -1 : this.#reader.readKept(this, fd);
  }

  /** As `Tree.read`; the same object as long as the file says the same. */
  text(file: KeptFile): ReadResult {
    const count = this.read(file);
    if (count < 0) return { error: this.error };
    const { said } = file;
    if (said !== undefined && isSaid(said.bytes, this.bytes, count)) return said.result;
    const bytes = Buffer.from(this.bytes.subarray(0, count));
    file.said = { bytes, result: { text: bytes.toString() } };
    return file.said.result;
  }

  /**
   * To be called before each round of reads. True when in the group's directories files may have come, gone or been replaced since the last one: their
   * descriptors are then given up, and the caller lists anew. In sysfs never true, since there a removed file's descriptor fails.
   */
  hasChanged(): boolean {
    this.#reader.note(this);
    if (this.#marks === undefined || !this.#marks.renew()) return false;
    this.release();
    return true;
  }

  /** Gives up descriptors that may be of files that are gone, where the file system does not say so by itself. */
  refresh(): void {
    if (this.#marks?.areOthers() === true) this.release();
  }

  /** Gives all descriptors up; reading goes on by opening anew. */
  release(): void {
    for (const file of this.#files) this.#drop(file);
    this.#look();
  }

  /** A file is kept open from now on. */
  keep(file: KeptFile, fd: number): void {
    this.fds[file.index] = fd;
    this.kept += 1;
  }

  dropOne(): void {
    for (const file of this.#files) {
      if (this.fds[file.index] === CLOSED) continue;
      this.#drop(file);
      return;
    }
  }

  forget(file: KeptFile): void {
    this.#drop(file);
    this.#files.delete(file);
    this.#free.push(file.index);
  }

  /** Ends the group. */
  close(): void {
    for (const file of this.#files) this.#drop(file);
    this.#files.clear();
    this.#marks?.close();
    this.#reader.forget(this);
  }

  #drop(file: KeptFile): void {
    const fd = this.fds[file.index] as number;
    if (fd === CLOSED) return;
    closeQuietly(fd);
    this.fds[file.index] = CLOSED;
    this.kept -= 1;
    this.#reader.freed();
  }

  #look(): void {
    const { hasPlenty: isKept, native } = this.#reader;
    this.#marks?.look({ isKept, native });
  }
}

/** In a loop: the texts are too short for a call to pay. */
function isSaid(before: Buffer, now: Buffer, length: number): boolean {
  if (before.length !== length) return false;
  for (let at = 0; at < length; at += 1) if (before[at] !== now[at]) return false;
  return true;
}
