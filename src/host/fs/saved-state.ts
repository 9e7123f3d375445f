import { type BigIntStats, constants } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { crc32 } from 'node:zlib';
import { keptFiles } from './kept-file.ts';
import { openRegular } from './log-segments.ts';
import { changeOfVersion3, stateBeforeVersion3 } from './old-saved-state.ts';
import { removeLeftovers, replaceFile } from './replace-file.ts';
import { isShallow } from './saved-schema.ts';
import { type FileProblemCode, readUntrustedFile } from './untrusted-file.ts';

/** Why a saved state was not used. Closed set. */
export type SavedIgnored = 'absent' | 'unreadable' | 'too-large' | 'damaged' | 'other-version';

/** What a file is: the first line of the file says it. */
export interface SavedFormat {
  readonly format: string;
  readonly version: number;
  /** Oldest version that can still be read. Default: `version`. */
  readonly readableFrom?: number;
  /** For messages: `health state`. */
  readonly name: string;
}

/** A state as plain data: entries by name, in sections. Only entries that changed are written. */
export type SavedSections = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

/**
 * `body`: the sections, or before version 3 one JSON value. A checksum says only that the file is whole: the caller checks the body
 * by its schema.
 */
export type SavedRead =
  | { readonly body: unknown; readonly bootId: string; readonly version: number; readonly ignored?: undefined }
  | { readonly body?: undefined; readonly ignored: SavedIgnored; readonly message: string };

/** A file that an agent kept and does not use. */
export interface KeptRead {
  readonly path: string;
  readonly saved: Extract<SavedRead, { readonly bootId: string }>;
}

interface Header {
  readonly format: string;
  readonly version: number;
  readonly bootId: string;
}

/** The file after the last write of this run. Another agent, or a person, may have replaced it since. */
interface Left {
  readonly sections: SavedSections;
  /** Size of the text with which this run replaced the file. */
  readonly wholeBytes: number;
  readonly file: Pick<BigIntStats, 'ino' | 'size' | 'mtimeNs'>;
}

/** The lines after the first state may have this multiple of its size, or {@link LEAST_LOG_BYTES}. Then the file is replaced. */
const LOG_PART = 8;
const LEAST_LOG_BYTES = 262_144;
/** Longest time in which the main thread prepares a write before other work goes on. */
const TURN_MS = 1;

/**
 * A state on disk that changes in few places. The file has a header, the complete state, and one line for each later write with what
 * changed, so that a write costs what it changes. When the lines are long, the file is replaced. After a kill or a power failure at any
 * moment the file has the previous or the next state, never a part.
 */
export class SavedStateFile {
  readonly #path: string;
  readonly #format: SavedFormat;
  readonly #bootId: string;
  readonly #maxBytes: number;
  /** Undefined at the start and after a failed write: the next write replaces the file. */
  #left: Left | undefined;

  constructor(path: string, format: SavedFormat, bootId: string, maxBytes: number) {
    this.#path = path;
    this.#format = format;
    this.#bootId = bootId;
    this.#maxBytes = maxBytes;
  }

  /** Also removes the temporary files of interrupted writes. */
  async read(): Promise<SavedRead> {
    await removeLeftovers(this.#path);
    const read = await readUntrustedFile(this.#path, this.#maxBytes);
    return read.problem === undefined ? decodeSaved(this.#format, read.text) : ignored(IGNORED[read.problem], read.reason);
  }

  /** Returns the kept files of a version that this agent reads, with their content. */
  async kept(): Promise<readonly KeptRead[]> {
    const paths = await keptFiles(this.#path);
    const reads = await Promise.all(paths.map((path) => readUntrustedFile(path, this.#maxBytes)));
    return reads.flatMap((read, at) => {
      const saved = read.problem === undefined ? decodeSaved(this.#format, read.text) : undefined;
      return saved === undefined || saved.ignored !== undefined ? [] : [{ path: paths[at] as string, saved }];
    });
  }

  /**
   * Writes what changed since the last write, one call at a time. `sections` must not change later. `smaller`: states to write instead, in
   * their order, while the file would be too large. `isLast`: replaces the file, so that the next start reads no lines. On failure the error
   * message is returned, and the file has the old state.
   */
  async write(sections: SavedSections, smaller: () => readonly SavedSections[] = () => [], isLast = false): Promise<string | undefined> {
    const left = this.#left;
    this.#left = undefined;
    try {
      this.#left =
        (left === undefined || isLast ? undefined : await this.#append(left, sections)) ?? (await this.#replace(sections, smaller));
      return this.#left === undefined ? `the state is larger than ${this.#maxBytes} bytes` : undefined;
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  }

  /** Undefined when the file must be replaced. */
  async #append(left: Left, sections: SavedSections): Promise<Left | undefined> {
    const line = await lineOf(left.sections, sections);
    const most = Math.min(this.#maxBytes, left.wholeBytes + Math.max(LEAST_LOG_BYTES, LOG_PART * left.wholeBytes));
    if (Number(left.file.size) + Buffer.byteLength(line) > most) return undefined;
    const file = await openRegular(this.#path, constants.O_WRONLY | constants.O_APPEND).catch(() => undefined);
    try {
      const { ino, size, mtimeNs } = left.file;
      const now = await file?.stat({ bigint: true });
      if (file === undefined || now?.ino !== ino || now.size !== size || now.mtimeNs !== mtimeNs) return undefined;
      await file.appendFile(line);
      await file.datasync();
      return { ...left, sections, file: await file.stat({ bigint: true }) };
    } finally {
      await file?.close();
    }
  }

  /** Writes the first of the states that fits; undefined when none does. */
  async #replace(sections: SavedSections, smaller: () => readonly SavedSections[]): Promise<Left | undefined> {
    const text = await encodeSaved(this.#format, this.#bootId, sections);
    const wholeBytes = Buffer.byteLength(text);
    if (wholeBytes <= this.#maxBytes) return { sections, wholeBytes, file: await replaceFile(this.#path, text) };
    const [next, ...rest] = smaller();
    return next === undefined ? undefined : await this.#replace(next, () => rest);
  }
}

/** The text of a file that has one state and no further lines. */
export async function encodeSaved({ format, version }: SavedFormat, bootId: string, sections: SavedSections): Promise<string> {
  const header: Header = { format, version, bootId };
  return `${JSON.stringify(header)}\n${await lineOf(undefined, sections)}`;
}

/** Decodes the text of a file. Any other text is ignored, with the reason. */
export function decodeSaved({ format, version, readableFrom = version, name }: SavedFormat, text: string): SavedRead {
  const [first = '', ...lines] = text.split('\n');
  const header = parse(first) as (Partial<Header> & { readonly sha256?: string }) | undefined;
  if (header?.format !== format) return ignored('damaged', `does not start with the header of a ${name}`);
  const isReadable = Number(header.version) >= readableFrom && Number(header.version) <= version;
  if (!isReadable) return ignored('other-version', `has version ${header.version}; this agent uses version ${version}`);
  const [bootId, written] = [String(header.bootId), Number(header.version)];
  if (written < 3) {
    const body = stateBeforeVersion3(lines[0], header.sha256);
    return body === undefined ? ignored('damaged', 'does not match its checksum') : { body, bootId, version: written };
  }
  const body = written === 3 ? stateOf(lines, changeOfVersion3, {}) : stateOf(lines, changeOf);
  if (body === undefined) return ignored('damaged', 'has a line that is damaged');
  return isSections(body) ? { body, bootId, version: written } : ignored('damaged', `contains no sections of a ${name}`);
}

const isSections = (body: unknown): body is SavedSections => isMembers(body) && Object.values(body).every(isMembers);
const isMembers = (value: unknown): value is object => typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * One line: its CRC-32, and JSON, in which a `bigint` is its digits. It has the complete state, or a {@link Difference} to the one before.
 */
async function lineOf(before: SavedSections | undefined, after: SavedSections): Promise<string> {
  let turnMs = performance.now();
  const text: string[] = [];
  for (const [section, entries] of Object.entries(after)) {
    const known = before?.[section] ?? {};
    text.push(`${text.length === 0 ? '{' : ','}${JSON.stringify(section)}:{`);
    let comma = '';
    for (const name of new Set([...Object.keys(known), ...Object.keys(entries)])) {
      const changed = before === undefined ? entries[name] : difference(known[name], entries[name]);
      if (changed === undefined) continue;
      text.push(`${comma}${JSON.stringify(name)}:${JSON.stringify(changed, plain)}`);
      comma = ',';
      if (performance.now() - turnMs < TURN_MS) continue;
      await setImmediate();
      turnMs = performance.now();
    }
    text.push('}');
  }
  const line = `${text.join('')}}`;
  return `${checksum(line)} ${line}\n`;
}

const checksum = (text: string): string => crc32(text).toString(16).padStart(8, '0');

const plain = (_name: string, value: unknown): unknown => (typeof value === 'bigint' ? String(value) : value);

/**
 * The state after all lines. `first`: the state that the first line changes; absent where it has the complete state. A kill can cut off the
 * last line: then the state before it. Undefined when another line is damaged.
 */
function stateOf(lines: readonly string[], valueIn: (line: string) => unknown, first?: object): unknown {
  const written = lines.at(-1) === '' ? lines.slice(0, -1) : lines;
  let state: unknown = first;
  for (const [at, line] of written.entries()) {
    const value = valueIn(line);
    if (state === undefined) state = isShallow(value) ? value : undefined;
    else if (isShallow(value) && isDifference(value)) state = applied(state, value);
    else if (at === 0 || at < written.length - 1) return undefined;
  }
  return state;
}

function changeOf(line: string): unknown {
  const at = line.indexOf(' ');
  const text = line.slice(at + 1);
  return line.slice(0, at) === checksum(text) ? parse(text) : undefined;
}

function ignored(reason: SavedIgnored, message: string): { readonly ignored: SavedIgnored; readonly message: string } {
  return { ignored: reason, message };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const IGNORED: Readonly<Record<FileProblemCode, SavedIgnored>> = {
  absent: 'absent',
  'too-large': 'too-large',
  'not-a-file': 'unreadable',
  unreadable: 'unreadable',
  timeout: 'unreadable',
};

/**
 * A change from one JSON value to another. `[]` removes the value, and `[value]` replaces it. An object changes members of the value, by name
 * or by index. An array of another length is replaced.
 */
export type Difference = readonly [] | readonly [unknown] | { readonly [name: string]: Difference };

type Members = Readonly<Record<string, unknown>>;

/** Undefined when JSON shows no difference. `undefined` is absent. */
export function difference(before: unknown, after: unknown): Difference | undefined {
  if (before === after) return undefined;
  if (after === undefined) return [];
  if (!isObject(before) || !isObject(after) || Array.isArray(before) !== Array.isArray(after)) return [after];
  if (Array.isArray(before) && before.length !== (after as unknown as readonly unknown[]).length) return [after];
  let found: Record<string, Difference> | undefined;
  const compare = (name: string): void => {
    const changed = difference(before[name], after[name]);
    if (changed === undefined) return;
    found ??= {};
    found[name] = changed;
  };
  for (const name in after) compare(name);
  for (const name in before) if (!(name in after)) compare(name);
  return found;
}

/** The value after a difference. Changes `before` where it can. */
export function applied(before: unknown, change: Difference): unknown {
  if (isWhole(change)) return change[0];
  const value = (isObject(before) ? before : {}) as Record<string, unknown>;
  for (const [name, one] of Object.entries(change)) {
    if (isWhole(one) && one.length === 0) delete value[name];
    else value[name] = applied(Object.hasOwn(value, name) ? value[name] : undefined, one);
  }
  return value;
}

/** Whether a parsed value is a change. Another program can write one that is none. */
export function isDifference(value: unknown): value is Difference {
  if (!isObject(value)) return false;
  return isWhole(value as Difference) ? (value as unknown as readonly unknown[]).length <= 1 : Object.values(value).every(isDifference);
}

const isObject = (value: unknown): value is Members => typeof value === 'object' && value !== null;
const isWhole = (change: Difference): change is readonly [] | readonly [unknown] => Array.isArray(change);
