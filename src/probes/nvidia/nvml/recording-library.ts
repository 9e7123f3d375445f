import type { Observe, ObservedCall, ObservedMemory } from '../../../model/observation.ts';
import { CODE } from './codes.ts';
import type { Handle, Library, NvmlFunction } from './library.ts';
import type { Memory } from './memory.ts';

/** Calls of the library in the file of a replay. Bytes are in base64. */
export interface RecordedCall extends Pick<ObservedCall, 'symbol' | 'types' | 'values' | 'code'> {
  readonly memory: readonly { readonly at: number; readonly before: string; readonly after: string }[];
  /** Number of an event, which is taken once. Absent for a value, which can be read again. */
  readonly event?: number;
}

/**
 * Functions whose every call takes another thing from the library, an event or a sample, each with a function that is called before. Its
 * answers are a queue.
 */
export const TAKES_EVENT: ReadonlyMap<string, string> = new Map([
  ['nvmlEventSetWait_v2', 'nvmlEventSetCreate'],
  ['nvmlSystemEventSetWait', 'nvmlSystemEventSetCreate'],
  ['nvmlGpmSampleAlloc', 'nvmlGpmQueryDeviceSupport'],
]);

/** Function and scalar arguments of a call. Pointers to memory have no part in it, because memory has other addresses in a replay. */
export const callKey = ({ symbol, types, values }: Pick<ObservedCall, 'symbol' | 'types' | 'values'>): string =>
  [symbol, types, ...values].join(' ');

/** Memory that was asked for longer ago than this many requests is no longer in use. */
const MOST_MEMORIES = 16;
/** Bytes of a request that tell it from another one: version, id of the first field, samples. Their number must not depend on the answer. */
const REQUEST_BYTES = 64;

/** A library that tells each call: what it was asked and what it answered, as bytes. */
export class RecordingLibrary implements Library {
  readonly path: string;
  readonly scratch: Memory;
  readonly #library: Library;
  readonly #observe: Observe;
  #memories: readonly Memory[] = [];

  constructor(library: Library, observe: Observe) {
    this.#library = library;
    this.#observe = observe;
    this.path = library.path;
    this.scratch = library.scratch;
  }

  bind(symbol: string, types: string): NvmlFunction | undefined {
    const bound = this.#library.bind(symbol, types);
    if (bound === undefined) {
      this.#observe({ kind: 'library', symbol, types: '', values: [], memory: [] });
      return undefined;
    }
    return (...values) => this.#recorded(symbol, types, bound, values);
  }

  call(symbol: string, types: string, ...values: Handle[]): number {
    return this.bind(symbol, types)?.(...values) ?? CODE.functionNotFound;
  }

  unload(): void {
    this.#library.unload();
  }

  memory(size: number): Memory {
    const memory = this.#library.memory(size);
    this.#memories = [...this.#memories, memory].slice(-MOST_MEMORIES);
    return memory;
  }

  #recorded(symbol: string, types: string, bound: NvmlFunction, values: readonly Handle[]): number {
    const before = values.map((value, at) => (types[at] === 'p' ? this.#bytesAt(value) : undefined));
    const code = bound(...values);
    // While no event waits, the library answers several times a second.
    if (TAKES_EVENT.has(symbol) && code !== CODE.success) return code;
    const memory = before.flatMap((bytes, at) => {
      const after = bytes === undefined ? undefined : this.#bytesAt(values[at] as Handle);
      return bytes === undefined || after === undefined ? [] : [changeOf(at, bytes, after)];
    });
    const scalars = values.map((value, at) => (types[at] === 'p' ? '' : String(value)));
    this.#observe({ kind: 'library', symbol, types, values: scalars, code, memory, ...(TAKES_EVENT.has(symbol) ? { isEvent: true } : {}) });
    return code;
  }

  #bytesAt(address: Handle): Buffer | undefined {
    for (const memory of [this.scratch, ...this.#memories]) {
      const bytes = memory.copyFrom(Number(address));
      if (bytes !== undefined) return bytes;
    }
    return undefined;
  }
}

/** Bytes behind the last one that the library changed are left out: they are of earlier calls. */
function changeOf(at: number, before: Buffer, after: Buffer): ObservedMemory {
  let length = before.length;
  while (length > 0 && before[length - 1] === after[length - 1]) length -= 1;
  return { at, before: Uint8Array.from(before.subarray(0, REQUEST_BYTES)), after: Uint8Array.from(after.subarray(0, length)) };
}
