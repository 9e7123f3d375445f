import { stat } from 'node:fs/promises';
import { readOutsideFile } from '../../host/fs/outside-file.ts';
import type { Observe } from '../../model/observation.ts';

/** What a parser made of a file. An incomplete file is read again at the next round, even if it looks unchanged. */
export interface Parsed<T> {
  readonly value: T;
  readonly isComplete: boolean;
}

/** Parsed files of other programs. A file is read again only when its metadata changed. */
export class FileCache<T> {
  readonly #mostBytes: number;
  readonly #observe: Observe | undefined;
  readonly #parse: (text: string) => Parsed<T>;
  #known = new Map<string, { readonly mark: string; readonly value: T }>();
  /** The files that this round used. */
  #used = new Map<string, { readonly mark: string; readonly value: T }>();

  /** `observe` takes each file that was read anew. */
  constructor(mostBytes: number, parse: (text: string) => Parsed<T>, observe?: Observe) {
    this.#observe = observe;
    this.#mostBytes = mostBytes;
    this.#parse = parse;
  }

  /** Undefined when the file is absent, too large or cannot be read. Never rejects. */
  async read(path: string): Promise<Parsed<T> | undefined> {
    // The mark is older than the content, so that a write between both leads to another read.
    const mark = await markOf(path);
    if (mark === undefined) return undefined;
    const known = this.#known.get(path);
    if (known?.mark === mark) {
      this.#used.set(path, known);
      return { value: known.value, isComplete: true };
    }
    const { text } = await readOutsideFile(path, this.#mostBytes, this.#observe);
    if (text === undefined) return undefined;
    const parsed = this.#parse(text);
    if (parsed.isComplete) this.#used.set(path, { mark, value: parsed.value });
    return parsed;
  }

  /** Ends a round: forgets the files that it did not use. */
  endRound(): void {
    this.#known = this.#used;
    this.#used = new Map();
  }
}

async function markOf(path: string): Promise<string | undefined> {
  try {
    const { dev, ino, mtimeNs, ctimeNs, size } = await stat(path, { bigint: true });
    return [dev, ino, mtimeNs, ctimeNs, size].join(':');
  } catch {
    return undefined;
  }
}

/** Calls `work` for each item, at most `most` at the same time, because each call may hold an open file. */
export async function forEachOf<T>(items: readonly T[], most: number, work: (item: T) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < items.length) await work(items[next++] as T);
  };
  await Promise.all(Array.from({ length: Math.min(most, items.length) }, worker));
}
