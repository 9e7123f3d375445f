import { DirectoryMark } from './directory-mark.ts';
import type { Tree } from './fs/tree.ts';
import type { NativeFiles } from './native-files.ts';
import { isSysfs } from './sysfs.ts';

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
    const mayDiffer = this.#look(native);
    if (this.#latest !== undefined && !mayDiffer && doesStand(this.#latest)) return this.#latest;
    const now = this.#tree.listing(this.#path);
    if (this.#latest === undefined || !areEqual(this.#latest, now)) this.#latest = now;
    return this.#latest;
  }

  /** True when the names may be others than at the last look. */
  #look(native: NativeFiles | undefined): boolean {
    if (this.#mark === undefined) return true;
    if (native === this.#native) return this.#mark.renew();
    // A new mark knows nothing of what changed before it.
    this.#native = native;
    this.#mark = new DirectoryMark(this.#tree.path(this.#path), { native });
    return true;
  }
}

/** Names, or that there is no such directory: both end with a change that shows. Want of descriptors and the like ends without one. */
function doesStand({ error }: Listing): boolean {
  return error === undefined || error === 'ENOENT';
}

function areEqual(a: Listing, b: Listing): boolean {
  if (a.names === undefined || b.names === undefined) return a.error === b.error && a.names === b.names;
  return a.names.length === b.names.length && a.names.every((name, index) => name === b.names[index]);
}
