import { defined } from '../../model/defined.ts';
import type { Device } from '../../model/device.ts';
import type { NetworkFunction } from './discover.ts';

export const FAMILY = 'netdev';

/** PCI-SIG vendor ids of the makers of network adapters with virtual functions. */
const VENDORS: Readonly<Record<string, string>> = {
  '0x8086': 'Intel',
  '0x15b3': 'NVIDIA',
  '0x14e4': 'Broadcom',
  '0x1dd8': 'AMD',
  '0x1924': 'AMD',
  '0x1077': 'Marvell',
  '0x177d': 'Marvell',
  '0x1425': 'Chelsio',
  '0x19e5': 'Huawei',
  '0x1137': 'Cisco',
  '0x1d0f': 'Amazon',
  '0x1ae0': 'Google',
  '0x1af4': 'Red Hat',
  '0x19ee': 'Netronome',
};

/** Builds the device of the common model. Its id is the PCI address, which is the id of SR-IOV device plugins. */
export function deviceOf(fn: NetworkFunction, isParentReported: boolean, identity: Pick<Device, 'identity'>): Device {
  const { address, kind, physicalFunction, number, driver, pciVendor, pciDevice, numaNode, pciPath, interfaces, vfioNode } = fn;
  const vendor = VENDORS[pciVendor ?? ''];
  return defined({
    family: FAMILY,
    id: address,
    ...identity,
    kind,
    aliases: [],
    pciAddress: address,
    ...(physicalFunction !== undefined && isParentReported && { parent: physicalFunction }),
    numaNode,
    vendor,
    driver,
    pciVendor,
    pciDevice,
    pciPath,
    physicalFunction,
    vfIndex: number,
    ...(interfaces.length > 0 && { netdevs: interfaces }),
    ...(vfioNode !== undefined && { characterDevices: [vfioNode, '/dev/vfio/vfio'] }),
  });
}
