import type { DeviceAccess } from '../../model/access.ts';
import type { Device } from '../../model/device.ts';

/** Returns the nodes that a container needs to use a GPU: the card and its render node. Intel's plugin gives the same. */
export function access({ characterDevices = [] }: Device): DeviceAccess {
  return { deviceNodes: characterDevices.map((path) => ({ path, permissions: 'rw' })) };
}
