import type koffiModule from 'koffi';
import { CODE } from './codes.ts';
import { Memory } from './memory.ts';
import { libraryCandidates, SONAME } from './paths.ts';

/** Arguments of a function by letter: `h` handle or set, `u` unsigned int, `i` enum, `p` pointer to memory, `q` unsigned long long. */
const TYPES: Readonly<Record<string, string>> = { h: 'uintptr_t', u: 'uint32_t', i: 'int32_t', p: 'uintptr_t', q: 'uint64_t' };

const SCRATCH_BYTES = 4_096;

export type Handle = number | bigint;
/** Takes handles, numbers and addresses, gives the return code. */
export type NvmlFunction = (...values: Handle[]) => number;

/** A library that is open. Functions are looked for when they are first asked for: no driver has them all. */
export class Library {
  /** As it was given to the linker. */
  readonly path: string;
  /** For answers that are looked at before the next call. */
  readonly scratch: Memory;
  readonly #koffi: typeof koffiModule;
  readonly #handle: ReturnType<typeof koffiModule.load>;
  readonly #bound = new Map<string, NvmlFunction | undefined>();

  constructor(path: string, koffi: typeof koffiModule) {
    this.path = path;
    this.#koffi = koffi;
    this.#handle = koffi.load(path);
    this.scratch = this.memory(SCRATCH_BYTES);
  }

  /** Undefined where this driver has no such function, which is the same as an answer of 13. */
  bind(symbol: string, args: string): NvmlFunction | undefined {
    const known = this.#bound.get(symbol);
    if (known !== undefined || this.#bound.has(symbol)) return known;
    let bound: NvmlFunction | undefined;
    try {
      bound = this.#handle.func(`int ${symbol}(${[...args].map((letter) => TYPES[letter]).join(', ')})`) as unknown as NvmlFunction;
    } catch {
      bound = undefined;
    }
    this.#bound.set(symbol, bound);
    return bound;
  }

  call(symbol: string, args: string, ...values: Handle[]): number {
    const bound = this.bind(symbol, args);
    return bound === undefined ? CODE.functionNotFound : bound(...values);
  }

  /** Nothing that was bound may be called afterwards. */
  unload(): void {
    this.#bound.clear();
    this.#handle.unload();
  }

  memory(size: number): Memory {
    return new Memory(size, (buffer) => this.#koffi.address(buffer) as bigint);
  }
}

export type Opened = { readonly library: Library; readonly error?: undefined } | { readonly library?: undefined; readonly error: string };

/**
 * Opens the library: a configured file alone, else what the linker finds, else the places where drivers put it. The module that
 * makes foreign calls is loaded only here.
 */
export async function openLibrary(configured: string): Promise<Opened> {
  let koffi: typeof koffiModule;
  try {
    koffi = (await import('koffi')).default;
  } catch (error) {
    return { error: `koffi: ${firstLine(error)}` };
  }
  const paths = configured === '' ? [SONAME, ...libraryCandidates()] : [configured];
  let error = '';
  for (const path of paths) {
    try {
      return { library: new Library(path, koffi) };
    } catch (failure) {
      // What is said of a file that is there tells more than that the linker found none.
      error = `${path}: ${firstLine(failure)}`;
    }
  }
  return { error };
}

const firstLine = (error: unknown): string => (error instanceof Error ? error.message : String(error)).split('\n', 1)[0] ?? '';
