import { existsSync, lstatSync, readdirSync, readlinkSync } from 'node:fs';
import { dirname, join, normalize, resolve } from 'node:path';
import type koffiModule from 'koffi';
import { CODE } from './header.ts';

export type Handle = number | bigint;
/** Takes handles, numbers and addresses; returns the return code. */
export type NvmlFunction = (...values: Handle[]) => number;

/** An open library. */
export interface Library {
  /** Path or name that was passed to the linker. */
  readonly path: string;
  /** Memory for answers that are read before the next call. */
  readonly scratch: Memory;
  /** Returns undefined when this driver has no such function; {@link Library.call} then returns 13. */
  bind(symbol: string, args: string): NvmlFunction | undefined;
  call(symbol: string, args: string, ...values: Handle[]): number;
  /** Unloads the library. No bound function may be called after that. */
  unload(): void;
  memory(size: number): Memory;
}

/** Memory into which the library writes its answers. It never moves, so its address is constant. */
export class Memory {
  /** Addresses of a process are below 2^53, so a number is exact. */
  readonly address: number;
  readonly #bytes: Buffer;
  readonly #view: DataView;

  constructor(size: number, addressOf: (buffer: Buffer) => bigint) {
    this.#bytes = Buffer.from(new ArrayBuffer(size));
    this.#view = new DataView(this.#bytes.buffer);
    this.address = Number(addressOf(this.#bytes));
  }

  get size(): number {
    return this.#bytes.length;
  }

  u8(offset: number): number {
    return this.#view.getUint8(offset);
  }

  u16(offset: number): number {
    return this.#view.getUint16(offset, true);
  }

  u32(offset: number): number {
    return this.#view.getUint32(offset, true);
  }

  i32(offset: number): number {
    return this.#view.getInt32(offset, true);
  }

  f64(offset: number): number {
    return this.#view.getFloat64(offset, true);
  }

  /** Exact up to 2^53 and rounded above it. No counter of a GPU reaches 2^53. */
  u64(offset: number): number {
    return this.#view.getUint32(offset + 4, true) * 2 ** 32 + this.#view.getUint32(offset, true);
  }

  i64(offset: number): number {
    return this.#view.getInt32(offset + 4, true) * 2 ** 32 + this.#view.getUint32(offset, true);
  }

  /** Returns a pointer in a form that can be passed to a call. */
  pointer(offset: number): number | bigint {
    const high = this.#view.getUint32(offset + 4, true);
    if (high >= 2 ** 21) return this.#view.getBigUint64(offset, true);
    return high * 2 ** 32 + this.#view.getUint32(offset, true);
  }

  /** Returns the text up to its terminating zero. */
  text(offset: number, length: number): string {
    const end = this.#bytes.indexOf(0, offset);
    return this.#bytes.toString('utf8', offset, end < 0 || end > offset + length ? offset + length : end);
  }

  /** Returns sixteen bytes as `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`. */
  uuid(offset: number): string {
    const digits = this.#bytes.toString('hex', offset, offset + 16);
    return digits.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
  }

  setU32(offset: number, value: number): void {
    this.#view.setUint32(offset, value, true);
  }

  setPointer(offset: number, value: number | bigint): void {
    if (typeof value === 'bigint') this.#view.setBigUint64(offset, value, true);
    else {
      this.#view.setUint32(offset, value % 2 ** 32, true);
      this.#view.setUint32(offset + 4, value / 2 ** 32, true);
    }
  }

  /** Copies bytes from an address of this memory on; undefined when the address is not in it. */
  copyFrom(address: number): Buffer | undefined {
    const offset = address - this.address;
    return offset < 0 || offset >= this.size ? undefined : Buffer.from(this.#bytes.subarray(offset));
  }

  /** Writes bytes at an address of this memory. Returns false when the address is not in it. */
  writeAt(address: number, bytes: Uint8Array): boolean {
    const offset = address - this.address;
    if (offset < 0 || offset >= this.size) return false;
    this.#bytes.set(bytes.subarray(0, this.size - offset), offset);
    return true;
  }

  clear(length: number): void {
    this.#bytes.fill(0, 0, length);
  }
}

const KEPT = new WeakMap<Library, Memory>();

/** Zeros for an answer that is larger than the scratch memory and read before the next one: one memory, because new ones are costly to free. */
export function zeros(library: Library, size: number): Memory {
  const known = KEPT.get(library);
  if (known === undefined || known.size < size) {
    const memory = library.memory(size);
    KEPT.set(library, memory);
    return memory;
  }
  known.clear(size);
  return known;
}

/** The name has the version number, because newer driver packages have no link without it. */
const SONAME = 'libnvidia-ml.so.1';

/** Folders below each driver root. Source: the lists of the GPU operator, the DRA driver and GPUd. */
const FOLDERS = [
  '',
  'usr/lib64',
  'usr/lib/x86_64-linux-gnu',
  'usr/lib/aarch64-linux-gnu',
  'lib64',
  'lib/x86_64-linux-gnu',
  'lib/aarch64-linux-gnu',
  'usr/lib/x86_64-linux-gnu/nvidia/current',
  'usr/lib/aarch64-linux-gnu/nvidia/current',
  'usr/lib/aarch64-linux-gnu/nvidia',
  'cm/local/apps/cuda/libs/current/lib64',
];
/** Roots: the driver container of the GPU operator, as host and pods see it; then the host mounted into a pod. */
const DRIVER_ROOTS = ['/', '/run/nvidia/driver', '/driver-root', '/host'];
/** Folders that contain only the library: GKE, as pods and as the host see it; WSL. */
const LIBRARY_FOLDERS = ['/usr/local/nvidia/lib64', '/home/kubernetes/bin/nvidia/lib64', '/usr/lib/wsl/lib'];
const WSL_STORE = '/usr/lib/wsl/drivers';

/**
 * Returns the files to try, best first. Tests set `root` to replace the machine's root. The list does not contain the soname, which
 * the linker searches.
 */
export function libraryCandidates(root = '/'): readonly string[] {
  const below = (path: string): string => join(root, path);
  const folders = [
    ...DRIVER_ROOTS.flatMap((driverRoot) => FOLDERS.map((folder) => ({ driverRoot: below(driverRoot), folder }))),
    ...[...LIBRARY_FOLDERS, ...wslStores(below(WSL_STORE))].map((folder) => ({ driverRoot: root, folder })),
  ];
  const found = folders.flatMap(({ driverRoot, folder }) => {
    const file = resolveWithin(driverRoot, join(folder, SONAME));
    return file === undefined ? [] : [file];
  });
  return [...new Set(found)];
}

function wslStores(store: string): readonly string[] {
  try {
    return readdirSync(store).map((name) => join(WSL_STORE, name));
  } catch {
    return [];
  }
}

/** Maximum number of links that the kernel follows. More links mean a cycle. */
const MAX_LINKS = 40;

/** Resolves a path below another root, to which its absolute links are relative. Returns undefined when the file does not exist. */
export function resolveWithin(root: string, path: string): string | undefined {
  const rest = path.split('/').filter((name) => name !== '');
  let at = '/';
  let links = 0;
  for (let name = rest.shift(); name !== undefined; name = rest.shift()) {
    const next = normalize(join(at, name));
    const target = linkAt(join(root, next));
    if (target === undefined) {
      at = next;
      continue;
    }
    links += 1;
    if (links > MAX_LINKS) return undefined;
    rest.unshift(
      ...resolve(dirname(next), target)
        .split('/')
        .filter((part) => part !== ''),
    );
    at = '/';
  }
  const file = join(root, at);
  return existsSync(file) ? file : undefined;
}

function linkAt(path: string): string | undefined {
  try {
    return lstatSync(path).isSymbolicLink() ? readlinkSync(path) : undefined;
  } catch {
    return undefined;
  }
}

/** Argument types: `h` handle or set, `u` unsigned int, `i` enum, `p` pointer to memory, `q` unsigned long long. */
const TYPES: Readonly<Record<string, string>> = { h: 'uintptr_t', u: 'uint32_t', i: 'int32_t', p: 'uintptr_t', q: 'uint64_t' };

export const SCRATCH_BYTES = 4_096;

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

type Opened = { readonly library: Library; readonly error?: undefined } | { readonly library?: undefined; readonly error: string };

/**
 * Opens the library. It tries only the configured file if there is one; otherwise first the linker, then the usual folders of drivers.
 * The module for foreign calls is loaded only here.
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
      return { library: new NativeLibrary(path, koffi) };
    } catch (failure) {
      // The error of an existing file is more useful than the error of the linker, so the last error wins.
      error = `${path}: ${firstLine(failure)}`;
    }
  }
  return { error };
}

const firstLine = (error: unknown): string => (error instanceof Error ? error.message : String(error)).split('\n', 1)[0] ?? '';
