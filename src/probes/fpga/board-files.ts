import type { Tree } from '../../host/fs/tree.ts';
import type { Problem } from '../../model/collection.ts';
import { IMPOSSIBLE } from '../kit/sensor-limits.ts';
import { byNumbers } from './name-order.ts';
import type { ProblemCode } from './problems.ts';

/** Result of reading one file: a value, no such value (`isFailed` false), or a failed read (`isFailed` true). */
export type FileFact<T> =
  | { readonly value: T; readonly isFailed: false; readonly error?: undefined }
  | { readonly value?: undefined; readonly isFailed: boolean; readonly error: string };

/**
 * Errors that mean "this board has no such value": the file or function does not exist, the feature is not supported, there is no
 * data, or nothing is loaded.
 */
const ABSENT: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR', 'ENODEV', 'ENXIO', 'ENODATA', 'EOPNOTSUPP', 'EINVAL', 'EHUNG']);

/** Errors that mean "the value exists but is not available now". They are no problem by themselves; the caller judges them. */
const BUSY: ReadonlySet<string> = new Set(['EBUSY', 'EAGAIN']);

/** Returns the problem code for a read error; undefined when the error is not a problem. */
export function problemOf(error: string): ProblemCode | undefined {
  if (ABSENT.has(error) || BUSY.has(error)) return undefined;
  if (error === IMPOSSIBLE) return 'impossible-value';
  return error === 'EACCES' || error === 'EPERM' ? 'permission-denied' : 'read-failed';
}

/** Reads the files of one board. An existing file that cannot be read or parsed becomes a problem of that device. */
export class BoardFiles {
  readonly sys: Tree;
  readonly directory: string;
  readonly #problems: Problem[];
  readonly #device: string;

  constructor(sys: Tree, directory: string, device: string, problems: Problem[]) {
    this.sys = sys;
    this.directory = directory;
    this.#device = device;
    this.#problems = problems;
  }

  /** Returns the files of the same device in another directory. */
  in(directory: string): BoardFiles {
    return new BoardFiles(this.sys, directory, this.#device, this.#problems);
  }

  path(file: string): string {
    return `${this.directory}/${file}`;
  }

  fact<T>(file: string, parse: (text: string) => T | undefined): FileFact<T> {
    const { text, error } = this.sys.read(this.path(file));
    if (error !== undefined) return this.#unread(file, error);
    if (text.trim() === '') return { isFailed: false, error: 'empty' };
    const value = parse(text);
    if (value !== undefined) return { value, isFailed: false };
    this.#problem('unparsable', `/sys/${this.path(file)}: not of a known form`);
    return { isFailed: true, error: 'unparsable' };
  }

  value<T>(file: string, parse: (text: string) => T | undefined): T | undefined {
    return this.fact(file, parse).value;
  }

  /** Returns the trimmed text; undefined when the file is absent or empty. */
  text(file: string): string | undefined {
    return this.value(file, (text) => text.trim() || undefined);
  }

  /** Tells that a file holds a value that its sensor cannot measure. */
  impossible(file: string): void {
    this.#unread(file, IMPOSSIBLE);
  }

  /** Returns the names in the directory that match, sorted by the numbers in them. */
  names(pattern: RegExp): readonly string[] {
    const names = this.sys.list(this.directory).filter((name) => pattern.test(name));
    return names.sort(byNumbers);
  }

  #unread(file: string, error: string): FileFact<never> {
    const code = problemOf(error);
    if (code !== undefined) this.#problem(code, `/sys/${this.path(file)}: ${error}`);
    return { isFailed: !ABSENT.has(error), error };
  }

  #problem(code: ProblemCode, message: string): void {
    this.#problems.push({ code, message, device: this.#device });
  }
}
