import type { DeviceAccess } from '../../model/access.ts';
import type { Device } from '../../model/device.ts';

/**
 * A GPU or MIG instance for a container whose runtime knows NVIDIA's variable. Device nodes come along, so that the container's
 * device rules outlive a rewrite of its cgroup. The minor number names the node, not the index.
 */
export function access(device: Device): DeviceAccess {
  const minor = device.attributes?.minor;
  const nodes = ['/dev/nvidiactl', '/dev/nvidia-uvm', '/dev/nvidia-uvm-tools', ...(minor === undefined ? [] : [`/dev/nvidia${minor}`])];
  return {
    deviceNodes: nodes.map((path) => ({ path, permissions: 'rw' })),
    env: { NVIDIA_VISIBLE_DEVICES: device.id },
    cdiDevices: [`nvidia.com/gpu=${device.id}`],
  };
}
