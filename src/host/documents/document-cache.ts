import type { BigIntStats } from 'node:fs';
import { lstat } from 'node:fs/promises';
import { systemWords } from '../../errors.ts';
import type { Observe } from '../../model/observation.ts';
import type { DocumentReason } from '../../model/pod-resources.ts';
import { descriptorPath, type OpenedPath, openEntry, RefusedLink } from '../fs/open-path.ts';
import { errnoName } from '../fs/tree.ts';
import { readOpened } from '../fs/untrusted-file.ts';
import type { DocumentThread } from './document-thread.ts';
import type { DocumentProblem, Parsed } from './kind.ts';

/** Each file that is being read holds an open file. */
const AT_ONCE = 8;

export interface DocumentCacheSettings<T> {
  /** Name among the kinds of the thread. */
  readonly kind: string;
  readonly mostBytes: number;
  /** Limit of all files that one round reads or keeps. The smallest files come first. */
  readonly mostRoundBytes: number;
  readonly thread: DocumentThread;
  /** Whether a value, made for some wanted names, also serves these. */
  readonly serves: (value: T, madeFor: ReadonlySet<string>, wanted: ReadonlySet<string>) => boolean;
  /** Takes each file that was read anew. */
  readonly observe?: Observe | undefined;
}

/** A document, or why it was not used. */
export type DocumentRead<T> = Parsed<T> | DocumentProblem;

export const isProblem = <T>(read: DocumentRead<T>): read is DocumentProblem => 'code' in read;

interface CachedDocument<T> {
  readonly mark: string;
  readonly wanted: ReadonlySet<string>;
  readonly read: DocumentRead<T>;
}

/**
 * Documents of other programs, parsed and cut down. A file is read again only when its metadata changed or other names are wanted. A file that
 * is not complete is read once more, because a write can end within one tick of the clock of the file system.
 */
export class DocumentCache<T> {
  readonly #settings: DocumentCacheSettings<T>;
  #known = new Map<string, CachedDocument<T>>();
  /** The files that this round used. */
  #used = new Map<string, CachedDocument<T>>();
  #roundBytes = 0n;

  constructor(settings: DocumentCacheSettings<T>) {
    this.#settings = settings;
  }

  /** Reads regular files of an open directory. A file that is absent has no result. Never rejects. */
  async read(directory: OpenedPath, names: readonly string[], wanted: ReadonlySet<string>): Promise<Map<string, DocumentRead<T>>> {
    const found = new Map<string, DocumentRead<T>>();
    const files: { readonly name: string; readonly stats: BigIntStats }[] = [];
    await forEachOf(names, AT_ONCE, async (name) => {
      const stats = await lstat(descriptorPath(directory, name), { bigint: true }).catch(() => undefined);
      if (stats !== undefined) files.push({ name, stats });
      else this.#settings.observe?.({ kind: 'absent', path: `${directory.path}/${name}` });
    });
    files.sort((a, b) => (a.stats.size < b.stats.size ? -1 : a.stats.size > b.stats.size ? 1 : a.name < b.name ? -1 : 1));
    for (const { name, stats } of files) {
      const read = await this.#readOne(directory, name, stats, wanted);
      if (read !== undefined) found.set(name, read);
    }
    return found;
  }

  /** Ends a round: forgets the files that it did not use. */
  endRound(): void {
    this.#known = this.#used;
    this.#used = new Map();
    this.#roundBytes = 0n;
  }

  async #readOne(
    directory: OpenedPath,
    name: string,
    stats: BigIntStats,
    wanted: ReadonlySet<string>,
  ): Promise<DocumentRead<T> | undefined> {
    const { mostRoundBytes, serves, mostBytes } = this.#settings;
    const path = `${directory.path}/${name}`;
    const isAgain = this.#used.has(path);
    if (stats.isFile() && stats.size <= mostBytes && !isAgain) this.#roundBytes += stats.size;
    if (this.#roundBytes > mostRoundBytes && !isAgain)
      return problem('too-large', path, `with the smaller files beside it, it is larger than ${mostRoundBytes} bytes`);
    // The mark is older than the content, so that a write between both leads to another read.
    const mark = [stats.dev, stats.ino, stats.mtimeNs, stats.ctimeNs, stats.size].join(':');
    const known = this.#used.get(path) ?? this.#known.get(path);
    const isCurrent = known?.mark === mark;
    if (
      known !== undefined &&
      isCurrent &&
      (isProblem(known.read) || (known.read.isComplete && serves(known.read.value, known.wanted, wanted)))
    ) {
      this.#used.set(path, known);
      return known.read;
    }
    const parsed = await this.#parse(directory, name, wanted);
    if (parsed === undefined) return undefined;
    const read = isProblem(parsed) ? parsed : { ...parsed, isComplete: parsed.isComplete || isCurrent };
    if (!isProblem(read) || read.code !== 'unreadable') this.#used.set(path, { mark, wanted, read });
    return read;
  }

  async #parse(directory: OpenedPath, name: string, wanted: ReadonlySet<string>): Promise<DocumentRead<T> | undefined> {
    const { kind, mostBytes, thread, observe } = this.#settings;
    const path = `${directory.path}/${name}`;
    const bytes = await readEntry(directory, name, mostBytes);
    if (bytes === undefined) return undefined;
    if (!Buffer.isBuffer(bytes)) {
      observe?.({ kind: 'error', path, errno: bytes.code });
      return bytes;
    }
    observe?.({ kind: 'file', path, bytes });
    const answer = await thread.parse({ kind, bytes, wanted: [...wanted] });
    return 'code' in answer ? problem(answer.code, path, answer.reason) : (answer as Parsed<T>);
  }
}

/** Undefined: absent. */
async function readEntry(directory: OpenedPath, name: string, mostBytes: number): Promise<Buffer | DocumentProblem | undefined> {
  const path = `${directory.path}/${name}`;
  let opened: OpenedPath | undefined;
  try {
    opened = await openEntry(directory, name);
    if (!opened.stats.isFile()) return problem('not-a-file', path, 'not a regular file');
    return (await readOpened(opened, mostBytes)) ?? problem('too-large', path, `larger than ${mostBytes} bytes`);
  } catch (error) {
    if (error instanceof RefusedLink) return problem('not-a-file', path, error.message);
    return errnoName(error) === 'ENOENT' ? undefined : problem('unreadable', path, systemWords(error));
  } finally {
    await opened?.handle.close().catch(() => undefined);
  }
}

function problem(code: DocumentReason, path: string, reason: string): DocumentProblem {
  return { code, message: `${path}: ${reason}` };
}

/** Opens a directory while `work` runs. Undefined when the directory is absent. Never rejects when `work` never does. */
export async function inDirectory<T>(
  path: string,
  opening: Promise<OpenedPath>,
  work: (directory: OpenedPath) => Promise<T>,
): Promise<T | DocumentProblem | undefined> {
  let directory: OpenedPath;
  try {
    directory = await opening;
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(errnoName(error))) return undefined;
    return problem(error instanceof RefusedLink ? 'not-a-file' : 'unreadable', path, systemWords(error));
  }
  try {
    return await work(directory);
  } finally {
    await directory.handle.close().catch(() => undefined);
  }
}

/** Calls `work` for each item, at most `most` at the same time. */
export async function forEachOf<T>(items: readonly T[], most: number, work: (item: T) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < items.length) await work(items[next++] as T);
  };
  await Promise.all(Array.from({ length: Math.min(most, items.length) }, worker));
}
