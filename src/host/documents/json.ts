import { type Bounds, tooDeep, tooManyEntries } from './kind.ts';

/** Parses a JSON document within its bounds. Throws `TooComplex`, and `SyntaxError` for other text. */
export function parseJson(text: string, bounds: Bounds): unknown {
  new Scan(text, bounds).valueEnd(0);
  return JSON.parse(text);
}

export interface JsonStream {
  /** The complete objects, in their order. */
  readonly objects: readonly unknown[];
  /** False when text follows that is no complete object: the stream is truncated, or it is no stream of objects. */
  readonly isComplete: boolean;
}

/** Reads JSON objects that follow each other with or without white space. It stops at the first error. Throws `TooComplex`. */
export function jsonStream(text: string, bounds: Bounds): JsonStream {
  const objects: unknown[] = [];
  const scan = new Scan(text, bounds);
  for (let at = 0; ; ) {
    while (/\s/.test(text.charAt(at))) at += 1;
    if (at >= text.length) return { objects, isComplete: true };
    const end = text[at] === '{' ? scan.valueEnd(at) : undefined;
    if (end === undefined) return { objects, isComplete: false };
    try {
      objects.push(JSON.parse(text.slice(at, end)));
    } catch {
      return { objects, isComplete: false };
    }
    at = end;
  }
}

/** Position after the list or object that begins at `start`; undefined when it does not end. Throws `TooComplex`. */
export const valueEnd = (text: string, start: number, bounds: Bounds): number | undefined => new Scan(text, bounds).valueEnd(start);

/** Counts what a text would become, without making anything of it. */
class Scan {
  readonly #text: string;
  readonly #bounds: Bounds;
  #entries = 0;

  constructor(text: string, bounds: Bounds) {
    this.#text = text;
    this.#bounds = bounds;
  }

  /** Position after the list or object that begins at `start`; undefined when it does not end. Throws `TooComplex`. */
  valueEnd(start: number): number | undefined {
    const text = this.#text;
    let depth = 0;
    for (let at = start; at < text.length; at += 1) {
      switch (text.charCodeAt(at)) {
        case 0x22: // "
          at = textEnd(text, at + 1);
          break;
        case 0x5b: // [
        case 0x7b: // {
          depth += 1;
          if (depth > this.#bounds.mostDepth) throw tooDeep(this.#bounds);
          this.#count();
          break;
        case 0x2c: // ,
          this.#count();
          break;
        case 0x5d: // ]
        case 0x7d: // }
          depth -= 1;
          if (depth === 0) return at + 1;
      }
    }
    return undefined;
  }

  #count(): void {
    this.#entries += 1;
    if (this.#entries > this.#bounds.mostEntries) throw tooManyEntries(this.#bounds);
  }
}

/** Position of the quote that ends the text which begins at `start`. */
function textEnd(text: string, start: number): number {
  for (let at = start; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 0x22) return at;
    if (code === 0x5c) at += 1;
  }
  return text.length;
}
