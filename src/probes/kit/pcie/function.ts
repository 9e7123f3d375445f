import { basename } from 'node:path';
import type { Tree } from '../../../host/fs/tree.ts';
import { numaNodeOf, pciPathOf } from '../../../host/pci/pci.ts';
import { defined } from '../../../model/defined.ts';
import type { Device } from '../../../model/device.ts';

/** Members of a device that come from the PCI core. */
export type PciFunction = Pick<Device, 'numaNode' | 'driver' | 'pciVendor' | 'pciDevice' | 'pciPath' | 'physicalFunction'> & {
  readonly pciAddress: string;
};

/** Reads what the PCI core keeps of a function since its enumeration, so that the read wakes nothing, and works on a dead card. */
export function readPciFunction(sys: Tree, address: string): PciFunction {
  const directory = `bus/pci/devices/${address}`;
  const id = (file: string): string | undefined => /^0x[0-9a-f]{4}$/.exec(sys.text(`${directory}/${file}`)?.toLowerCase() ?? '')?.[0];
  const nameOf = (link: string): string | undefined => {
    const target = sys.link(`${directory}/${link}`);
    return target === undefined ? undefined : basename(target);
  };
  return defined({
    pciAddress: address,
    numaNode: numaNodeOf(sys, address),
    driver: nameOf('driver'),
    pciVendor: id('vendor'),
    pciDevice: id('device'),
    pciPath: pciPathOf(sys, address),
    physicalFunction: nameOf('physfn'),
  });
}
