import type { DeviceAccess } from '../../model/access.ts';
import type { Device } from '../../model/device.ts';

/**
 * A GPU or MIG instance for a container. Device nodes come along with the variable, so that the container's device rules outlive
 * a rewrite of its cgroup. The minor number names the node, not the index; a MIG instance needs its GPU's node and those of its
 * two capabilities. The CDI name is the one that nvidia-ctk gives: names of the kind `k8s.device-plugin.nvidia.com/gpu` lead to files
 * that NVIDIA's own plugin writes, and that one does not run where this one serves.
 */
export function access({ id, uuid, index, characterDevices = [] }: Device): DeviceAccess {
  // A MIG instance of an old driver has a name without being told a UUID.
  const name = uuid ?? (id.startsWith('MIG-') ? id : undefined);
  const cdiName = uuid ?? index;
  return {
    deviceNodes: characterDevices.map((path) => ({ path, permissions: 'rw' })),
    visible: {
      variable: 'NVIDIA_VISIBLE_DEVICES',
      directory: '/var/run/nvidia-container-devices',
      ids: { ...(name === undefined ? {} : { uuid: name }), ...(index === undefined ? {} : { index }) },
    },
    cdiDevices: cdiName === undefined ? [] : [`nvidia.com/gpu=${cdiName}`],
  };
}
