import type { DeviceAccess } from '../../model/access.ts';
import type { Device } from '../../model/device.ts';

/**
 * Returns the uverbs, umad, issm and connection manager nodes that a container needs to use an RDMA device. SR-IOV plugins
 * give the same nodes with the same mode, read and write, and the PCI address in the same variable. RoCE ports have no issm node.
 */
export function access({ characterDevices = [], pciAddress }: Device): DeviceAccess {
  return {
    deviceNodes: characterDevices.map((path) => ({ path, permissions: 'rw' })),
    ...(pciAddress !== undefined && { env: { 'PCIDEVICE_{RESOURCE}': pciAddress } }),
  };
}
