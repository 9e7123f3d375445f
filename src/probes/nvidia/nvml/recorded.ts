import { readFileSync, statSync } from 'node:fs';
import type { Observe, ObservedCall, ObservedMemory } from '../../../model/observation.ts';
import { CODE } from './header.ts';
import { type Handle, type Library, Memory, type NvmlFunction, SCRATCH_BYTES } from './library.ts';

/** Calls of the library in the file of a replay. Bytes are in base64. */
interface RecordedCall extends Pick<ObservedCall, 'symbol' | 'types' | 'values' | 'code'> {
  readonly memory: readonly { readonly at: number; readonly before: string; readonly after: string }[];
  /** Number of an event, which is taken once. Absent for a value, which can be read again. */
  readonly event?: number;
}

/**
 * Functions whose every call takes another thing from the library, an event or a sample, each with a function that is called before. Its
 * answers are a queue.
 */
const TAKES_EVENT: ReadonlyMap<string, string> = new Map([
  ['nvmlEventSetWait_v2', 'nvmlEventSetCreate'],
  ['nvmlSystemEventSetWait', 'nvmlSystemEventSetCreate'],
  ['nvmlGpmSampleAlloc', 'nvmlGpmQueryDeviceSupport'],
]);

/** Function and scalar arguments of a call. Pointers to memory have no part in it, because memory has other addresses in a replay. */
const callKey = ({ symbol, types, values }: Pick<ObservedCall, 'symbol' | 'types' | 'values'>): string =>
  [symbol, types, ...values].join(' ');

/** The arguments of a call as texts, without pointers to memory. */
const scalarsOf = (types: string, values: readonly Handle[]): readonly string[] =>
  values.map((value, at) => (types[at] === 'p' ? '' : String(value)));

/** Bytes of a request that tell it from another one: version, id of the first field, samples. Their number must not depend on the answer. */
const REQUEST_BYTES = 64;
/** Memory that was asked for longer ago than this many requests is no longer in use. */
const MOST_MEMORIES = 16;

/** The memories of a library that are in use. */
class Memories {
  readonly #scratch: Memory;
  #others: readonly Memory[] = [];

  constructor(scratch: Memory) {
    this.#scratch = scratch;
  }

  add(memory: Memory): Memory {
    this.#others = [...this.#others, memory].slice(-MOST_MEMORIES);
    return memory;
  }

  /** The bytes from an address on. */
  bytesAt(address: Handle): Buffer | undefined {
    for (const memory of [this.#scratch, ...this.#others]) {
      const bytes = memory.copyFrom(Number(address));
      if (bytes !== undefined) return bytes;
    }
    return undefined;
  }

  write(address: Handle, bytes: Buffer): void {
    [this.#scratch, ...this.#others].some((memory) => memory.writeAt(Number(address), bytes));
  }
}

/** A library that tells each call: what it was asked and what it answered, as bytes. */
export class RecordingLibrary implements Library {
  readonly path: string;
  readonly scratch: Memory;
  readonly #library: Library;
  readonly #observe: Observe;
  readonly #memories: Memories;

  constructor(library: Library, observe: Observe) {
    this.#library = library;
    this.#observe = observe;
    this.path = library.path;
    this.scratch = library.scratch;
    this.#memories = new Memories(this.scratch);
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
    return this.#memories.add(this.#library.memory(size));
  }

  #recorded(symbol: string, types: string, bound: NvmlFunction, values: readonly Handle[]): number {
    const before = values.map((value, at) => (types[at] === 'p' ? this.#memories.bytesAt(value) : undefined));
    const code = bound(...values);
    const isEvent = TAKES_EVENT.has(symbol);
    // While no event waits, the library answers several times a second.
    if (isEvent && code !== CODE.success) return code;
    const memory = before.flatMap((bytes, at) => {
      const after = bytes === undefined ? undefined : this.#memories.bytesAt(values[at] as Handle);
      return bytes === undefined || after === undefined ? [] : [changeOf(at, bytes, after)];
    });
    const call = { kind: 'library' as const, symbol, types, values: scalarsOf(types, values), code, memory };
    this.#observe(isEvent ? { ...call, isEvent } : call);
    return code;
  }
}

/** Bytes behind the last one that the library changed are left out: they are of earlier calls. */
function changeOf(at: number, before: Buffer, after: Buffer): ObservedMemory {
  let length = before.length;
  while (length > 0 && before[length - 1] === after[length - 1]) length -= 1;
  return { at, before: Uint8Array.from(before.subarray(0, REQUEST_BYTES)), after: Uint8Array.from(after.subarray(0, length)) };
}

/** End of the name of a file of recorded answers. */
export const ANSWERS = '.json';
/** Addresses of the memories of a replay. Nothing is at these addresses; they only tell one memory from another. */
const FIRST_ADDRESS = 0x1000;

/**
 * A library whose functions give recorded answers. Everything above it runs as with the driver. The file may be replaced by that of the
 * next frame at any time. A call that was not recorded answers 999, unknown error: it is unknown what the driver would have said.
 */
export class AnsweringLibrary implements Library {
  readonly path: string;
  readonly scratch: Memory;
  #nextAddress = FIRST_ADDRESS;
  #memories: Memories;
  #mark = '';
  #calls: ReadonlyMap<string, readonly RecordedCall[]> = new Map();
  #symbols: ReadonlySet<string> = new Set();
  #events: readonly RecordedCall[] = [];
  /** Number of the last event that each function gave. */
  readonly #takenThrough = new Map<string, number>();

  constructor(path: string) {
    this.path = path;
    this.scratch = this.#newMemory(SCRATCH_BYTES);
    this.#memories = new Memories(this.scratch);
  }

  bind(symbol: string, types: string): NvmlFunction | undefined {
    this.#load();
    // A symbol with no answer at all was never called: the captured agent did not need it.
    return this.#symbols.has(symbol) ? (...values) => this.#answer(symbol, types, values) : undefined;
  }

  call(symbol: string, types: string, ...values: Handle[]): number {
    return this.bind(symbol, types)?.(...values) ?? CODE.functionNotFound;
  }

  unload(): void {
    this.#memories = new Memories(this.scratch);
  }

  memory(size: number): Memory {
    return this.#memories.add(this.#newMemory(size));
  }

  #newMemory(size: number): Memory {
    const address = this.#nextAddress;
    this.#nextAddress += size + FIRST_ADDRESS;
    return new Memory(size, () => BigInt(address));
  }

  #answer(symbol: string, types: string, values: readonly Handle[]): number {
    const isEvent = TAKES_EVENT.has(symbol);
    const call = isEvent ? this.#nextEvent(symbol) : this.#matching(symbol, types, values);
    if (call === undefined) return isEvent ? CODE.timeout : CODE.unknown;
    for (const { at, after } of call.memory) this.#memories.write(values[at] as Handle, Buffer.from(after, 'base64'));
    return call.code ?? CODE.functionNotFound;
  }

  /** The recorded call with the same arguments. If there are several, the latest whose request has the same bytes; if none has, the latest of all. */
  #matching(symbol: string, types: string, values: readonly Handle[]): RecordedCall | undefined {
    const calls = this.#calls.get(callKey({ symbol, types, values: scalarsOf(types, values) })) ?? [];
    return (
      calls.findLast((call) => call.memory.every((memory) => this.#isAsked(values[memory.at] as Handle, memory.before))) ?? calls.at(-1)
    );
  }

  #isAsked(address: Handle, before: string): boolean {
    const wanted = Buffer.from(before, 'base64');
    return this.#memories.bytesAt(address)?.subarray(0, wanted.length).equals(wanted) === true;
  }

  #nextEvent(symbol: string): RecordedCall | undefined {
    const taken = this.#takenThrough.get(symbol) ?? -1;
    const next = this.#events.find((one) => one.symbol === symbol && (one.event ?? -1) > taken);
    this.#takenThrough.set(symbol, next?.event ?? taken);
    return next;
  }

  #load(): void {
    const stats = statSync(this.path, { bigint: true, throwIfNoEntry: false });
    const mark = stats === undefined ? '' : `${stats.ino}:${stats.mtimeNs}:${stats.size}`;
    if (mark === this.#mark) return;
    this.#mark = mark;
    const all = stats === undefined ? [] : (JSON.parse(readFileSync(this.path, 'utf8')) as readonly RecordedCall[]);
    const calls = new Map<string, RecordedCall[]>();
    for (const call of all) calls.set(callKey(call), [...(calls.get(callKey(call)) ?? []), call]);
    this.#calls = calls;
    const symbols = all.flatMap(({ symbol, code }) => (code === undefined ? [] : [symbol]));
    // While no event came, its function has no answer in the file.
    const takers = [...TAKES_EVENT].flatMap(([taker, creator]) => (symbols.includes(creator) ? [taker] : []));
    this.#symbols = new Set([...symbols, ...takers]);
    this.#events = all.filter(({ symbol }) => TAKES_EVENT.has(symbol));
  }
}
