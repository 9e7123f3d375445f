import { CHANGE } from './changes.ts';
import type { Handle } from './library.ts';

/** What was told of one device: numbers in base units and words, by the paths of the document of `nvidia-smi`. */
export type Values = Record<string, string | number | readonly Values[] | undefined>;

/** The code of a question that was not put yet. */
export const NOT_ASKED = -1;

/** Where on a sheet the answer to a question stands. */
export interface Place {
  /** Number of the question. */
  readonly index: number;
  /** Of the first word of its answer. */
  readonly word: number;
  /** Number of the first path that it tells. */
  readonly path: number;
}

/** The places of all questions to one kind of device. */
export class Form {
  questions = 0;
  words = 0;
  /** All that may be told, by number. */
  readonly paths: string[] = [];

  /** `words`: of 32 bits, that an answer has at most. */
  add(paths: readonly string[], words: number): Place {
    const place = { index: this.questions, word: this.words, path: this.paths.length };
    this.questions += 1;
    this.words += words;
    this.paths.push(...paths);
    return place;
  }
}

/**
 * What one device told: values, the answers as the library wrote them, so that of an answer that is the same nothing has to be made, and
 * what became different.
 */
export class Sheet {
  readonly handle: Handle;
  readonly values: Values;
  readonly form: Form;
  /** Of the last answer, by question. */
  readonly codes: Int32Array;
  /** Of the last answers with success. */
  readonly words: Int32Array;
  /** Bits of what became different. */
  change: number = CHANGE.none;
  /** Numbers of the paths at which other numbers stand since {@link rest}, as far as nothing but that changed. */
  readonly moved: Int16Array;
  /** How many. */
  movedCount = 0;
  readonly #isMoved: Uint8Array;

  constructor(handle: Handle, values: Values, form: Form) {
    this.handle = handle;
    this.values = values;
    this.form = form;
    this.codes = new Int32Array(form.questions).fill(NOT_ASKED);
    this.words = new Int32Array(form.words);
    this.moved = new Int16Array(form.paths.length);
    this.#isMoved = new Uint8Array(form.paths.length);
  }

  /** At `count` paths from one on stand other values. `change`: bits of what follows from that. */
  move(path: number, count: number, change: number): void {
    this.change |= change;
    if ((change & CHANGE.other) !== 0) return;
    for (let at = path; at < path + count; at += 1) {
      if (this.#isMoved[at] === 1) continue;
      this.#isMoved[at] = 1;
      this.moved[this.movedCount] = at;
      this.movedCount += 1;
    }
  }

  /** What moved was looked at. */
  rest(): void {
    for (let at = 0; at < this.movedCount; at += 1) this.#isMoved[this.moved[at] as number] = 0;
    this.movedCount = 0;
  }
}
