import type { DeviceAccess } from '../../model/access.ts';
import type { Device } from '../../model/device.ts';

/**
 * Returns what a container needs to use a network function: the nodes of VFIO when a program in user space drives it. The SR-IOV plugin
 * gives the same nodes, and the PCI address in the same variable. A CNI plugin moves the interface of another function.
 */
export function access({ characterDevices = [], pciAddress }: Device): DeviceAccess {
  return {
    deviceNodes: characterDevices.map((path) => ({ path, permissions: 'rw' })),
    ...(pciAddress !== undefined && { env: { 'PCIDEVICE_{RESOURCE}': pciAddress } }),
  };
}
