import type { DeviceAccess } from '../../model/access.ts';
import type { Device } from '../../model/device.ts';

/** Stacks whose vendor's plugin hands nodes out as devices with all permissions and, once more, as mounts. */
const MOUNTED: ReadonlySet<string> = new Set(['xrt', 'ami']);

/**
 * What a container needs to use a board or a port. A DFL port is one node, read and write; a whole board is all its ports, with the
 * mode that Intel's container hook looks for, and without the management node, which would let it program the board at will.
 */
export function access(device: Device): DeviceAccess {
  const { characterDevices: paths = [], stack = '' } = device;
  if (MOUNTED.has(stack)) {
    return {
      deviceNodes: paths.map((path) => ({ path, permissions: 'rwm' })),
      mounts: paths.map((path) => ({ path, hostPath: path, readOnly: false })),
    };
  }
  const deviceNodes = paths.map((path) => ({ path, permissions: 'rw' }));
  if (device.kind !== 'fpga' || paths.length === 0) return { deviceNodes };
  return { deviceNodes, annotations: { 'com.intel.fpga.mode': 'fpga.intel.com/region' } };
}
