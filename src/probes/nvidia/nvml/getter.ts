import { CHANGE, changeOf, type Seen } from './changes.ts';
import { CODE } from './codes.ts';
import type { Handle, Library, NvmlFunction } from './library.ts';
import type { Memory } from './memory.ts';

/** What was told of one device: numbers in base units and words, by the paths of the document of `nvidia-smi`. */
export type Values = Record<string, string | number | readonly Values[] | undefined>;

/** One function that tells something. */
export interface Way {
  readonly symbol: string;
  /** Between the handle and the answers. */
  readonly before?: readonly number[];
  /** Pointers for answers: eight bytes apart. Default 1. */
  readonly outs?: number;
  /** Bytes of an answer that is neither a struct with a version nor numbers of eight bytes. */
  readonly size?: number;
  /** After the answers: the length of a text. */
  readonly after?: readonly number[];
  /** Size and first word of a versioned struct. */
  readonly struct?: { readonly size: number; readonly version: number };
  tell(out: Memory, values: Values): void;
}

/** Something to be told, by the newest way that the driver has. */
export interface Getter {
  readonly ways: readonly [Way, ...Way[]];
  /** All that it may tell; without a value, or with the library's word, when it cannot. */
  readonly paths: readonly string[];
}

/** A getter that is bound to a library: gives the code and, on success, has told its values if they are others than those seen. */
export interface BoundGetter {
  /** Of the newest way, for the note of what is being called. */
  readonly name: string;
  readonly paths: readonly string[];
  /** Of its answer, at most. */
  readonly words: number;
  read(handle: Handle, values: Values, seen: Seen): number;
}

const OUT_STRIDE = 8;

export function bindGetter(library: Library, getter: Getter): BoundGetter {
  const ways = getter.ways.flatMap((way) => bindWay(library, way, changeOf(getter.paths)) ?? []);
  let current = 0;
  return {
    name: getter.ways[0].symbol,
    paths: getter.paths,
    words: Math.max(...getter.ways.map((way) => sizeOf(way) / 4)),
    read(handle, values, seen) {
      for (let way = ways[current]; way !== undefined; way = ways[current]) {
        const code = way(handle, values, seen);
        // A struct newer than the driver, or a function that is exported and not there: the next older way, from now on.
        if (code !== CODE.versionMismatch && code !== CODE.functionNotFound) return code;
        current += 1;
      }
      return CODE.functionNotFound;
    },
  };
}

const sizeOf = ({ outs = 1, size = outs * OUT_STRIDE, struct, after: [length] = [] }: Way): number =>
  (Math.max(size, struct?.size ?? 0, length ?? 0) + 3) & ~3;

type BoundWay = (handle: Handle, values: Values, seen: Seen) => number;

/** Each way has memory of its own, so that what stands beside a short answer is not the end of a longer one. */
function bindWay(library: Library, way: Way, change: number): BoundWay | undefined {
  const { before = [], outs = 1, after = [], struct } = way;
  const bound = library.bind(way.symbol, `h${'i'.repeat(before.length)}${'p'.repeat(outs)}${'u'.repeat(after.length)}`);
  if (bound === undefined) return undefined;
  const out = library.memory(sizeOf(way));
  const pointers = Array.from({ length: outs }, (_, index) => out.address + index * OUT_STRIDE);
  const call = caller(bound, [...before, ...pointers, ...after]);
  const { words } = out;
  return (handle, values, seen) => {
    if (struct !== undefined) {
      // What a library of another version leaves out must not be what it wrote of another GPU.
      for (let at = 1; at < words.length; at += 1) words[at] = 0;
      words[0] = struct.version;
    }
    const code = call(handle);
    if (code !== CODE.success) return code;
    const isFirst = seen.code !== CODE.success;
    if (!remember(words, seen.words) && !isFirst) return code;
    way.tell(out, values);
    seen.change = isFirst ? CHANGE.other : change;
    return code;
  };
}

/** True when they were others. */
function remember(words: Int32Array, seen: Int32Array): boolean {
  let differs = false;
  for (let at = 0; at < words.length; at += 1) {
    if (words[at] === seen[at]) continue;
    seen[at] = words[at] as number;
    differs = true;
  }
  return differs;
}

/** Spelled out for each number of arguments, since spreading them costs half of a call. */
function caller(bound: NvmlFunction, params: readonly number[]): (handle: Handle) => number {
  const [a = 0, b = 0, c = 0, d = 0] = params;
  switch (params.length) {
    case 1:
      return (handle) => bound(handle, a);
    case 2:
      return (handle) => bound(handle, a, b);
    case 3:
      return (handle) => bound(handle, a, b, c);
    case 4:
      return (handle) => bound(handle, a, b, c, d);
    default:
      return (handle) => bound(handle, ...params);
  }
}
