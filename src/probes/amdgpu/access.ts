import type { DeviceAccess } from '../../model/access.ts';
import type { Device } from '../../model/device.ts';

/** Returns what a container needs to use a GPU: the node of the compute driver, and the nodes of the GPU. ROCm's plugin gives the same. */
export function access({ characterDevices = [] }: Device): DeviceAccess {
  return { deviceNodes: characterDevices.map((path) => ({ path, permissions: 'rw' })) };
}
