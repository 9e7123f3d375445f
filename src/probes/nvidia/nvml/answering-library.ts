import { readFileSync, statSync } from 'node:fs';
import { CODE } from './codes.ts';
import type { Handle, Library, NvmlFunction } from './library.ts';
import { Memory } from './memory.ts';
import { callKey, type RecordedCall, TAKES_EVENT } from './recording-library.ts';

/** End of the name of a file of recorded answers. */
export const ANSWERS = '.json';
const SCRATCH_BYTES = 4_096;
/** Addresses of the memories of a replay. Nothing is at these addresses; they only tell one memory from another. */
const FIRST_ADDRESS = 0x1000;
const MOST_MEMORIES = 16;

/**
 * A library whose functions give recorded answers. Everything above it runs as with the driver. The file may be replaced by that of the
 * next frame at any time. A call that was not recorded answers 999, unknown error: nobody knows what the driver would have said.
 */
export class AnsweringLibrary implements Library {
  readonly path: string;
  readonly scratch: Memory;
  #nextAddress = FIRST_ADDRESS;
  #memories: readonly Memory[] = [];
  #mark = '';
  #calls: ReadonlyMap<string, readonly RecordedCall[]> = new Map();
  #symbols: ReadonlySet<string> = new Set();
  #events: readonly RecordedCall[] = [];
  /** Number of the last event that each function gave. */
  readonly #takenThrough = new Map<string, number>();

  constructor(path: string) {
    this.path = path;
    this.scratch = this.memory(SCRATCH_BYTES);
  }

  bind(symbol: string, types: string): NvmlFunction | undefined {
    this.#load();
    // A symbol with no answer at all was never called: the captured agent did not need it.
    if (!this.#symbols.has(symbol)) return undefined;
    return (...values) => this.#answer(symbol, types, values);
  }

  call(symbol: string, types: string, ...values: Handle[]): number {
    return this.bind(symbol, types)?.(...values) ?? CODE.functionNotFound;
  }

  unload(): void {
    this.#memories = [];
  }

  memory(size: number): Memory {
    const address = this.#nextAddress;
    this.#nextAddress += size + FIRST_ADDRESS;
    const memory = new Memory(size, () => BigInt(address));
    this.#memories = [...this.#memories, memory].slice(-MOST_MEMORIES);
    return memory;
  }

  #answer(symbol: string, types: string, values: readonly Handle[]): number {
    const isEvent = TAKES_EVENT.has(symbol);
    const call = isEvent ? this.#nextEvent(symbol) : this.#matching(symbol, types, values);
    if (call === undefined) return isEvent ? CODE.timeout : CODE.unknown;
    for (const { at, after } of call.memory) {
      const bytes = Buffer.from(after, 'base64');
      [this.scratch, ...this.#memories].some((memory) => memory.writeAt(Number(values[at]), bytes));
    }
    return call.code ?? CODE.functionNotFound;
  }

  /** The recorded call with the same arguments. If there are several, the latest whose request has the same bytes; if none has, the latest of all. */
  #matching(symbol: string, types: string, values: readonly Handle[]): RecordedCall | undefined {
    const scalars = values.map((value, at) => (types[at] === 'p' ? '' : String(value)));
    const calls = this.#calls.get(callKey({ symbol, types, values: scalars })) ?? [];
    return (
      calls.findLast((call) => call.memory.every((memory) => this.#isAsked(values[memory.at] as Handle, memory.before))) ?? calls.at(-1)
    );
  }

  #isAsked(address: Handle, before: string): boolean {
    const wanted = Buffer.from(before, 'base64');
    const found = [this.scratch, ...this.#memories].map((memory) => memory.copyFrom(Number(address))).find((bytes) => bytes !== undefined);
    return found?.subarray(0, wanted.length).equals(wanted) === true;
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
    for (const call of all) {
      const key = callKey(call);
      calls.set(key, [...(calls.get(key) ?? []), call]);
    }
    this.#calls = calls;
    const symbols = all.flatMap(({ symbol, code }) => (code === undefined ? [] : [symbol]));
    // While no event came, its function has no answer in the file.
    const takers = [...TAKES_EVENT].flatMap(([taker, creator]) => (symbols.includes(creator) ? [taker] : []));
    this.#symbols = new Set([...symbols, ...takers]);
    this.#events = all.filter(({ symbol }) => TAKES_EVENT.has(symbol));
  }
}
