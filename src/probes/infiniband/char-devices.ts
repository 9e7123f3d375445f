import type { Tree } from '../../host/fs/tree.ts';

/** Character devices of one RDMA device, as names below `/dev/infiniband`. */
export interface CharDevices {
  readonly uverbs: readonly string[];
  readonly umad: readonly string[];
  readonly issm: readonly string[];
}

export const NO_CHAR_DEVICES: CharDevices = { uverbs: [], umad: [], issm: [] };

/**
 * Returns the character devices of each RDMA device, keyed by its name. Source: `ibdev` files of the classes infiniband_verbs and
 * infiniband_mad. The kernel lists a name before it creates the files, so `ibdev` may not exist yet.
 */
export function findCharDevices(sys: Tree): ReadonlyMap<string, CharDevices> {
  const found = new Map<string, Record<keyof CharDevices, string[]>>();
  for (const directory of ['class/infiniband_verbs', 'class/infiniband_mad']) {
    for (const name of sys.list(directory)) {
      const kind = /^(uverbs|umad|issm)\d+$/.exec(name)?.[1] as keyof CharDevices | undefined;
      const device = kind && sys.text(`${directory}/${name}/ibdev`);
      if (kind === undefined || !device) continue;
      const entry = found.get(device) ?? { uverbs: [], umad: [], issm: [] };
      found.set(device, entry);
      entry[kind].push(name);
    }
  }
  return found;
}
