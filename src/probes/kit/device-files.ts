import type { ReadResult, Tree } from '../../host/fs/tree.ts';
import type { Collection, Problem, ProblemSpec } from '../../model/collection.ts';
import { firstLine, plainText } from './text.ts';

/**
 * What a read without a value says:
 * - `absent`: the device has no such value.
 * - `silent`: the value may exist, and the device does not answer. The state of the device is the fault, not the file.
 * - `busy`: the driver refuses the read for the moment, such as during a reset or an update.
 * - `refused`: the agent has no permission. A problem of the device.
 * - `failed`: any other error. A problem of the device.
 */
type NoValue = 'absent' | 'silent' | 'busy' | 'refused' | 'failed';

/** The meaning of errors for all families. An error that is not in the table is `failed`. `empty`: the file can be read and is empty. */
const NO_VALUES: Readonly<Record<string, NoValue>> = {
  ENOENT: 'absent',
  ENOTDIR: 'absent',
  ENODATA: 'absent',
  EOPNOTSUPP: 'absent',
  empty: 'absent',
  ENODEV: 'silent',
  ENXIO: 'silent',
  EHUNG: 'silent',
  EBUSY: 'busy',
  EAGAIN: 'busy',
  EACCES: 'refused',
  EPERM: 'refused',
};

/** Errors that mean something else for one driver. */
export type DriverErrors = Readonly<Record<string, NoValue>>;

export const noValueOf = (error: string, own: DriverErrors = {}): NoValue => own[error] ?? NO_VALUES[error] ?? 'failed';

/** Stands for the errno name when a file holds a value that its sensor cannot measure. */
export const IMPOSSIBLE = 'not a possible value';

/** Stands for the errno name when a file must have a value, and is empty. */
export const EMPTY = 'no text';

/** Codes of problems of files that are not `refused` and not `read-failed`, by error. */
const CODES: Readonly<Record<string, string>> = { unparsable: 'unparsable', [IMPOSSIBLE]: 'impossible-value' };

/** Result of reading one file: a value, no such value (`isUnknown` false), or a value that is not known now. */
export type FileFact<T> =
  | { readonly value: T; readonly isUnknown: false; readonly error?: undefined }
  | { readonly value?: undefined; readonly isUnknown: boolean; readonly error: string };

interface DeviceFilesSettings {
  /** Id of the device, for its problems. */
  readonly device?: string;
  readonly errors?: DriverErrors;
  /** List that gets the problems. */
  readonly problems?: Problem[];
}

/** Reads the files of one device in one collection. Its problems name each kind of failure once, with all files of the directory. */
export class DeviceFiles {
  readonly sys: Tree;
  readonly directory: string;
  readonly problems: Problem[];
  /** Reads of values that the driver answered, and that it refused because it was busy. */
  answered = 0;
  refused = 0;
  /** True when a read of the device hangs, now or since an earlier collection. */
  isHung = false;
  readonly #settings: DeviceFilesSettings;
  readonly #failed = new Map<string, { readonly at: number; readonly files: Set<string> }>();
  readonly #listed = new Map<string, readonly string[]>();

  constructor(sys: Tree, directory: string, settings: DeviceFilesSettings = {}) {
    this.sys = sys;
    this.directory = directory;
    this.#settings = settings;
    this.problems = settings.problems ?? [];
  }

  /** Reads the same files with problems and counts of their own, for reads whose results are kept. */
  apart(): DeviceFiles {
    return new DeviceFiles(this.sys, this.directory, { ...this.#settings, problems: [] });
  }

  /** Returns the files of the same device in a directory below this one, or in another one of the tree. */
  below(name: string): DeviceFiles {
    return this.in(this.path(name));
  }

  in(directory: string): DeviceFiles {
    return new DeviceFiles(this.sys, directory, { ...this.#settings, problems: this.problems });
  }

  path(file: string): string {
    return `${this.directory}/${file}`;
  }

  /** A file that is read at each refresh. It stays open. `what`: its name in problems. */
  live<T>(file: string, parse: (text: string) => T | undefined, what = file): FileFact<T> {
    return this.#judged(what, this.sys.reread(this.path(file)), parse);
  }

  /** A file that is read rarely. */
  once<T>(file: string, parse: (text: string) => T | undefined, what = file): FileFact<T> {
    return this.#judged(what, this.sys.read(this.path(file)), parse);
  }

  /** Value of a file that is read rarely. */
  value<T>(file: string, parse: (text: string) => T | undefined): T | undefined {
    return this.once(file, parse).value;
  }

  /** First line of a text file that is read rarely, without padding; undefined when there is none or it is empty. */
  text(file: string): string | undefined {
    return this.value(file, firstLine);
  }

  /** Names in a directory, which is listed once. */
  names(directory = '.'): readonly string[] {
    const names = this.#listed.get(directory) ?? this.sys.list(this.path(directory));
    this.#listed.set(directory, names);
    return names;
  }

  has(file: string): boolean {
    const at = file.lastIndexOf('/');
    return this.names(at < 0 ? '.' : file.slice(0, at)).includes(file.slice(at + 1));
  }

  problem(code: string, message: string): void {
    const { device } = this.#settings;
    this.problems.push({ code, message, ...(device !== undefined && { device }) });
  }

  /** Takes the error of a read into account, also of one that another function did. Returns whether the value is not known now. */
  note(file: string, error: string): boolean {
    const meaning = noValueOf(error, this.#settings.errors);
    if (error === 'EHUNG') this.isHung = true;
    if (meaning === 'busy') this.refused += 1;
    if (meaning === 'refused') this.#fail('permission-denied', file, error);
    if (meaning === 'failed') this.#fail(CODES[error] ?? 'read-failed', file, error);
    return meaning !== 'absent';
  }

  #judged<T>(file: string, { text, error }: ReadResult, parse: (text: string) => T | undefined): FileFact<T> {
    const isEmpty = text !== undefined && plainText(text) === '';
    const value = text === undefined || isEmpty ? undefined : parse(text);
    if (value !== undefined) {
      this.answered += 1;
      return { value, isUnknown: false };
    }
    const why = error ?? (isEmpty ? 'empty' : 'unparsable');
    return { isUnknown: this.note(file, why), error: why };
  }

  #fail(code: string, file: string, error: string): void {
    const { at, files } = this.#failed.get(error) ?? { at: this.problems.length, files: new Set() };
    this.#failed.set(error, { at, files: files.add(file) });
    if (at === this.problems.length) this.problem(code, '');
    this.problems[at] = {
      ...(this.problems[at] as Problem),
      message: `/sys/${this.directory}: ${error} of ${[...files].sort().join(', ')}`,
    };
  }
}

const UNPARSABLE = (part: string): string => `Report the text with the kernel and the ${part}.`;
const PERMISSION = "Let the agent read the host's /sys. By default the kernel lets all users read the files that the agent needs.";

/** Problems of a family that reads files of devices. `part`: its word for a device. `failed`: remedy of a read that fails. */
export const fileProblems = (part: string, failed: string, permission = PERMISSION, unparsable = UNPARSABLE(part)) =>
  [
    {
      code: 'permission-denied',
      meaning: `A file of a ${part} exists, but the agent has no permission to read it.`,
      remedy: permission,
    },
    { code: 'read-failed', meaning: `A file of a ${part} exists but could not be read. The value is missing.`, remedy: failed },
    { code: 'unparsable', meaning: `A file of a ${part} holds text of an unknown form. The value is missing.`, remedy: unparsable },
  ] as const satisfies readonly ProblemSpec[];

/** The problem of {@link unlisted}. `paths`: the directories that the agent must be able to list. */
export const classProblem = (meaning: string, paths: string) =>
  ({
    code: 'class-unreadable',
    meaning,
    remedy: `Mount the host's /sys read-only into the agent and let it read ${paths}.`,
  }) as const satisfies ProblemSpec;

/** Collection of a family whose directory below `/sys` cannot be listed. Without the directory the machine has no such hardware. */
export function unlisted(directory: string, error: string, code = 'class-unreadable'): Collection {
  if (error === 'ENOENT') return { reports: [], problems: [], listing: 'absent' };
  return { reports: [], problems: [{ code, message: `listing /sys/${directory} fails with ${error}` }], listing: 'partial' };
}
