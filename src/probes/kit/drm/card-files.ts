import type { Tree } from '../../../host/fs/tree.ts';
import { canMeasure, type SensorKind } from '../../../host/hwmon.ts';
import type { Problem } from '../../../model/collection.ts';
import { IMPOSSIBLE } from '../sensor-limits.ts';
import { plainText } from './text.ts';

/** Errors that mean "this card has no such value". */
const ABSENT: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR', 'ENODEV', 'ENXIO', 'ENODATA', 'EOPNOTSUPP', 'EINVAL', 'EHUNG']);

/** Errors by which the driver refuses a read while it resets the card, or while the card sleeps. */
const REFUSED: ReadonlySet<string> = new Set(['EPERM', 'EBUSY']);

/** Codes of problems, by error. */
const CODES: Readonly<Record<string, string>> = { EACCES: 'permission-denied', unparsable: 'unparsable', [IMPOSSIBLE]: 'impossible-value' };

/** Result of reading one file: a value, no such file or value, or an existing file whose value is unknown. */
export type FileFact<T> = { readonly value: T; readonly isUnknown: false } | { readonly value?: undefined; readonly isUnknown: boolean };

/** Reads the files of one card in one collection. It collects problems, and counts reads that the driver answered and refused. */
export class CardFiles {
  readonly directory: string;
  readonly problems: Problem[] = [];
  /** Reads of values of the driver that it answered, and that it refused with EPERM or EBUSY. */
  answered = 0;
  refused = 0;
  /** True when a read of the card hangs, now or since an earlier collection. */
  isHung = false;
  readonly #sys: Tree;
  readonly #device: string;
  readonly #failed = new Map<string, string[]>();

  constructor(sys: Tree, directory: string, device: string) {
    this.#sys = sys;
    this.directory = directory;
    this.#device = device;
  }

  /** Reads the same files, and collects problems and counts of its own: for reads whose results are kept. */
  apart(): CardFiles {
    return new CardFiles(this.#sys, this.directory, this.#device);
  }

  get sys(): Tree {
    return this.#sys;
  }

  /** A file that is read at each refresh. It stays open. */
  live<T>(file: string, parse: (text: string) => T | undefined): FileFact<T> {
    return this.#judged(file, this.#sys.reread(`${this.directory}/${file}`), parse);
  }

  /** A file that is read rarely. */
  once<T>(file: string, parse: (text: string) => T | undefined): FileFact<T> {
    return this.#judged(file, this.#sys.read(`${this.directory}/${file}`), parse);
  }

  /** First line of a text file that is read rarely; undefined when there is none or it is empty. */
  text(file: string): string | undefined {
    return (
      plainText(this.#sys.read(`${this.directory}/${file}`).text ?? '')
        .split('\n')[0]
        ?.trim() || undefined
    );
  }

  /** Leaves out a value that a sensor of this kind cannot measure. */
  possible(file: string, kind: SensorKind | undefined, value: number | undefined): number | undefined {
    if (value === undefined || kind === undefined || canMeasure(kind, value)) return value;
    this.#note(IMPOSSIBLE, file);
    return undefined;
  }

  names(directory: string): readonly string[] {
    return this.#sys.list(`${this.directory}/${directory}`);
  }

  problem(code: string, message: string): void {
    this.problems.push({ code, message, device: this.#device });
  }

  /** Adds one problem for each kind of failure. Must be called after all reads. */
  finish(): void {
    for (const [error, files] of this.#failed) {
      const code = CODES[error] ?? 'read-failed';
      this.problem(code, `/sys/${this.directory}: ${error} of ${[...new Set(files)].sort().join(', ')}`);
    }
  }

  #judged<T>(file: string, { text, error }: ReturnType<Tree['read']>, parse: (text: string) => T | undefined): FileFact<T> {
    if (error !== undefined) return { isUnknown: this.#fail(file, error) };
    const value = parse(text);
    if (value !== undefined) {
      this.answered += 1;
      return { value, isUnknown: false };
    }
    if (plainText(text) === '') return { isUnknown: true };
    this.#note('unparsable', file);
    return { isUnknown: true };
  }

  /** Returns whether the file exists. */
  #fail(file: string, error: string): boolean {
    if (error === 'EHUNG') this.isHung = true;
    if (REFUSED.has(error)) this.refused += 1;
    else if (!ABSENT.has(error)) this.#note(error, file);
    return error !== 'ENOENT' && error !== 'ENOTDIR' && error !== 'ENODATA' && error !== 'EOPNOTSUPP';
  }

  #note(error: string, file: string): void {
    this.#failed.set(error, [...(this.#failed.get(error) ?? []), file]);
  }
}
