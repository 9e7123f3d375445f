import type { DeviceAccess } from '../../model/access.ts';
import type { Device } from '../../model/device.ts';

/**
 * Returns what a container needs to use a drive: the nodes of the namespace, or those of the controller and its namespaces. A drive of a
 * virtual machine needs its VFIO group, and its address in the variable that KubeVirt reads.
 */
export function access({ characterDevices = [], driver, pciAddress }: Device): DeviceAccess {
  return {
    deviceNodes: characterDevices.map((path) => ({ path, permissions: 'rw' })),
    ...(driver === 'vfio-pci' && pciAddress !== undefined && { env: { 'PCI_RESOURCE_{RESOURCE}': pciAddress } }),
  };
}
