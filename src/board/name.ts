import { type Device, deviceKey } from '../model/device.ts';

const LONGEST_NAME = 20;
const PCI_ADDRESS = /^[\da-f]{4,8}:[\da-f]{2}:[\da-f]{2}\.\d/i;

type Named = Pick<Device, 'id' | 'kind' | 'index' | 'uuid' | 'aliases'>;

/**
 * Short name of a device for people. An id that only programs can distinguish is replaced by the index of the vendor's tools, or to the name
 * that the kernel has for the device: `eth0`.
 */
export function nameOf(device: Named): string {
  const { id, kind, index, uuid, aliases } = device;
  if (id.length <= LONGEST_NAME) return id;
  if (index !== undefined) return `${kind.toUpperCase()} ${index}`;
  return aliases.find(isShort) ?? (id === uuid ? `${id.slice(0, 12)}…` : id);
}

/** A second name of the device: its network interface or its kernel name. */
export function alsoOf(device: Named & Pick<Device, 'netdevs'>): string | undefined {
  const name = nameOf(device);
  const [also] = [...(device.netdevs ?? []), ...device.aliases.slice(0, 1)].filter(isShort);
  return also === name || name !== device.id ? undefined : also;
}

const isShort = (name: string): boolean => name.length <= LONGEST_NAME && !PCI_ADDRESS.test(name);

/** A PCI address without its domain. */
export const shortName = (name: string): string => name.replace(/^[\da-f]{4,8}:(?=[\da-f]{2}:)/i, '');

type Called = Named & Pick<Device, 'family'>;

/** All names that a person may give a command for a device. */
export const namesOf = (device: Called): readonly string[] => [
  deviceKey(device),
  device.id,
  nameOf(device),
  ...device.aliases,
  ...(device.uuid === undefined ? [] : [device.uuid]),
];

export const isCalled = (device: Called, wanted: string): boolean =>
  namesOf(device).some((name) => name.toLowerCase() === wanted.toLowerCase());
