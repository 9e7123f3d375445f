import { basename } from 'node:path';
import type { ReadResult, Tree } from '../../host/fs/tree.ts';
import type { Host } from '../../host/host.ts';
import { noValueOf } from '../kit/device-files.ts';
import { isDue, type Pace } from '../kit/pace.ts';
import { isLasting, newRetry, type Retry, wasAnswered, wasRefused } from '../kit/retry.ts';
import { captureWords, fillPath, plain, type Words } from '../kit/template.ts';
import type { DeclaredSource } from './declaration.ts';
import { findMatches, isWild, type Match } from './glob.ts';
import { type CommandRows, cellsOf, type Row } from './rows.ts';
import { textsOf } from './texts.ts';

/** Limit of values that one source has on one device. */
export const MOST_VALUES = 256;
/** Time after which the files of a glob are searched again. */
const SEARCH_MS = 30_000;
/** Limit of remembered searches. */
const MOST_SEARCHES = 65_536;

/** A place where a device was found. */
export interface Entry {
  /** Its directory below `/sys`; absent when only a command names the device. */
  readonly directory?: string;
  /** `{name}`, `{pci}` and the captures of the place. */
  readonly words: Words;
  /** Its row of each command. */
  readonly rows: Readonly<Record<string, Row | undefined>>;
}

/** One text that a source gave. */
export interface SourceValue {
  readonly text: string;
  /** Captures of the file's glob, and `{key}` of a line. */
  readonly words: Words;
  /** File or cell, for messages. */
  readonly place: string;
}

/** What went wrong with one value. */
export interface SourceFault {
  readonly code: 'value-unreadable' | 'value-invalid' | 'too-many-values';
  readonly message: string;
}

export interface SourceResult {
  readonly values: readonly SourceValue[];
  readonly faults: readonly SourceFault[];
  /** Monotonic clock of the read, when an earlier collection made it. */
  readonly readMs?: number | undefined;
}

const NOTHING: SourceResult = { values: [], faults: [] };

interface Search {
  readonly matches: readonly Match[];
  readonly isCut: boolean;
  readonly atMs: number;
}

/** A counter, and the error of its last read. */
interface RefusedFile extends Retry {
  error?: string;
}

/** Reads the sources of a declaration. It remembers which files a glob found. */
export class SourceReader {
  readonly host: Host;
  readonly #commands: CommandRows;
  readonly #searches = new Map<string, Search>();
  readonly #counters: ReadonlySet<DeclaredSource>;
  /** Counters that had a value or were refused, by path. */
  readonly #retries = new Map<string, RefusedFile>();
  /** Directories of devices in which a read hangs. */
  readonly #hung = new Set<string>();
  #pace: Pace = { nowMs: 0, graceMs: 0 };

  /** `counters`: sources of counters. A refused read of one is not repeated for a time. */
  constructor(host: Host, commands: CommandRows, counters: ReadonlySet<DeclaredSource> = new Set()) {
    this.host = host;
    this.#commands = commands;
    this.#counters = counters;
  }

  /** Must be called at the begin of each collection. */
  begin(pace: Pace): void {
    this.#pace = pace;
    this.#hung.clear();
  }

  /** Whether a read of the device hung in this collection. */
  hangs({ directory = '' }: Pick<Entry, 'directory'>): boolean {
    return this.#hung.has(directory);
  }

  /** Forgets all found files, because a device left or appeared. */
  forget(directory: string): void {
    this.host.sys.forget(directory);
    for (const known of [this.#searches, this.#retries])
      for (const key of known.keys()) if (key.startsWith(`${directory}/`)) known.delete(key);
  }

  read(source: DeclaredSource, entry: Entry): SourceResult {
    if (source.file !== undefined) return this.#files(source, source.file, entry);
    if (source.entry !== undefined) return this.#entries(source, source.entry, entry);
    if (source.link !== undefined) return this.#link(source, source.link, entry);
    if (source.command !== undefined) return this.#cell(source, entry);
    return NOTHING;
  }

  #files(source: DeclaredSource, file: string, entry: Entry): SourceResult {
    const filled = fillPath(file, entry.words);
    if (filled === undefined) return NOTHING;
    const [tree, glob] = this.#treeOf(filled, entry);
    if (glob === undefined) return NOTHING;
    const { matches, isCut } = this.#search(tree, glob);
    const values: SourceValue[] = [];
    const faults: SourceFault[] = isCut ? [tooMany(glob)] : [];
    for (const { path, captures } of matches) {
      const place = `/${tree === this.host.proc ? 'proc' : 'sys'}/${path}`;
      const { text, error } = this.#counters.has(source) ? this.#count(tree, path) : tree.reread(path);
      if (text === undefined) {
        if (error === 'EHUNG' && entry.directory !== undefined) this.#hung.add(entry.directory);
        else if (noValueOf(error) !== 'absent') faults.push({ code: 'value-unreadable', message: `reading ${place} fails with ${error}` });
        continue;
      }
      this.#take(text, source, { place, words: captureWords(captures), values, faults });
    }
    return { values, faults };
  }

  #count(tree: Tree, path: string): ReadResult {
    const { nowMs } = this.#pace;
    const retry: RefusedFile = this.#retries.get(path) ?? newRetry();
    if (retry.error !== undefined && retry.retryAtMs > nowMs) return { error: retry.error };
    const result = tree.reread(path);
    delete retry.error;
    if (result.text !== undefined) wasAnswered(retry);
    else if (isLasting(result.error)) {
      wasRefused(retry, nowMs);
      retry.error = result.error;
    }
    this.#retries.set(path, retry);
    return result;
  }

  #treeOf(path: string, { directory }: Entry): readonly [Tree, string | undefined] {
    if (path.startsWith('/sys/')) return [this.host.sys, path.slice('/sys/'.length)];
    if (path.startsWith('/proc/')) return [this.host.proc, path.slice('/proc/'.length)];
    return [this.host.sys, directory === undefined ? undefined : `${directory}/${path}`];
  }

  #search(tree: Tree, glob: string): Search {
    const key = tree === this.host.proc ? `/proc/${glob}` : glob;
    const known = this.#searches.get(key);
    if (known !== undefined && known.matches.length > 0 && !isDue(known.atMs, SEARCH_MS, this.#pace)) return known;
    const { matches, isCut } = findMatches(tree, glob, MOST_VALUES);
    const search = { matches, isCut, atMs: this.#pace.nowMs };
    if (this.#searches.size >= MOST_SEARCHES) this.#searches.clear();
    this.#searches.set(key, search);
    return search;
  }

  #entries(source: DeclaredSource, names: string, entry: Entry): SourceResult {
    const filled = fillPath(names, entry.words);
    if (filled === undefined || entry.directory === undefined) return NOTHING;
    const { matches, isCut } = this.#search(this.host.sys, `${entry.directory}/${filled}`);
    const values: SourceValue[] = [];
    const faults: SourceFault[] = isCut ? [tooMany(filled)] : [];
    for (const { path, captures } of matches) {
      const words = captureWords(captures);
      this.#take(captures[0] ?? basename(path), source, { place: `/sys/${path}`, words, values, faults });
    }
    return { values, faults };
  }

  #link(source: DeclaredSource, link: string, entry: Entry): SourceResult {
    const filled = fillPath(link, entry.words);
    if (filled === undefined || entry.directory === undefined || isWild(filled)) return NOTHING;
    const path = `${entry.directory}/${filled}`;
    const target = this.host.sys.link(path);
    const values: SourceValue[] = [];
    const faults: SourceFault[] = [];
    if (target !== undefined) this.#take(basename(target), source, { place: `/sys/${path}`, words: {}, values, faults });
    return { values, faults };
  }

  #cell(source: DeclaredSource, entry: Entry): SourceResult {
    const { command = '', pointer, column } = source;
    const row = entry.rows[command];
    const filled = pointer === undefined ? column : fillPath(pointer, entry.words);
    const values: SourceValue[] = [];
    const faults: SourceFault[] = [];
    const place = `${filled} of ${this.#commands.nameOf(command)}`;
    const cells = row === undefined || filled === undefined ? [] : cellsOf(row, filled).slice(0, MOST_VALUES + 1);
    for (const cell of cells) this.#take(cell, source, { place, words: {}, values, faults });
    const ranMs = this.#commands.ranMs(command);
    return { values, faults, readMs: ranMs === this.#pace.nowMs ? undefined : ranMs };
  }

  #take(
    text: string,
    source: DeclaredSource,
    into: { readonly place: string; readonly words: Words; readonly values: SourceValue[]; readonly faults: SourceFault[] },
  ): void {
    const { place, words, values, faults } = into;
    for (const { key, parsed } of textsOf(text, source)) {
      if (parsed.state === 'invalid')
        faults.push({ code: 'value-invalid', message: `${place} holds a text that the declaration does not describe` });
      if (parsed.state !== undefined) continue;
      if (values.length >= MOST_VALUES) {
        faults.push(tooMany(place));
        return;
      }
      values.push({ text: parsed.text, words: key === undefined ? words : { ...words, key: plain(key) }, place });
    }
  }
}

const tooMany = (place: string): SourceFault => ({ code: 'too-many-values', message: `${place} has more than ${MOST_VALUES} values` });
