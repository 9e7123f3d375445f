import type { DeviceAccess } from '../../model/access.ts';
import type { Device } from '../../model/device.ts';

/**
 * What a container needs to use an RDMA device: its uverbs, umad and issm devices and the connection manager's, read and
 * write, the set and mode that SR-IOV plugins hand out. RoCE ports have no issm device.
 */
export function access(device: Device): DeviceAccess {
  return { deviceNodes: (device.characterDevices ?? []).map((path) => ({ path, permissions: 'rw' })) };
}
