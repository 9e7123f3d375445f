import { lstatSync, readdirSync, readlinkSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { EntryKind, Observe } from '../../model/observation.ts';
import type { StepGuard } from '../fs/step-guard.ts';
import { errnoName, type ReadResult, Tree } from '../fs/tree.ts';

/** Errors that the absence of a file gives. */
const ABSENT: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR']);
/** Links in one path. The kernel has the same limit. */
const MOST_LINKS = 40;

/** A tree that reports what each read gave. It reads exactly what a {@link Tree} reads, and the links on the way. */
export class RecordedTree extends Tree {
  readonly #observe: Observe;

  constructor(root: string, guard: StepGuard | undefined, observe: Observe) {
    super(root, guard);
    this.#observe = observe;
  }

  override read(path: string): ReadResult {
    return this.#noted(path, super.read(path));
  }

  override reread(path: string): ReadResult {
    return this.#noted(path, super.reread(path));
  }

  override bytes(path: string, limit: number): Buffer | undefined {
    const bytes = super.bytes(path, limit);
    const place = this.#place(path);
    if (bytes !== undefined) this.#observe({ kind: 'file', path: place, bytes: Uint8Array.from(bytes) });
    else this.#notePresence(path);
    return bytes;
  }

  override listing(path: string): ReturnType<Tree['listing']> {
    const listing = super.listing(path);
    const place = this.#place(path);
    if (listing.names === undefined) this.#noteError(place, listing.error);
    else {
      const entries = entriesOf(place, listing.names);
      this.#observe({ kind: 'directory', path: place, entries });
      for (const [name, kind] of entries) if (kind === 'link') this.#noteLink(join(place, name));
    }
    return listing;
  }

  /** Each name counts when the caller reads its entry. */
  override *names(path: string): Generator<string, void> {
    let isEmpty = true;
    try {
      for (const name of super.names(path)) {
        isEmpty = false;
        yield name;
      }
    } catch (error) {
      this.#noteError(this.#place(path), errnoName(error));
      throw error;
    }
    if (isEmpty) this.#observe({ kind: 'directory', path: this.#place(path), entries: [] });
  }

  override identity(path: string): string | undefined {
    this.#notePresence(path);
    return super.identity(path);
  }

  override exists(path: string): boolean {
    this.#notePresence(path);
    return super.exists(path);
  }

  override link(path: string): string | undefined {
    const full = this.path(path);
    const place = join(this.#resolve(dirname(full)), basename(full));
    const target = super.link(path);
    this.#observe(target === undefined ? presenceOf(place) : { kind: 'link', path: place, target });
    return target;
  }

  override realpath(path: string): string | undefined {
    this.#notePresence(path);
    return super.realpath(path);
  }

  #noted(path: string, result: ReadResult): ReadResult {
    const place = this.#place(path);
    if (result.text === undefined) this.#noteError(place, result.error);
    else this.#observe({ kind: 'file', path: place, bytes: Buffer.from(result.text, 'utf8') });
    return result;
  }

  #noteError(path: string, errno: string): void {
    // A listing also fails with ENOTDIR where a file is.
    this.#observe(ABSENT.has(errno) ? presenceOf(path) : { kind: 'error', path, errno });
  }

  #noteLink(path: string): void {
    const target = linkAt(path);
    if (target !== undefined) this.#observe({ kind: 'link', path, target });
  }

  #notePresence(path: string): void {
    this.#observe(presenceOf(this.#place(path)));
  }

  #place(path: string): string {
    return this.#resolve(this.path(path));
  }

  /** Follows the links below the root, and reports each one. The rest of a path that does not exist stays as it is. */
  #resolve(full: string): string {
    if (!full.startsWith(`${this.root}/`)) return full;
    let rest = full.slice(this.root.length + 1).split('/');
    let at = this.root;
    for (let links = 0; rest.length > 0; ) {
      const [name = '', ...later] = rest;
      rest = later;
      if (name === '..') {
        at = dirname(at);
        continue;
      }
      const next = join(at, name);
      const target = linkAt(next);
      if (target === undefined) {
        at = next;
        continue;
      }
      this.#observe({ kind: 'link', path: next, target });
      links += 1;
      if (links > MOST_LINKS) return next;
      if (target.startsWith('/')) at = '/';
      rest = [...target.split('/').filter((part) => part !== '' && part !== '.'), ...rest];
    }
    return at;
  }
}

function linkAt(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}

function presenceOf(path: string): Parameters<Observe>[0] {
  try {
    return { kind: 'present', path, entry: kindOf(lstatSync(path)) };
  } catch {
    return { kind: 'absent', path };
  }
}

function entriesOf(path: string, names: readonly string[]): readonly (readonly [string, EntryKind])[] {
  try {
    return readdirSync(path, { withFileTypes: true }).map((entry) => [entry.name, kindOf(entry)] as const);
  } catch {
    return names.map((name) => [name, 'other'] as const);
  }
}

const kindOf = (entry: { isFile(): boolean; isDirectory(): boolean; isSymbolicLink(): boolean }): EntryKind =>
  entry.isSymbolicLink() ? 'link' : entry.isDirectory() ? 'directory' : entry.isFile() ? 'file' : 'other';
