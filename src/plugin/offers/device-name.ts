import type { Device } from '../../model/device.ts';
import type { IdStrategy } from '../../model/plugin-resource.ts';

/** The id under which the kubelet knows a device, before any replica suffix. */
export function kubeletId(device: Device, strategy: IdStrategy = 'name'): string {
  if (strategy === 'uuid') return device.uuid ?? device.id;
  if (strategy === 'bdf') return device.pciAddress ?? device.id;
  if (strategy === 'index') return device.index ?? device.id;
  return device.id;
}
