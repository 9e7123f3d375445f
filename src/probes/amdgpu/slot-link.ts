import { basename, dirname } from 'node:path';
import type { Tree } from '../../host/fs/tree.ts';
import { isPciAddress } from '../../host/pci/pci.ts';

/** Vendor of graphics cards and of the switches on them. Bridges of AMD's processors have another vendor, 0x1022. */
const ATI = '0x1002';

/**
 * PCI address of the function whose link leads to the slot. A card of the RDNA generations has a PCIe switch of its own: the link of the
 * GPU ends at that switch, and the link to the slot is at the upper port of the switch.
 */
export function slotFunctionOf(sys: Tree, address: string): string {
  const real = sys.realpath(`bus/pci/devices/${address}`);
  let found = address;
  for (let at = real === undefined ? '' : dirname(real); isPciAddress(basename(at)); at = dirname(at)) {
    if (sys.text(`${at}/vendor`)?.toLowerCase() !== ATI) break;
    found = basename(at);
  }
  return found;
}
