import { keepableDescriptors } from '../../host/descriptors.ts';
import type { Tree } from '../../host/fs/tree.ts';
import { KeptFiles } from '../../host/kept-files.ts';
import { PciFunctions } from '../../host/pci-functions.ts';

/** Of the files that may be kept, one in so many is of the PCIe side. */
const PCI_SHARE = 4;

/** What keeps files open between two reads. Made for the first device: most nodes have none. */
export interface Keepers {
  readonly files: KeptFiles;
  /** For the PCIe side of all devices. */
  readonly functions: PciFunctions;
}

/** `most`: how many counter files may be kept; negative: as many as the process can spare. */
export function makeKeepers(sys: Tree, most: number): Keepers {
  const keepable = most < 0 ? keepableDescriptors() : most;
  const files = new KeptFiles(sys, keepable);
  return { files, functions: new PciFunctions(sys, { keepable: Math.floor(keepable / PCI_SHARE), native: () => files.native }) };
}
