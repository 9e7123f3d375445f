import type { ReadResult } from './fs/tree.ts';
import type { KeptFile, KeptGroup } from './kept-group.ts';

/** Files of one directory that are read together. */
export class TextFiles {
  readonly #group: KeptGroup;
  readonly #files: readonly KeptFile[];
  /** By file, as last read: the same object as long as it says the same. */
  readonly #said: ReadResult[] = [];

  constructor(group: KeptGroup, directory: string, names: readonly string[]) {
    this.#group = group;
    this.#files = names.map((name) => group.file(`${directory}/${name}`));
  }

  /** True when one of them says something else than the last time. */
  read(): boolean {
    let isOther = false;
    for (let at = 0; at < this.#files.length; at += 1) {
      const result = this.#group.text(this.#files[at] as KeptFile);
      if (isSame(result, this.#said[at])) continue;
      this.#said[at] = result;
      isOther = true;
    }
    return isOther;
  }

  /** As last read, each undefined where there was none. */
  texts(): readonly (string | undefined)[] {
    return this.#said.map(({ text }) => text);
  }
}

/** Why a file cannot be read does not matter. */
const isSame = (a: ReadResult, b: ReadResult | undefined): boolean =>
  a === b || (b !== undefined && a.text === undefined && b.text === undefined);
