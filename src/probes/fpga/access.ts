import type { DeviceAccess } from '../../model/access.ts';
import type { Device } from '../../model/device.ts';
import { nodeAccess, SRIOV_VARIABLE } from '../kit/node-access.ts';

/**
 * Returns what a container needs to use a board or a port. A DFL port has one node, read and write. A whole board has the nodes of all
 * its ports and the mode that Intel's container hook reads. It does not get the management node, which allows to program the board.
 * The tools of OPAE and XRT take a board by its PCI address.
 */
export function access(device: Device): DeviceAccess {
  const { characterDevices: paths = [], stack = '' } = device;
  const nodes = nodeAccess(device, SRIOV_VARIABLE);
  // AMD's plugin gives each node both as a device with all permissions and as a mount.
  if (stack === 'xrt') {
    return {
      ...nodes,
      deviceNodes: paths.map((path) => ({ path, permissions: 'rwm' })),
      mounts: paths.map((path) => ({ path, hostPath: path, readOnly: false })),
    };
  }
  if (device.kind !== 'fpga' || paths.length === 0) return nodes;
  return { ...nodes, annotations: { 'com.intel.fpga.mode': 'fpga.intel.com/region' } };
}
