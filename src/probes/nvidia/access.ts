import type { DeviceAccess } from '../../model/access.ts';
import type { Device } from '../../model/device.ts';

/**
 * A GPU or MIG instance for a container. Device nodes come along with the variable, so that the container's device rules outlive
 * a rewrite of its cgroup. The minor number names the node, not the index; a MIG instance needs its GPU's node and those of its
 * two capabilities. The CDI name is the one that nvidia-ctk gives.
 */
export function access({ id, uuid, attributes = {} }: Device): DeviceAccess {
  const nodes = (attributes.nodes ?? '').split(',').filter((name) => name !== '');
  return {
    deviceNodes: nodes.map((name) => ({ path: `/dev/${name}`, permissions: 'rw' })),
    visible: {
      variable: 'NVIDIA_VISIBLE_DEVICES',
      directory: '/var/run/nvidia-container-devices',
      ids: { uuid: uuid ?? id, ...(attributes.index === undefined ? {} : { index: attributes.index }) },
    },
    cdiDevices: [`nvidia.com/gpu=${uuid ?? id}`],
  };
}
