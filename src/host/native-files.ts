import type koffiModule from 'koffi';
import { requireKoffi } from './koffi.ts';

/** Sizes and constants of linux/stat.h and fcntl.h, alike on all architectures. */
const STATX_BYTES = 256;
/** `STATX_INO | STATX_MTIME | STATX_CTIME` */
const WANTED = 0x100 | 0x40 | 0x80;
const AT_FDCWD = -100;
const AT_EMPTY_PATH = 0x1000;
/** 32-bit words of `struct statx`: inode, time of change, time of modification, device. */
const WORDS = [8, 9, 24, 25, 26, 28, 29, 30, 34, 35] as const;
/** Seconds as the number of a 64-bit word, nanoseconds as that of a 32-bit word. */
const CHANGED_AT = { seconds: 12, nanoseconds: 26 };
const MODIFIED_AT = { seconds: 14, nanoseconds: 30 };

/** Number of the system call `pread64`, by architecture. */
const PREAD: Readonly<Record<string, number>> = { x64: 17, arm64: 67 };

type Call = (...values: number[]) => number;

/** Memory whose address system calls are given. Whoever holds it keeps it where it is. */
export interface NativeMemory {
  readonly bytes: Buffer;
  readonly address: number;
}

/** What tells one state of a directory from another; of the length that {@link NativeFiles.look} wants. */
export type DirectoryState = Int32Array;

/**
 * `pread` and `statx` called directly. Node's own way to the same calls costs as much again as the kernel's work, which matters
 * where thousands of files are read at each refresh.
 */
export class NativeFiles {
  readonly #pread: Call;
  readonly #statx: Call;
  readonly #address: (bytes: Buffer) => number;
  readonly #result: NativeMemory;
  readonly #words: Int32Array;
  readonly #empty: NativeMemory;

  constructor(koffi: typeof koffiModule) {
    const library = koffi.load(null);
    this.#pread = preadOf(library);
    this.#statx = library.func('statx', 'int', ['int', 'uintptr_t', 'int', 'uint', 'uintptr_t']) as unknown as Call;
    this.#address = (bytes) => Number(koffi.address(bytes));
    this.#result = this.memory(STATX_BYTES);
    this.#words = new Int32Array(this.#result.bytes.buffer, this.#result.bytes.byteOffset, STATX_BYTES / 4);
    this.#empty = this.path('');
  }

  memory(length: number): NativeMemory {
    // Not from the pool, of which the address would be another's.
    const bytes = Buffer.allocUnsafeSlow(length).fill(0);
    return { bytes, address: this.#address(bytes) };
  }

  path(path: string): NativeMemory {
    const memory = this.memory(Buffer.byteLength(path) + 1);
    memory.bytes.write(path, 'utf8');
    return memory;
  }

  /** From the beginning of an open file: number of bytes, or -1. */
  read(fd: number, into: NativeMemory, length: number): number {
    return this.#pread(fd, into.address, length, 0);
  }

  newState(): DirectoryState {
    return new Int32Array(WORDS.length);
  }

  /**
   * Looks at a directory, by descriptor or path, and notes what it looks like now; true when that differs from what was noted. One
   * that cannot be looked at looks like no other.
   */
  look(place: number | NativeMemory, state: DirectoryState): boolean {
    const { address, bytes } = this.#result;
    const failed =
      typeof place === 'number'
        ? this.#statx(place, this.#empty.address, AT_EMPTY_PATH, WANTED, address)
        : this.#statx(AT_FDCWD, place.address, 0, WANTED, address);
    if (failed !== 0) bytes.fill(0);
    let differs = false;
    for (let at = 0; at < WORDS.length; at += 1) {
      const word = this.#words[WORDS[at] as number] as number;
      if (state[at] === word) continue;
      state[at] = word;
      differs = true;
    }
    return differs;
  }

  /** Wall clock of the last change of what was looked at last; 0 where there was nothing. */
  changedAtMs(): number {
    const { buffer, byteOffset } = this.#result.bytes;
    const seconds = new BigInt64Array(buffer, byteOffset, STATX_BYTES / 8);
    const ms = (time: typeof CHANGED_AT): number =>
      Number(seconds[time.seconds]) * 1_000 + (this.#words[time.nanoseconds] as number) / 1_000_000;
    return Math.max(ms(CHANGED_AT), ms(MODIFIED_AT));
  }
}

/**
 * The C library's `pread` lets other threads cancel the call, which costs a twentieth of it and serves nobody here: where the number is
 * known the kernel is called without it.
 */
function preadOf(library: ReturnType<typeof koffiModule.load>): Call {
  const number = PREAD[process.arch];
  if (number === undefined) return library.func('pread', 'long', ['int', 'uintptr_t', 'size_t', 'long']) as unknown as Call;
  const call = library.func('syscall', 'long', ['int', 'int', 'uintptr_t', 'size_t', 'long']) as unknown as Call;
  return (fd, address, length, offset) => call(number, fd as number, address as number, length as number, offset as number);
}

/** Undefined where the module that makes such calls does not load, or the C library lacks one of them: Node's own way serves as well. */
export function nativeFiles(): NativeFiles | undefined {
  try {
    return new NativeFiles(requireKoffi());
  } catch {
    return undefined;
  }
}
