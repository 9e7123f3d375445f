import type { Tree } from '../../host/fs/tree.ts';
import type { Problem } from '../../model/collection.ts';
import { IMPOSSIBLE } from '../kit/sensor-limits.ts';
import type { ProblemCode } from './problems.ts';
import { plainText } from './text.ts';

/** Errors that mean "this drive has no such value". */
const ABSENT: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR', 'ENODEV', 'ENXIO', 'ENODATA', 'EOPNOTSUPP']);

/** Codes of problems, by error. */
const CODES: Readonly<Record<string, ProblemCode>> = {
  EACCES: 'permission-denied',
  EPERM: 'permission-denied',
  unparsable: 'unparsable',
  [IMPOSSIBLE]: 'impossible-value',
};

/** Reads the files of one device in one collection, and notes what failed. */
export class DeviceFiles {
  readonly directory: string;
  /** True when a read hangs, now or since an earlier collection. */
  isHung = false;
  readonly #sys: Tree;
  /** Files by error. */
  readonly #failed = new Map<string, string[]>();
  readonly #hung = new Set<string>();
  readonly #told: { readonly code: ProblemCode; readonly message: string }[] = [];

  constructor(sys: Tree, directory: string) {
    this.#sys = sys;
    this.directory = directory;
  }

  /** A file that is read at each refresh. It stays open. Undefined when it has no value. */
  live<T>(file: string, parse: (text: string) => T | undefined): T | undefined {
    return this.#judged(file, this.#sys.reread(`${this.directory}/${file}`), parse);
  }

  /** A file that is read rarely. */
  once<T>(file: string, parse: (text: string) => T | undefined): T | undefined {
    return this.#judged(file, this.#sys.read(`${this.directory}/${file}`), parse);
  }

  /** Text of a file that is read rarely, without padding; undefined when there is none or it is empty. */
  text(file: string): string | undefined {
    return this.once(file, (text) => plainText(text).replace(/\s+/g, ' ') || '') || undefined;
  }

  note(file: string, error: string): void {
    if (error === 'EHUNG') {
      this.isHung = true;
      this.#hung.add(file);
    } else if (!ABSENT.has(error)) this.#failed.set(error, [...(this.#failed.get(error) ?? []), file]);
  }

  problem(code: ProblemCode, message: string): void {
    this.#told.push({ code, message });
  }

  /** Whether a file exists, and could not be read. */
  hasFailed(file: string): boolean {
    return this.#hung.has(file) || [...this.#failed.values()].some((files) => files.includes(file));
  }

  /** One problem for each kind of failure, and those that were told. */
  problems(device?: string): readonly Problem[] {
    const failures = [...this.#failed].map(([error, files]) => ({
      code: CODES[error] ?? 'read-failed',
      message: `/sys/${this.directory}: ${error} of ${[...new Set(files)].sort().join(', ')}`,
    }));
    return [...failures, ...this.#told].map((each) => ({ ...each, ...(device !== undefined && { device }) }));
  }

  #judged<T>(file: string, { text, error }: ReturnType<Tree['read']>, parse: (text: string) => T | undefined): T | undefined {
    if (error !== undefined) {
      this.note(file, error);
      return undefined;
    }
    const value = parse(text);
    if (value === undefined && plainText(text) !== '') this.note(file, 'unparsable');
    return value;
  }
}
