import type { DeviceAccess } from '../../model/access.ts';
import type { Device } from '../../model/device.ts';

/**
 * Returns what a container needs to use a GPU or MIG instance. It gives device nodes in addition to the variable, so the container
 * keeps its device rules after a rewrite of its cgroup. The node has the minor number, not the index. A MIG instance needs the node of
 * its GPU and the nodes of its two capabilities. The CDI name is that of nvidia-ctk. Names of the kind `k8s.device-plugin.nvidia.com/gpu`
 * need files that NVIDIA's own plugin writes, and that plugin does not run together with this one.
 */
export function access({ id, uuid, index, characterDevices = [] }: Device): DeviceAccess {
  // With an old driver, a MIG instance has a name but no UUID.
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
