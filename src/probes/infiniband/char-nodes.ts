import { DirectoryListing } from '../../host/directory-listing.ts';
import type { Tree } from '../../host/fs/tree.ts';
import type { NativeFiles } from '../../host/native-files.ts';

/** Names below `/dev/infiniband`: the same set for as long as nothing comes or goes. */
export class CharNodes {
  readonly #directory: DirectoryListing;
  #listed: readonly string[] | undefined;
  #names: ReadonlySet<string> | undefined;

  constructor(dev: Tree) {
    this.#directory = new DirectoryListing(dev, 'infiniband');
  }

  /** Undefined when the directory cannot be seen. */
  names(native?: NativeFiles): ReadonlySet<string> | undefined {
    const { names } = this.#directory.list(native);
    if (names !== this.#listed) {
      this.#listed = names;
      this.#names = names && new Set(names);
    }
    return this.#names;
  }
}
