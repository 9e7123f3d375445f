import type { DeviceAccess } from '../../model/access.ts';
import type { Device } from '../../model/device.ts';

/** Variable that SR-IOV plugins, and the programs that read it, use for the PCI address of a device. */
export const SRIOV_VARIABLE = 'PCIDEVICE_{RESOURCE}';

/** Returns the character devices of a device, read and write, as the plugins of vendors give them. `variable` gets the PCI address. */
export function nodeAccess({ characterDevices = [], pciAddress }: Device, variable?: string): DeviceAccess {
  return {
    deviceNodes: characterDevices.map((path) => ({ path, permissions: 'rw' })),
    ...(variable !== undefined && pciAddress !== undefined && { env: { [variable]: pciAddress } }),
  };
}
