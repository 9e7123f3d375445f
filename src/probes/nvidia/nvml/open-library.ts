import type koffiModule from 'koffi';
import { ANSWERS, AnsweringLibrary } from './answering-library.ts';
import { CODE } from './codes.ts';
import type { Handle, Library, NvmlFunction } from './library.ts';
import { Memory } from './memory.ts';
import { libraryCandidates, SONAME } from './paths.ts';

/** Argument types: `h` handle or set, `u` unsigned int, `i` enum, `p` pointer to memory, `q` unsigned long long. */
const TYPES: Readonly<Record<string, string>> = { h: 'uintptr_t', u: 'uint32_t', i: 'int32_t', p: 'uintptr_t', q: 'uint64_t' };

const SCRATCH_BYTES = 4_096;

/** The library of the driver. A function is bound at its first call, because no driver has all functions. */
class NativeLibrary implements Library {
  readonly path: string;
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
 * Opens the library. It tries only the configured file if there is one; otherwise first the linker, then the usual folders of drivers.
 * The module for foreign calls is loaded only here. A file of recorded answers takes the place of the library in a replay.
 */
export async function openLibrary(configured: string): Promise<Opened> {
  if (configured.endsWith(ANSWERS)) return { library: new AnsweringLibrary(configured) };
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
      return { library: new NativeLibrary(path, koffi) };
    } catch (failure) {
      // The error of an existing file is more useful than the error of the linker, so the last error wins.
      error = `${path}: ${firstLine(failure)}`;
    }
  }
  return { error };
}

const firstLine = (error: unknown): string => (error instanceof Error ? error.message : String(error)).split('\n', 1)[0] ?? '';
