import { type BigIntStats, close, constants, fstat, lstat, open, writeFile } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { promisify } from 'node:util';
import { crc32 } from 'node:zlib';
import { SAFE } from './log-segments.ts';
import { removeLeftovers, replaceFile } from './replace-file.ts';
import { Cells, type Difference, difference, isChange } from './saved-change.ts';
import { isShallow } from './saved-schema.ts';
import { type FileProblemCode, readUntrustedFile } from './untrusted-file.ts';

/** Why a saved state was not used. Closed set. */
export type SavedIgnored = 'absent' | 'unreadable' | 'too-large' | 'damaged' | 'other-version';

/** What a file is: the first line of the file says it. */
export interface SavedFormat {
  readonly format: string;
  readonly version: number;
  /** For messages: `health state`. */
  readonly name: string;
}

/** A state as plain data: entries by name, in sections. Only entries that changed are written. */
export type SavedSections = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

/** A checksum says only that the file is whole: the caller checks the sections by its schema. */
export type SavedRead =
  | { readonly body: SavedSections; readonly bootId: string; readonly ignored?: undefined }
  | { readonly body?: undefined; readonly ignored: SavedIgnored; readonly message: string };

interface Header {
  readonly format: string;
  readonly version: number;
  readonly bootId: string;
}

/** The file after the last write of this run. Another agent, or a person, may have replaced it since. */
interface Left {
  readonly sections: SavedSections;
  readonly cells: Cells;
  /** Size of the text with which this run replaced the file. */
  readonly wholeBytes: number;
  readonly file: Pick<BigIntStats, 'ino' | 'size' | 'mtimeNs'>;
  /** Descriptor of the file, from the first line that was added on. */
  readonly opened?: number;
}

/** The lines after the first state may have this multiple of its size, or {@link LEAST_LOG_BYTES}. Then the file is replaced. */
const LOG_PART = 8;
const LEAST_LOG_BYTES = 262_144;
/** Longest time in which the main thread prepares a write before other work goes on. */
const TURN_MS = 1;
const BIGINT = { bigint: true } as const;
/** A directory that hangs, hangs a thread of the pool only. Each wait wakes two threads, so that a file stays open. */
const disk = {
  open: promisify(open),
  statOf: promisify(lstat) as (path: string, options: typeof BIGINT) => Promise<BigIntStats>,
  statOfOpen: promisify(fstat) as (file: number, options: typeof BIGINT) => Promise<BigIntStats>,
  append: promisify(writeFile) as (file: number, line: string) => Promise<void>,
  close: promisify(close),
};

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
    } finally {
      if (left?.opened !== undefined && left.opened !== this.#left?.opened) await disk.close(left.opened).catch(() => undefined);
    }
  }

  /** Undefined when the file must be replaced. */
  async #append(left: Left, sections: SavedSections): Promise<Left | undefined> {
    const line = await lineOf(headerOf(this.#format, this.#bootId), sections, left);
    const most = Math.min(this.#maxBytes, left.wholeBytes + Math.max(LEAST_LOG_BYTES, LOG_PART * left.wholeBytes));
    if (Number(left.file.size) + Buffer.byteLength(line) > most) return undefined;
    const opened =
      left.opened ??
      (await disk.open(this.#path, constants.O_WRONLY | constants.O_APPEND | constants.O_DSYNC | SAFE).catch(() => undefined));
    if (opened === undefined) return undefined;
    let next: Left | undefined;
    try {
      const { ino, size, mtimeNs } = left.file;
      const now =
        left.opened === undefined ? await disk.statOfOpen(opened, BIGINT) : await disk.statOf(this.#path, BIGINT).catch(() => undefined);
      if (now?.ino !== ino || now.size !== size || now.mtimeNs !== mtimeNs) return undefined;
      await disk.append(opened, line);
      next = { ...left, sections, opened, file: await disk.statOfOpen(opened, BIGINT) };
      return next;
    } finally {
      if (next === undefined && left.opened === undefined) await disk.close(opened).catch(() => undefined);
    }
  }

  /** Writes the first of the states that fits; undefined when none does. */
  async #replace(sections: SavedSections, smaller: () => readonly SavedSections[]): Promise<Left | undefined> {
    const text = await encodeSaved(this.#format, this.#bootId, sections);
    const wholeBytes = Buffer.byteLength(text);
    if (wholeBytes <= this.#maxBytes) return { sections, cells: new Cells('write'), wholeBytes, file: await replaceFile(this.#path, text) };
    const [next, ...rest] = smaller();
    return next === undefined ? undefined : await this.#replace(next, () => rest);
  }
}

/** The text of a file that has one state and no further lines. */
export async function encodeSaved(format: SavedFormat, bootId: string, sections: SavedSections): Promise<string> {
  const header = headerOf(format, bootId);
  return `${header}\n${await lineOf(header, sections)}`;
}

const headerOf = ({ format, version }: SavedFormat, bootId: string): string => JSON.stringify({ format, version, bootId } satisfies Header);

/** Decodes the text of a file. Any other text is ignored, with the reason. */
export function decodeSaved({ format, version, name }: SavedFormat, text: string): SavedRead {
  const [first = '', ...lines] = text.split('\n');
  const header = parse(first) as Partial<Header> | undefined;
  if (header?.format !== format) return ignored('damaged', `does not start with the header of a ${name}`);
  if (header.version !== version) return ignored('other-version', `has version ${header.version}; this agent uses version ${version}`);
  const body = stateOf(lines, first);
  if (body === undefined) return ignored('damaged', 'has a line that is damaged');
  return isSections(body) ? { body, bootId: String(header.bootId) } : ignored('damaged', `contains no sections of a ${name}`);
}

const isSections = (body: unknown): body is SavedSections => isMembers(body) && Object.values(body).every(isMembers);
const isMembers = (value: unknown): value is object => typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * One line: the CRC-32 of the header and itself, and JSON, in which a `bigint` is its digits. It has the complete state, or the {@link Change}
 * of the one before.
 */
async function lineOf(header: string, state: SavedSections, left?: Pick<Left, 'sections' | 'cells'>): Promise<string> {
  const turn = new Turn();
  const text = left === undefined ? await sectionsText(state, turn) : await changeText(state, left, turn);
  return `${checksum(text, header)} ${text}\n`;
}

async function changeText(state: SavedSections, { sections, cells }: Pick<Left, 'sections' | 'cells'>, turn: Turn): Promise<string> {
  const set = new Map<unknown, number[]>();
  const named: Record<string, Record<string, Difference>> = {};
  for (const section of new Set([...Object.keys(sections), ...Object.keys(state)])) {
    const [known, entries] = [sections[section], state[section] ?? {}];
    const changed: Record<string, Difference> = {};
    for (const name of new Set([...Object.keys(known ?? {}), ...Object.keys(entries)])) {
      const one = difference(known?.[name], entries[name], set, cells.of(section, name));
      if (one !== undefined) changed[name] = one;
      if (turn.isOver) await turn.next();
    }
    if (known === undefined || Object.keys(changed).length > 0) named[section] = changed;
  }
  cells.add(named);
  return `{"set":${JSON.stringify([...set].map((one) => one.flat()))},"named":${await sectionsText(named, turn)}}`;
}

async function sectionsText(sections: SavedSections, turn: Turn): Promise<string> {
  const text: string[] = [];
  for (const [section, entries] of Object.entries(sections)) {
    text.push(`${text.length === 0 ? '' : ','}${JSON.stringify(section)}:{`);
    let comma = '';
    for (const [name, value] of Object.entries(entries)) {
      text.push(`${comma}${JSON.stringify(name)}:${JSON.stringify(value, plain)}`);
      comma = ',';
      if (turn.isOver) await turn.next();
    }
    text.push('}');
  }
  return `{${text.join('')}}`;
}

/** The time in which the main thread works on a line without a pause. */
class Turn {
  #fromMs = performance.now();

  get isOver(): boolean {
    return performance.now() - this.#fromMs >= TURN_MS;
  }

  async next(): Promise<void> {
    await setImmediate();
    this.#fromMs = performance.now();
  }
}

const checksum = (text: string, header: string): string => crc32(text, crc32(header)).toString(16).padStart(8, '0');

const plain = (_name: string, value: unknown): unknown => (typeof value === 'bigint' ? String(value) : value);

/** The state after all lines. A kill can cut off the last line: then the state before it. Undefined when another line is damaged. */
function stateOf(lines: readonly string[], header: string): unknown {
  const written = lines.at(-1) === '' ? lines.slice(0, -1) : lines;
  const cells = new Cells('read');
  let state: unknown;
  for (const [at, line] of written.entries()) {
    const value = valueIn(line, header);
    if (!isShallow(value) || (at > 0 && !(isChange(value) && cells.apply(state, value))))
      return at > 0 && at === written.length - 1 ? state : undefined;
    if (at === 0) state = value;
  }
  return state;
}

function valueIn(line: string, header: string): unknown {
  const at = line.indexOf(' ');
  const text = line.slice(at + 1);
  return line.slice(0, at) === checksum(text, header) ? parse(text) : undefined;
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
