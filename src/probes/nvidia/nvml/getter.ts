import { CHANGE, changeOf } from './changes.ts';
import { CODE } from './codes.ts';
import type { Handle, Library, NvmlFunction } from './library.ts';
import type { Memory } from './memory.ts';
import type { Form, Place, Sheet, Values } from './sheet.ts';

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
  /** It is asked for only where none of these paths has a number: the driver tells the same in a better way. */
  readonly unless?: readonly string[];
}

/** Something that is asked of one device after another, bound to a library. */
export interface Question extends Place {
  /** Of the newest way, for the note of what is being called. */
  readonly name: string;
  readonly paths: readonly string[];
  /** As {@link Getter.unless}. */
  readonly unless: readonly string[] | undefined;
  /** Each of its values has a code of its own, so what is refused is told by the question itself. */
  readonly hasOwnCodes: boolean;
  /** Gives the code; on success, values that are others than those of the last answer are on the sheet. */
  read(sheet: Sheet): number;
}

const OUT_STRIDE = 8;

/** A getter that is bound to a library. */
export class BoundGetter implements Question {
  readonly name: string;
  readonly index: number;
  readonly word: number;
  readonly path: number;
  readonly paths: readonly string[];
  readonly unless: readonly string[] | undefined;
  readonly hasOwnCodes = false;
  readonly #change: number;
  readonly #ways: readonly BoundWay[];
  #current = 0;

  constructor(library: Library, { ways, paths, unless }: Getter, form: Form) {
    this.name = ways[0].symbol;
    this.paths = paths;
    this.unless = unless;
    const { index, word, path } = form.add(paths, Math.max(...ways.map((way) => sizeOf(way) / 4)));
    [this.index, this.word, this.path] = [index, word, path];
    this.#change = changeOf(paths);
    this.#ways = ways.flatMap((way) => BoundWay.of(library, way) ?? []);
  }

  read(sheet: Sheet): number {
    for (let way = this.#ways[this.#current]; way !== undefined; way = this.#ways[this.#current]) {
      const code = way.call(sheet.handle);
      if (code === CODE.success) {
        this.#tell(way, sheet);
        return code;
      }
      // A struct newer than the driver, or a function that is exported and not there: the next older way, from now on.
      if (code !== CODE.versionMismatch && code !== CODE.functionNotFound) return code;
      this.#current += 1;
    }
    return CODE.functionNotFound;
  }

  #tell({ out, tell }: BoundWay, sheet: Sheet): void {
    const isFirst = sheet.codes[this.index] !== CODE.success;
    if (!remember(out.words, sheet.words, this.word) && !isFirst) return;
    tell(out, sheet.values);
    sheet.move(this.path, this.paths.length, isFirst ? CHANGE.other : this.#change);
  }
}

const sizeOf = ({ outs = 1, size = outs * OUT_STRIDE, struct, after: [length] = [] }: Way): number =>
  (Math.max(size, struct?.size ?? 0, length ?? 0) + 3) & ~3;

const NO_VERSION = -1;

/** Each way has memory of its own, so that what stands beside a short answer is not the end of a longer one. */
class BoundWay {
  readonly out: Memory;
  readonly tell: Way['tell'];
  readonly #bound: NvmlFunction;
  /** After the handle. */
  readonly #params: readonly number[];
  readonly #a: number;
  readonly #b: number;
  readonly #c: number;
  readonly #d: number;
  readonly #version: number;

  private constructor(library: Library, way: Way, bound: NvmlFunction) {
    const { before = [], outs = 1, after = [], struct, tell } = way;
    this.out = library.memory(sizeOf(way));
    this.tell = tell;
    this.#bound = bound;
    this.#params = [...before, ...Array.from({ length: outs }, (_, index) => this.out.address + index * OUT_STRIDE), ...after];
    [this.#a = 0, this.#b = 0, this.#c = 0, this.#d = 0] = this.#params;
    this.#version = struct?.version ?? NO_VERSION;
  }

  /** Undefined where the driver does not know it. */
  static of(library: Library, way: Way): BoundWay | undefined {
    const { before = [], outs = 1, after = [] } = way;
    const bound = library.bind(way.symbol, `h${'i'.repeat(before.length)}${'p'.repeat(outs)}${'u'.repeat(after.length)}`);
    return bound && new BoundWay(library, way, bound);
  }

  call(handle: Handle): number {
    if (this.#version !== NO_VERSION) this.#prepare(this.#version);
    const bound = this.#bound;
    // Spelled out for each number of arguments, since spreading them costs half of a call.
    switch (this.#params.length) {
      case 1:
        return bound(handle, this.#a);
      case 2:
        return bound(handle, this.#a, this.#b);
      case 3:
        return bound(handle, this.#a, this.#b, this.#c);
      case 4:
        return bound(handle, this.#a, this.#b, this.#c, this.#d);
      default:
        return bound(handle, ...this.#params);
    }
  }

  /** What a library of another version leaves out must not be what it wrote of another GPU. */
  #prepare(version: number): void {
    const { words } = this.out;
    for (let at = 1; at < words.length; at += 1) words[at] = 0;
    words[0] = version;
  }
}

/** True when they were others. */
function remember(words: Int32Array, seen: Int32Array, from: number): boolean {
  let differs = false;
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at] as number;
    if (word === seen[from + at]) continue;
    seen[from + at] = word;
    differs = true;
  }
  return differs;
}
