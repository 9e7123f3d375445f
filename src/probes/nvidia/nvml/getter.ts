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

/** A getter that is bound to a library: gives the code and, on success, has told its values. */
export interface BoundGetter {
  /** Of the newest way, for the note of what is being called. */
  readonly name: string;
  readonly paths: readonly string[];
  read(handle: Handle, values: Values): number;
}

const OUT_STRIDE = 8;

export function bindGetter(library: Library, scratch: Memory, getter: Getter): BoundGetter {
  const ways = getter.ways.flatMap((way) => bindWay(library, scratch, way) ?? []);
  let current = 0;
  return {
    name: getter.ways[0].symbol,
    paths: getter.paths,
    read(handle, values) {
      for (let way = ways[current]; way !== undefined; way = ways[current]) {
        const code = way(handle, values);
        // A struct newer than the driver, or a function that is exported and not there: the next older way, from now on.
        if (code !== CODE.versionMismatch && code !== CODE.functionNotFound) return code;
        current += 1;
      }
      return CODE.functionNotFound;
    },
  };
}

type BoundWay = (handle: Handle, values: Values) => number;

function bindWay(library: Library, scratch: Memory, way: Way): BoundWay | undefined {
  const { before = [], outs = 1, after = [], struct } = way;
  const bound = library.bind(way.symbol, `h${'i'.repeat(before.length)}${'p'.repeat(outs)}${'u'.repeat(after.length)}`);
  if (bound === undefined) return undefined;
  const pointers = Array.from({ length: outs }, (_, index) => scratch.address + index * OUT_STRIDE);
  const call = caller(bound, [...before, ...pointers, ...after]);
  return (handle, values) => {
    if (struct !== undefined) {
      scratch.clear(struct.size);
      scratch.setU32(0, struct.version);
    }
    const code = call(handle);
    if (code === CODE.success) way.tell(scratch, values);
    return code;
  };
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
