import { DirectoryMark } from './directory-mark.ts';
import type { NativeFiles } from './native-files.ts';
import { isSysfs } from './sysfs.ts';
import type { Tree } from './tree.ts';

/** Names in a directory, sorted, or the errno name that kept them back. */
export type Listing = ReturnType<Tree['listing']>;

/** A directory that is listed at every turn: the same object for as long as it holds the same names. */
export class DirectoryListing {
  readonly #tree: Tree;
  readonly #path: string;
  /** Absent where times do not tell of changes. */
  #mark: DirectoryMark | undefined;
  #native: NativeFiles | undefined;
  #latest: Listing | undefined;

  constructor(tree: Tree, path: string) {
    this.#tree = tree;
    this.#path = path;
    this.#mark = isSysfs(tree.root) ? undefined : new DirectoryMark(tree.path(path));
  }

  /** `native`: the cheap way to look, from the time on when there is one. */
  list(native?: NativeFiles): Listing {
    if (this.#mark !== undefined && native !== this.#native) this.#mark = new DirectoryMark(this.#tree.path(this.#path), { native });
    this.#native = native;
    const changed = this.#mark?.renew() ?? true;
    if (this.#latest !== undefined && !changed) return this.#latest;
    const now = this.#tree.listing(this.#path);
    if (this.#latest === undefined || !areEqual(this.#latest, now)) this.#latest = now;
    return this.#latest;
  }
}

function areEqual(a: Listing, b: Listing): boolean {
  if (a.names === undefined || b.names === undefined) return a.error === b.error && a.names === b.names;
  return a.names.length === b.names.length && a.names.every((name, index) => name === b.names[index]);
}
