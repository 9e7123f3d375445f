import { readFileSync, statSync } from 'node:fs';
import type { StepRecord } from '../fs/step-record.ts';
import { type ReadResult, Tree } from '../fs/tree.ts';

/** Errors below the roots of a replayed machine: absolute path without links to errno name. */
export type RecordedErrors = (path: string) => string | undefined;

/**
 * Reads the errors of a replay from a file of lines `ERRNO path`. No plain file fails with EINVAL, and a super user may read every file,
 * so a tree of files alone cannot repeat these errors. A changed file is read again. A file that cannot be read has no errors.
 */
export function recordedErrorsOf(file: string): RecordedErrors {
  let mark = '';
  let errors: ReadonlyMap<string, string> = new Map();
  return (path) => {
    const now = markOf(file);
    if (now !== mark) [mark, errors] = [now, readErrors(file)];
    return errors.get(path);
  };
}

function markOf(file: string): string {
  const stats = statSync(file, { bigint: true, throwIfNoEntry: false });
  return stats === undefined ? '' : `${stats.ino}:${stats.mtimeNs}:${stats.size}`;
}

function readErrors(file: string): ReadonlyMap<string, string> {
  try {
    const lines = readFileSync(file, 'utf8').split('\n');
    return new Map(
      lines.filter((line) => line.includes(' ')).map((line) => [line.slice(line.indexOf(' ') + 1), line.slice(0, line.indexOf(' '))]),
    );
  } catch {
    return new Map();
  }
}

/** A tree of files in which some reads fail as they failed on the machine of the capture. */
export class ReplayedTree extends Tree {
  readonly #errors: RecordedErrors;

  constructor(root: string, guard: StepRecord | undefined, errors: RecordedErrors) {
    super(root, guard);
    this.#errors = errors;
  }

  override read(path: string): ReadResult {
    const error = this.#errorAt(path);
    return error === undefined ? super.read(path) : { error };
  }

  override reread(path: string): ReadResult {
    const error = this.#errorAt(path);
    return error === undefined ? super.reread(path) : { error };
  }

  override bytes(path: string, limit: number): Buffer | undefined {
    return this.#errorAt(path) === undefined ? super.bytes(path, limit) : undefined;
  }

  override listing(path: string): ReturnType<Tree['listing']> {
    const error = this.#errorAt(path);
    return error === undefined ? super.listing(path) : { error };
  }

  override *names(path: string): Generator<string, void> {
    const code = this.#errorAt(path);
    if (code !== undefined) throw Object.assign(new Error(`${code}: ${path}`), { code });
    yield* super.names(path);
  }

  #errorAt(path: string): string | undefined {
    const place = this.realpath(path);
    return place === undefined ? undefined : this.#errors(place === '' ? this.root : `${this.root}/${place}`);
  }
}
