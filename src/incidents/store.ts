import { type FileHandle, open, readdir, stat, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { systemWords } from '../errors.ts';
import { removeLeftovers, replaceFile } from '../host/fs/replace-file.ts';
import { errnoName } from '../host/fs/tree.ts';
import { readUntrustedFile } from '../host/fs/untrusted-file.ts';
import { SingleFlight } from '../host/single-flight.ts';
import type { ChangeLog } from '../log/changes.ts';
import { type IncidentRecord, type IncidentSummary, isIncidentId, isRecord, type ListedIncident, summaryOf } from './record.ts';

export interface StoreSettings {
  /** undefined: nothing is on disk. */
  readonly directory: string | undefined;
  readonly keep: number;
  readonly keepBytes: number;
}

/** While the disk takes nothing, so many records stay in memory. */
const MOST_IN_MEMORY = 20;
const ENDING = '.json';

interface Entry {
  readonly summary: ListedIncident;
  /** 0 while it is not on disk. */
  readonly bytes: number;
}

/** Records of incidents, one file each. Memory has a list of them, and those that are not on disk. A path is only made of a listed id. */
export class IncidentStore {
  readonly #settings: StoreSettings;
  readonly #changes: ChangeLog;
  readonly #mayWrite: () => boolean;
  readonly #entries = new Map<string, Entry>();
  /** Records that are not on disk, or whose last version is not. */
  readonly #unsaved = new Map<string, IncidentRecord>();
  readonly #writes = new SingleFlight(() => this.#writeAll());

  private constructor(settings: StoreSettings, changes: ChangeLog, mayWrite: () => boolean) {
    this.#settings = settings;
    this.#changes = changes;
    this.#mayWrite = mayWrite;
  }

  /**
   * Lists the files of an earlier run. Removes files of interrupted writes, unless another process may be writing. Other files in the
   * directory stay and are reported once. While `mayWrite` is false, records stay in memory. Never rejects.
   */
  static async open(settings: StoreSettings, changes: ChangeLog, mayWrite: () => boolean = () => true): Promise<IncidentStore> {
    const store = new IncidentStore(settings, changes, mayWrite);
    if (settings.directory !== undefined) await store.#list(settings.directory);
    return store;
  }

  /** The newest first. */
  list(): readonly ListedIncident[] {
    return this.#sorted().map(([, { summary }]) => summary);
  }

  isTaken(id: string): boolean {
    return this.#entries.has(id);
  }

  /** Reads one record; undefined for an unknown id. */
  async read(id: string): Promise<RecordRead | undefined> {
    const inMemory = this.#unsaved.get(id);
    if (inMemory !== undefined) return { record: inMemory };
    const { directory } = this.#settings;
    return this.#entries.has(id) && directory !== undefined ? await readRecord(join(directory, id + ENDING), id) : undefined;
  }

  /** Stores a record or its later version. The write begins at once; versions that come meanwhile are written together. */
  save(record: IncidentRecord): void {
    const bytes = this.#entries.get(record.id)?.bytes ?? 0;
    this.#entries.set(record.id, { summary: summaryOf(record), bytes });
    // The record moves to the end, because the oldest ones leave the memory first.
    this.#unsaved.delete(record.id);
    this.#unsaved.set(record.id, record);
    void this.#writes.again();
  }

  /** Writes what stayed in memory. */
  flush(): void {
    if (this.#unsaved.size > 0) void this.#writes.again();
  }

  /**
   * Another agent wrote here, and does no more: lists its records, and writes what stayed in memory. Of an incident that both recorded, the
   * record of this agent stays, because it still grows.
   */
  async resume(isSame: (one: IncidentSummary, other: IncidentSummary) => boolean): Promise<void> {
    const { directory } = this.#settings;
    const own = this.list();
    if (directory !== undefined) await this.#list(directory);
    this.flush();
    await this.saved();
    if (directory === undefined) return;
    for (const { id } of own) {
      const isGone = !this.#unsaved.has(id) && (await stat(join(directory, id + ENDING)).catch(errnoName)) === 'ENOENT';
      if (isGone) this.#entries.delete(id);
    }
    const written = own.filter(({ id }) => this.#entries.has(id) && !this.#unsaved.has(id));
    const known = new Set(own.map(({ id }) => id));
    for (const [id, { summary }] of this.#entries) {
      if (known.has(id) || !written.some((one) => isSame(one, summary))) continue;
      this.#entries.delete(id);
      await unlink(join(directory, id + ENDING)).catch(() => undefined);
    }
  }

  /** Resolves when all that was saved before is on disk, or when the disk refused it. Never rejects. */
  async saved(): Promise<void> {
    await this.#writes.running;
  }

  /** Tries once more what the disk refused before. */
  async close(): Promise<void> {
    this.flush();
    await this.saved();
  }

  async #writeAll(): Promise<void> {
    const directory = this.#mayWrite() ? this.#settings.directory : undefined;
    let problem: string | undefined;
    const tried = new Map<string, IncidentRecord>();
    // A version that comes during a write of the same record is written after it.
    const next = (): [string, IncidentRecord] | undefined => [...this.#unsaved].find(([id, record]) => tried.get(id) !== record);
    for (let due = next(); directory !== undefined && due !== undefined && problem === undefined; due = next()) {
      const [id, record] = due;
      tried.set(id, record);
      const text = encodeRecord(record);
      problem = await failureOf(replaceFile(join(directory, id + ENDING), text));
      if (problem !== undefined) continue;
      this.#entries.set(id, { summary: summaryOf(this.#unsaved.get(id) ?? record), bytes: Buffer.byteLength(text) });
      if (this.#unsaved.get(id) === record) this.#unsaved.delete(id);
    }
    if (directory !== undefined && tried.size > 0) this.#reportProblem(directory, problem);
    await this.#limit();
  }

  /** Removes the oldest incidents above the limits. The newest one stays, whatever its size. */
  async #limit(): Promise<void> {
    const { directory, keep, keepBytes } = this.#settings;
    for (const id of [...this.#unsaved.keys()].slice(0, -MOST_IN_MEMORY)) {
      this.#unsaved.delete(id);
      if (this.#entries.get(id)?.bytes === 0) this.#entries.delete(id);
    }
    if (!this.#mayWrite()) return;
    let total = 0;
    for (const [at, [id, { bytes }]] of this.#sorted().entries()) {
      total += bytes;
      if (at === 0 || (at < keep && total <= keepBytes)) continue;
      this.#entries.delete(id);
      this.#unsaved.delete(id);
      if (directory !== undefined && bytes > 0) await unlink(join(directory, id + ENDING)).catch(() => undefined);
    }
  }

  #sorted(): [string, Entry][] {
    return [...this.#entries].sort(([a], [b]) => (a < b ? 1 : -1));
  }

  #reportProblem(directory: string, detail: string | undefined): void {
    const trouble = {
      key: directory,
      message: 'incidents cannot be saved; the newest ones are in memory only',
      ended: 'incidents could not be saved; they are saved again',
      fields: { directory },
      detail,
      remedy: 'Check that the directory of --state.file is writable and has free space.',
    };
    this.#changes.update('incidents', detail === undefined ? [] : [trouble]);
  }

  async #list(directory: string): Promise<void> {
    const names = await readdir(directory).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') this.#tellUnlisted(directory, systemWords(error));
      return [];
    });
    const foreign: string[] = [];
    for (const name of names) {
      const id = name.endsWith(ENDING) ? name.slice(0, -ENDING.length) : '';
      const left = /^(.+\.json)\.\d+\.tmp$/.exec(name)?.[1];
      if (left !== undefined && this.#mayWrite()) await removeLeftovers(join(directory, left));
      const listed = isIncidentId(id) ? await readSummary(join(directory, name), id).catch(() => undefined) : undefined;
      if (listed !== undefined) {
        const { summary, newerVersion, bytes } = listed;
        this.#entries.set(id, { summary: newerVersion === undefined ? summary : { ...summary, newerVersion }, bytes });
      } else if (left === undefined) foreign.push(name);
    }
    if (foreign.length > 0) this.#tellForeign(directory, foreign);
  }

  #tellUnlisted(directory: string, detail: string): void {
    this.#changes.begin({
      key: `incidents ${directory}`,
      message: 'the incidents of earlier runs cannot be listed',
      ended: 'the incidents of earlier runs could not be listed',
      fields: { directory },
      detail,
    });
  }

  #tellForeign(directory: string, names: readonly string[]): void {
    this.#changes.begin({
      key: `foreign ${directory}`,
      message: 'the directory of incidents has files that are not complete records; they stay unchanged',
      ended: 'the directory of incidents had files that are not complete records',
      fields: { directory, files: names.length, first: names[0] as string },
      remedy: 'Remove these files if you do not need them.',
    });
  }
}

async function failureOf(write: Promise<unknown>): Promise<string | undefined> {
  try {
    await write;
    return undefined;
  } catch (error) {
    return systemWords(error);
  }
}

const FORMAT = 'device-agent-incident';
export const VERSION = 1;
const LARGEST_BYTES = 16 * 1024 * 1024;
/** A first line is far shorter. */
const HEAD_BYTES = 16_384;

interface Head {
  readonly format?: unknown;
  readonly version?: unknown;
  readonly summary?: unknown;
}

/** A file in the list of incidents. */
export interface ListedFile {
  readonly summary: IncidentSummary;
  /** Version of the format, when this agent cannot read it. */
  readonly newerVersion?: number;
  readonly bytes: number;
}

/** Writes one JSON document. Its first line has the summary, so that a list of all incidents does not read complete files. */
export function encodeRecord(record: IncidentRecord): string {
  const head = JSON.stringify({ format: FORMAT, version: VERSION, summary: summaryOf(record) });
  return `${head.slice(0, -1)},\n"record":${JSON.stringify(record)}}\n`;
}

/** Reads the summary of a file; undefined when it is no complete file of an incident. Rejects with the error of the system. */
export async function readSummary(path: string, id: string): Promise<ListedFile | undefined> {
  let file: FileHandle | undefined;
  try {
    file = await open(path, 'r');
    const stats = await file.stat();
    if (!stats.isFile() || stats.size > LARGEST_BYTES) return undefined;
    const head = await textAt(file, 0, HEAD_BYTES);
    const end = await textAt(file, Math.max(0, stats.size - 2), 2);
    if (end !== '}\n') return undefined;
    const line = head.slice(0, head.indexOf(',\n'));
    const document = parsed(`${line}}`) as Head | undefined;
    if (document?.format !== FORMAT || typeof document.version !== 'number') return undefined;
    const summary = isSummary(document.summary, id) ? document.summary : undefined;
    if (document.version > VERSION)
      return { summary: summary ?? { ...emptySummary, id }, newerVersion: document.version, bytes: stats.size };
    return summary === undefined ? undefined : { summary, bytes: stats.size };
  } finally {
    await file?.close();
  }
}

export type RecordRead = { readonly record: IncidentRecord; readonly problem?: undefined } | { readonly problem: string };

/** Reads a complete record. Never rejects. */
export async function readRecord(path: string, id: string): Promise<RecordRead> {
  const { text, message } = await readUntrustedFile(path, LARGEST_BYTES);
  if (text === undefined) return { problem: message };
  const document = parsed(text) as (Head & { readonly record?: unknown }) | undefined;
  if (document?.format !== FORMAT) return { problem: `${path}: it is no record of an incident` };
  if (document.version !== VERSION) return { problem: `${path}: version ${document.version} of the format is newer than this agent` };
  return isRecord(document.record, id) ? { record: document.record } : { problem: `${path}: the record is not complete` };
}

async function textAt(file: FileHandle, at: number, most: number): Promise<string> {
  const { bytesRead, buffer } = await file.read(Buffer.alloc(most), 0, most, at);
  return buffer.toString('utf8', 0, bytesRead);
}

const emptySummary = { time: '', device: '', states: [], conditions: [], holders: [] } as const;

function isSummary(value: unknown, id: string): value is IncidentSummary {
  const one = (value ?? {}) as Partial<IncidentSummary>;
  const areTexts = (list: unknown): boolean => Array.isArray(list) && list.every((text) => typeof text === 'string');
  return (
    one.id === id &&
    isIncidentId(id) &&
    typeof one.time === 'string' &&
    typeof one.device === 'string' &&
    ['string', 'undefined'].includes(typeof one.hardware) &&
    [one.states, one.conditions, one.holders].every(areTexts)
  );
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
