import { closeSync, openSync, readSync } from 'node:fs';
import { errnoName, isShortage, type Tree } from './fs/tree.ts';
import type { NativeFiles, NativeMemory } from './native-files.ts';

/** Bytes of a PCI configuration header. What follows it is not read: some devices do not bear that. */
const HEADER = 64;
const ONES = 0xff;

/**
 * The configuration header of a PCI function, read from one descriptor again and again. That of a function which was removed fails, and
 * the file is opened anew.
 */
export class ConfigHeader {
  readonly #tree: Tree;
  readonly #path: string;
  readonly #isKept: boolean;
  readonly #native: { readonly files: NativeFiles; readonly memory: NativeMemory } | undefined;
  readonly #bytes: Buffer;
  #fd: number | undefined;

  /** `path` of a file `config`. `isKept`: its descriptor stays open. `native`: the direct way to the kernel, where there is one. */
  constructor(tree: Tree, path: string, isKept: boolean, native?: NativeFiles) {
    this.#tree = tree;
    this.#path = tree.path(path);
    this.#isKept = isKept;
    this.#native = native && { files: native, memory: native.memory(HEADER) };
    this.#bytes = this.#native?.memory.bytes ?? Buffer.alloc(HEADER);
  }

  /** False when all bytes are ones; undefined when the header cannot be read. */
  answers(): boolean | undefined {
    const { guard } = this.#tree;
    if (guard?.foreign !== undefined) {
      const bytes = guard.foreign.read(this.#path, HEADER);
      return typeof bytes === 'string' || bytes.length < HEADER ? undefined : bytes.some((byte) => byte !== ONES);
    }
    guard?.enter(this.#path);
    try {
      if (!this.#isRead()) return undefined;
      return this.#bytes.some((byte) => byte !== ONES);
    } catch (error) {
      if (isShortage(errnoName(error))) this.#tree.shortages += 1;
      return undefined;
    } finally {
      if (!this.#isKept) this.close();
      guard?.leave();
    }
  }

  close(): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
  }

  #isRead(): boolean {
    if (this.#fd !== undefined) {
      const isRead = this.#readAgain(this.#fd);
      if (isRead !== undefined) return isRead;
      this.close();
    }
    this.#fd = openSync(this.#path, 'r');
    return readSync(this.#fd, this.#bytes, 0, HEADER, 0) === HEADER;
  }

  /** Undefined where that fails. */
  #readAgain(fd: number): boolean | undefined {
    if (this.#native !== undefined) {
      const count = this.#native.files.read(fd, this.#native.memory, HEADER);
      return count < 0 ? undefined : count === HEADER;
    }
    try {
      return readSync(fd, this.#bytes, 0, HEADER, 0) === HEADER;
    } catch {
      return undefined;
    }
  }
}
