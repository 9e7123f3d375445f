import type { Tree } from '../../host/fs/tree.ts';
import type { Problem } from '../../model/collection.ts';
import { byNumbers } from './name-order.ts';
import type { ProblemCode } from './problems.ts';

/** What became of one file: its value, nothing of the sort, or there and not readable. */
export type FileFact<T> =
  | { readonly value: T; readonly isFailed: false; readonly error?: undefined }
  | { readonly value?: undefined; readonly isFailed: boolean; readonly error: string };

/**
 * Errors that mean "this board has no such value": file or function not there, feature not supported, no data, or the driver
 * refuses because nothing is loaded.
 */
const ABSENT: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR', 'ENODEV', 'ENXIO', 'ENODATA', 'EOPNOTSUPP', 'EINVAL', 'EHUNG']);

/** Not a fault either, but the value exists: the caller judges it. */
const BUSY: ReadonlySet<string> = new Set(['EBUSY', 'EAGAIN']);

/** What kind of problem an error of a read is; undefined where it is none. */
export function problemOf(error: string): ProblemCode | undefined {
  if (ABSENT.has(error) || BUSY.has(error)) return undefined;
  return error === 'EACCES' || error === 'EPERM' ? 'permission-denied' : 'read-failed';
}

/** Reads the files of one board; what is there and cannot be read or understood becomes a problem of that device. */
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

  /** The same device's files in another directory. */
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

  /** Trimmed; absent when there is none or it is empty. */
  text(file: string): string | undefined {
    return this.value(file, (text) => text.trim() || undefined);
  }

  /** Names in the directory that match, in the order of the numbers in them. */
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
