import { basename, dirname } from 'node:path';
import type { Tree } from '../../../host/fs/tree.ts';
import { isPciAddress } from '../../../host/pci/pci.ts';

/** Ids of a bridge: `0x1002`, `0x1478`. */
export interface BridgeIds {
  readonly vendor: string;
  readonly device: string;
}

/**
 * PCI address of the function whose link leads to the slot. Some graphics cards have a PCIe switch of their own: the link of the GPU ends
 * at that switch, and the link to the slot is at the upper port of the switch. `isOwn` tells the bridges on the card from other bridges.
 */
export function slotFunctionOf(sys: Tree, address: string, isOwn: (ids: BridgeIds) => boolean): string {
  const real = sys.realpath(`bus/pci/devices/${address}`);
  let found = address;
  for (let at = real === undefined ? '' : dirname(real); isPciAddress(basename(at)); at = dirname(at)) {
    const id = (file: string): string => sys.text(`${at}/${file}`)?.toLowerCase() ?? '';
    if (!isOwn({ vendor: id('vendor'), device: id('device') })) break;
    found = basename(at);
  }
  return found;
}
