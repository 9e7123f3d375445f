import { DirectoryListing } from '../../host/directory-listing.ts';
import type { Tree } from '../../host/fs/tree.ts';
import type { NativeFiles } from '../../host/native-files.ts';

/** Character devices that serve one RDMA device: names below `/dev/infiniband`. */
export interface CharDevices {
  readonly uverbs: readonly string[];
  readonly umad: readonly string[];
  readonly issm: readonly string[];
}

export const NO_CHAR_DEVICES: CharDevices = { uverbs: [], umad: [], issm: [] };

const VERBS = 'class/infiniband_verbs';
const MAD = 'class/infiniband_mad';

/** Tells which character devices there are. Source: `ibdev` files of the classes infiniband_verbs and infiniband_mad. */
export class CharDeviceIndex {
  readonly #sys: Tree;
  readonly #verbs: DirectoryListing;
  readonly #mad: DirectoryListing;
  #listed: readonly unknown[] = [];
  /** One is listed and does not say whose it is, as while it is being made: its name comes before its files. */
  #isPartial = false;
  #found: ReadonlyMap<string, CharDevices> = new Map();

  constructor(sys: Tree) {
    this.#sys = sys;
    this.#verbs = new DirectoryListing(sys, VERBS);
    this.#mad = new DirectoryListing(sys, MAD);
  }

  /** Per RDMA device name. The same object for as long as the same names are listed, all of them say whose they are, and until {@link forget}. */
  find(native?: NativeFiles): ReadonlyMap<string, CharDevices> {
    const listed = [this.#verbs.list(native), this.#mad.list(native)] as const;
    if (listed.every((listing, at) => listing === this.#listed[at]) && !this.#isPartial) return this.#found;
    this.#listed = listed;
    this.#isPartial = false;
    const [verbs, mad] = listed.map(({ names = [] }) => names) as [readonly string[], readonly string[]];
    const found = new Map<string, Record<keyof CharDevices, string[]>>();
    for (const name of verbs) if (/^uverbs\d+$/.test(name)) this.#note(found, VERBS, name, 'uverbs');
    for (const name of mad) {
      const kind = /^(umad|issm)\d+$/.exec(name)?.[1] as 'umad' | 'issm' | undefined;
      if (kind !== undefined) this.#note(found, MAD, name, kind);
    }
    this.#found = found;
    return found;
  }

  /** To be called when devices came or went: their names may stand for others now. */
  forget(): void {
    this.#listed = [];
  }

  #note(found: Map<string, Record<keyof CharDevices, string[]>>, directory: string, name: string, kind: keyof CharDevices): void {
    const device = this.#sys.text(`${directory}/${name}/ibdev`);
    if (device === undefined || device === '') {
      this.#isPartial = true;
      return;
    }
    const entry = found.get(device) ?? { uverbs: [], umad: [], issm: [] };
    found.set(device, entry);
    entry[kind].push(name);
  }
}
