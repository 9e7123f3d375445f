import { constants, openSync, readSync } from 'node:fs';
import { closeQuietly } from './descriptors.ts';
import type { ForeignReads, ReadGuard } from './fs/read-guard.ts';
import { errnoName, isShortage, type Tree } from './fs/tree.ts';
import { type GroupReader, type KeptFile, KeptGroup } from './kept-group.ts';
import { KeptRoom } from './kept-room.ts';
import { type NativeFiles, type NativeMemory, nativeFiles } from './native-files.ts';
import { isSysfs } from './sysfs.ts';

/** Largest attribute that the kernel gives in one read. A file that fills it is no small file. */
const LENGTH = 4_096;
const CLOSED = -1;
const { O_RDONLY, O_NOATIME = 0 } = constants;

/**
 * Files kept open and read again from their beginning, which makes the kernel produce a sysfs attribute anew at a fifth of the
 * cost of opening it. The number of descriptors is bounded; what finds no room is opened and closed at each read.
 */
export class KeptFiles implements GroupReader {
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
  readonly #room: KeptRoom;
  /** The group whose directory the guard was told last. */
  #noted: KeptGroup | undefined;
  #flags = O_RDONLY | O_NOATIME;

  /** `capacity`: how many descriptors may be kept at the same time. `native` loads the direct way to the kernel. */
  constructor(tree: Tree, capacity: number, native: () => NativeFiles | undefined = nativeFiles) {
    this.tree = tree;
    this.#guard = tree.guard;
    this.#room = new KeptRoom(capacity);
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
    const group = new KeptGroup(this, this.tree.path(directory), directories);
    this.#room.moveIn(group);
    return group;
  }

  /** Whether descriptors are so plentiful that directories may be kept open besides files. */
  get hasPlenty(): boolean {
    return this.#room.hasPlenty;
  }

  /** Descriptors of files kept open now. */
  get kept(): number {
    return this.#room.kept;
  }

  freed(): void {
    this.#room.freed();
  }

  /** When the process runs out of descriptors, others need them more: half of those kept are closed, and not kept again. */
  giveWay(): void {
    this.#room.giveWay();
  }

  forget(group: KeptGroup): void {
    this.#room.moveOut(group);
  }

  /** To be called when a round of reads has ended: nothing is under read any more. */
  rest(): void {
    if (this.#noted !== undefined) this.#guard?.leave();
    this.#noted = undefined;
  }

  /** To be called before a round of reads. A file that hangs hangs its device, so the guard is told of the group and not of each file. */
  note(group: KeptGroup): void {
    if (this.#noted === group) return;
    this.#noted = group;
    this.#guard?.enter(group.directory);
  }

  /** Bytes read from an open file; -1: gone, failing for good or too large, of which the path tells which. */
  readKept(group: KeptGroup, fd: number): number {
    if (this.#guard?.foreign !== undefined) return -1;
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

  readAnew(group: KeptGroup, file: KeptFile): number {
    if (this.#guard?.foreign !== undefined) return this.#readForeign(this.#guard.foreign, file.fullPath);
    this.#noted = undefined;
    this.#guard?.enter(file.fullPath);
    let fd = CLOSED;
    let isKept = false;
    this.opened += 1;
    try {
      fd = this.#open(file.fullPath);
      const count = readSync(fd, this.bytes, 0, LENGTH, null);
      if (count === LENGTH) return this.#failed('ETOOLARGE');
      isKept = this.#room.hasPlaceFor(group);
      return count;
    } catch (error) {
      return this.#failed(errnoName(error));
    } finally {
      if (isKept) {
        group.keep(file, fd);
        this.#room.taken();
      } else if (fd !== CLOSED) closeQuietly(fd);
      this.#guard?.leave();
    }
  }

  #readForeign(foreign: ForeignReads, path: string): number {
    const bytes = foreign.read(path, LENGTH);
    if (typeof bytes === 'string') return this.#failed(bytes);
    if (bytes.length === LENGTH) return this.#failed('ETOOLARGE');
    bytes.copy(this.bytes);
    return bytes.length;
  }

  #open(path: string): number {
    try {
      return this.#openUnseen(path);
    } catch (error) {
      if (!isShortage(errnoName(error)) || this.kept === 0) throw error;
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

  #failed(error: string): number {
    if (isShortage(error)) this.tree.shortages += 1;
    this.error = error;
    return -1;
  }
}
