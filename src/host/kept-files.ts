import { closeSync, constants, openSync, readSync } from 'node:fs';
import { DirectoryMark } from './directory-mark.ts';
import { type NativeFiles, type NativeMemory, nativeFiles } from './native-files.ts';
import type { ReadGuard } from './read-guard.ts';
import { isSysfs } from './sysfs.ts';
import { errnoName, isShortage, type ReadResult, type Tree } from './tree.ts';

/** Largest attribute that the kernel gives in one read. A file that fills it is no small file. */
const LENGTH = 4_096;
const CLOSED = -1;
const { O_RDONLY, O_NOATIME = 0 } = constants;

/** One small file that is read again and again. Belongs to the group that made it. */
export interface KeptFile {
  readonly path: string;
  readonly fullPath: string;
  /** Its number in the group. */
  readonly index: number;
  /** What it said last, with its bytes: most attributes say the same for days. */
  said: { readonly bytes: Buffer; readonly result: ReadResult } | undefined;
}

/**
 * Files kept open and read again from their beginning, which makes the kernel produce a sysfs attribute anew at a fifth of the
 * cost of opening it. The number of descriptors is bounded; what finds no room is opened and closed at each read.
 */
export class KeptFiles {
  /** What the last {@link KeptGroup.read} gave. */
  readonly bytes: Buffer;
  /** Errno name of the last read that failed. */
  error = '';
  /** How many files were opened so far: as long as it stands, everything came from descriptors that were open before. */
  opened = 0;
  readonly tree: Tree;
  /** False where a descriptor of a removed file goes on giving its last content: everywhere but in sysfs. */
  readonly invalidates: boolean;
  readonly native: NativeFiles | undefined;
  readonly #memory: NativeMemory | undefined;
  readonly #guard: ReadGuard | undefined;
  readonly #groups = new Set<KeptGroup>();
  /** The group whose directory the guard was told last. */
  #noted: KeptGroup | undefined;
  #capacity: number;
  #kept = 0;
  #flags = O_RDONLY | O_NOATIME;

  /** `capacity`: how many descriptors may be kept at the same time. `native` loads the direct way to the kernel. */
  constructor(tree: Tree, capacity: number, native: () => NativeFiles | undefined = nativeFiles) {
    this.tree = tree;
    this.#guard = tree.guard;
    this.#capacity = capacity;
    this.invalidates = isSysfs(tree.root);
    this.native = capacity > 0 ? native() : undefined;
    this.#memory = this.native?.memory(LENGTH);
    this.bytes = this.#memory?.bytes ?? Buffer.alloc(LENGTH);
  }

  /**
   * Files of one device or port, all below `directory`, which share the room fairly with other groups; `directories` are those that
   * they lie in and that lead to them.
   */
  group(directory: string, directories: readonly string[]): KeptGroup {
    const group = new KeptGroup(this, this.#guard?.name(this.tree.path(directory)), directories);
    this.#groups.add(group);
    return group;
  }

  /** Whether descriptors are so plentiful that directories may be kept open besides files. */
  get hasPlenty(): boolean {
    return this.#kept < this.#capacity / 2;
  }

  /** Descriptors of files kept open now. */
  get kept(): number {
    return this.#kept;
  }

  /** Of one file: bytes read into {@link bytes}, or -1 and {@link error}. */
  read(group: KeptGroup, file: KeptFile): number {
    const fd = group.fds[file.index] as number;
    if (fd === CLOSED) return this.#readAnew(group, file);
    const count = this.readKept(group, fd);
    if (count >= 0) return count;
    this.drop(group, file);
    return this.#readAnew(group, file);
  }

  drop(group: KeptGroup, file: KeptFile): void {
    const fd = group.fds[file.index] as number;
    if (fd === CLOSED) return;
    closeQuietly(fd);
    group.fds[file.index] = CLOSED;
    group.kept -= 1;
    this.#kept -= 1;
  }

  /** When the process runs out of descriptors, others need them more: half of those kept are closed, and not kept again. */
  giveWay(): void {
    this.#capacity = Math.floor(this.#kept / 2);
    while (this.#kept > this.#capacity) this.#largest()?.dropOne();
  }

  forget(group: KeptGroup): void {
    this.#groups.delete(group);
  }

  /** To be called when a round of reads has ended: nothing is under read any more. */
  rest(): void {
    if (this.#noted !== undefined) this.#guard?.leaveNamed();
    this.#noted = undefined;
  }

  /** To be called before a round of reads. A file that hangs hangs its device, so the guard is told of the group and not of each file. */
  note(group: KeptGroup): void {
    if (this.#noted === group) return;
    this.#noted = group;
    if (group.name === undefined) this.#guard?.leaveNamed();
    else this.#guard?.enterNamed(group.name);
  }

  /** Bytes read from an open file; -1: gone, failing for good or too large, of which the path tells which. */
  readKept(group: KeptGroup, fd: number): number {
    this.note(group);
    const count = this.native === undefined ? this.#readByNode(fd) : this.native.read(fd, this.#memory as NativeMemory, LENGTH);
    return count < LENGTH ? count : -1;
  }

  #readByNode(fd: number): number {
    try {
      return readSync(fd, this.bytes, 0, LENGTH, 0);
    } catch {
      return -1;
    }
  }

  #readAnew(group: KeptGroup, file: KeptFile): number {
    if (this.#guard?.enter(file.fullPath) === false) return this.#failed('EHUNG');
    let fd = CLOSED;
    let isKept = false;
    this.opened += 1;
    try {
      fd = this.#open(file.fullPath);
      const count = readSync(fd, this.bytes, 0, LENGTH, null);
      if (count === LENGTH) return this.#failed('ETOOLARGE');
      isKept = (this.#guard === undefined || group.name !== undefined) && this.#hasRoom(group);
      return count;
    } catch (error) {
      return this.#failed(errnoName(error));
    } finally {
      if (isKept) this.#keep(group, file, fd);
      else if (fd !== CLOSED) closeQuietly(fd);
      this.#guard?.leave();
    }
  }

  #open(path: string): number {
    try {
      return this.#openUnseen(path);
    } catch (error) {
      if (!isShortage(errnoName(error)) || this.#kept === 0) throw error;
      this.giveWay();
      return this.#openUnseen(path);
    }
  }

  /** Looking leaves no trace: without the flag each read would ask, outside of sysfs, whether to note the time of access. */
  #openUnseen(path: string): number {
    try {
      return openSync(path, this.#flags);
    } catch (error) {
      // Only the owner and the superuser may.
      if (errnoName(error) !== 'EPERM' || this.#flags === O_RDONLY) throw error;
      this.#flags = O_RDONLY;
      return openSync(path, this.#flags);
    }
  }

  #keep(group: KeptGroup, file: KeptFile, fd: number): void {
    group.fds[file.index] = fd;
    group.kept += 1;
    this.#kept += 1;
  }

  /** A group with less than its share takes a place from the one that has most. */
  #hasRoom(group: KeptGroup): boolean {
    if (this.#kept < this.#capacity) return true;
    if (group.kept >= Math.floor(this.#capacity / this.#groups.size)) return false;
    const largest = this.#largest();
    if (largest === undefined || largest.kept <= group.kept + 1) return false;
    largest.dropOne();
    return true;
  }

  #largest(): KeptGroup | undefined {
    let largest: KeptGroup | undefined;
    for (const group of this.#groups) if (group.kept > (largest?.kept ?? 0)) largest = group;
    return largest;
  }

  #failed(error: string): number {
    this.error = error;
    return -1;
  }
}

/**
 * The files of one device or port, and the directories they lie in. Whoever makes the group looks after the directories above
 * these: when one of them is replaced, the group is closed and made anew.
 */
export class KeptGroup {
  /** How many of its files are open. */
  kept = 0;
  /** Per file its descriptor, -1 while it is not kept open. Together, since all of them are looked at in each round. */
  fds = new Int32Array(64).fill(CLOSED);
  /** The guard's number of its directory; undefined: there is no guard, it has no room for one more, or nothing of it may be read. */
  readonly name: number | undefined;
  readonly #keeper: KeptFiles;
  readonly #directories: readonly string[];
  readonly #files = new Set<KeptFile>();
  /** Numbers of files that were forgotten. */
  readonly #free: number[] = [];
  #marks: readonly DirectoryMark[] | undefined;

  constructor(keeper: KeptFiles, name: number | undefined, directories: readonly string[]) {
    this.#keeper = keeper;
    this.name = name;
    this.#directories = directories;
    this.#look();
  }

  /** The bytes of the last read that succeeded. */
  get bytes(): Buffer {
    return this.#keeper.bytes;
  }

  /** Why the last read failed. */
  get error(): string {
    return this.#keeper.error;
  }

  file(path: string): KeptFile {
    const fullPath = this.#keeper.tree.path(path);
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
    return this.#keeper.read(this, file);
  }

  /** As {@link read} of the file with that number, as long as it is open; -1 when it is not, or fails: to be read by itself then. */
  readAt(index: number): number {
    const fd = this.fds[index] as number;
    return fd === CLOSED ? -1 : this.#keeper.readKept(this, fd);
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
    this.#keeper.note(this);
    const marks = this.#marks;
    if (marks === undefined) return false;
    let changed = false;
    for (let at = 0; at < marks.length; at += 1) changed = (marks[at] as DirectoryMark).renew() || changed;
    if (changed) this.release();
    return changed;
  }

  /** Gives up descriptors that may be of files that are gone, where the file system does not say so by itself. */
  refresh(): void {
    if (!this.#keeper.invalidates) this.release();
  }

  /** Gives all descriptors up; reading goes on by opening anew. */
  release(): void {
    for (const file of this.#files) this.#keeper.drop(this, file);
    this.#look();
  }

  dropOne(): void {
    for (const file of this.#files) {
      if (this.fds[file.index] === CLOSED) continue;
      this.#keeper.drop(this, file);
      return;
    }
  }

  forget(file: KeptFile): void {
    this.#keeper.drop(this, file);
    this.#files.delete(file);
    this.#free.push(file.index);
  }

  /** Ends the group. */
  close(): void {
    for (const file of this.#files) this.#keeper.drop(this, file);
    this.#files.clear();
    this.#closeMarks();
    this.#keeper.forget(this);
  }

  /** A directory that is absent needs no mark of its own: the one above it changes when it appears. */
  #look(): void {
    if (this.#keeper.invalidates) return;
    const { tree, hasPlenty: isKept, native } = this.#keeper;
    this.#closeMarks();
    this.#marks = this.#directories
      .filter((path) => tree.exists(path))
      .map((path) => new DirectoryMark(tree.path(path), { isKept, native }));
  }

  #closeMarks(): void {
    for (const mark of this.#marks ?? []) mark.close();
    this.#marks = undefined;
  }
}

/** In a loop: the texts are too short for a call to pay. */
function isSaid(before: Buffer, now: Buffer, length: number): boolean {
  if (before.length !== length) return false;
  for (let at = 0; at < length; at += 1) if (before[at] !== now[at]) return false;
  return true;
}

function closeQuietly(fd: number): void {
  try {
    closeSync(fd);
  } catch {
    // The kernel has taken it back already.
  }
}
