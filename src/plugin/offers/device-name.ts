import type { Device } from '../../model/device.ts';
import type { IdStrategy } from '../../model/plugin-resource.ts';

/** Returns the id that the kubelet uses for a device, without a replica suffix. */
export function kubeletId(device: Device, strategy: IdStrategy = 'name'): string {
  if (strategy === 'uuid') return device.uuid ?? device.id;
  if (strategy === 'bdf') return device.pciAddress ?? device.id;
  if (strategy === 'index') return device.index ?? device.id;
  return device.id;
}
