import type { Device } from '../../model/device.ts';
import type { IdStrategy } from '../../model/plugin-resource.ts';

/**
 * Attributes by which families tell the plugin what no field of {@link Device} has room for. Each may be absent. `pci_path` and
 * `pciPath` are the same name, since families write in either style.
 */
export const ATTRIBUTES = {
  /** Position as the vendor's tools count. */
  index: 'index',
  pciVendor: 'pciVendor',
  pciDevice: 'pciDevice',
  linkLayer: 'linkLayer',
  /** Name of the physical function. */
  pfName: 'physicalFunction',
  migProfile: 'profile',
  /** From the root complex down to the device, separated by `/`: `pci0000:00/0000:00:01.0/0000:01:00.0`. */
  pciPath: 'pciPath',
} as const;

export function attributeOf(device: Device, name: string): string | undefined {
  const exact = device.attributes?.[name];
  if (exact !== undefined) return exact;
  const plain = plainName(name);
  return Object.entries(device.attributes ?? {}).find(([other]) => plainName(other) === plain)?.[1];
}

const plainName = (name: string): string => name.replaceAll('_', '').toLowerCase();

/** The id under which the kubelet knows a device, before any replica suffix. */
export function kubeletId(device: Device, strategy: IdStrategy = 'name'): string {
  if (strategy === 'uuid') return device.uuid ?? device.id;
  if (strategy === 'bdf') return device.pciAddress ?? device.id;
  if (strategy === 'index') return attributeOf(device, ATTRIBUTES.index) ?? device.id;
  return device.id;
}
