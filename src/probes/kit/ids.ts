import { normalizePciAddress } from '../../host/pci/pci.ts';
import type { Claim } from '../../model/allocation.ts';
import type { ClaimName } from '../../model/claim-hardware.ts';
import type { Device } from '../../model/device.ts';

/** The PCI address, where an id is one, in any spelling. Plugins always give the number of the function; without it, other text could match. */
export const addressOfId = (id: string): string | undefined => (/\.[0-7]$/.test(id.trim()) ? normalizePciAddress(id) : undefined);

export const idsWhere = (devices: readonly Device[], matches: (device: Device) => boolean): readonly string[] =>
  devices.filter(matches).map(({ id }) => id);

/** Ids of the devices that a claim names. */
export const idsOfClaim = (
  devices: readonly Device[],
  { driver, device: name }: Claim,
  namesOf: (device: Device) => readonly ClaimName[],
) => idsWhere(devices, (device) => namesOf(device).some((each) => each.driver === driver && each.device === name));

/** Ids of the devices with a graphics node, such as `renderD128`; undefined for an id that is none. The id of a share ends with a number: `card0-2`. */
export function idsOfGraphicsNode(id: string, devices: readonly Device[]): readonly string[] | undefined {
  const node = /^(?:\/dev\/dri\/)?((?:card|renderD)\d{1,6})(?:-\d{1,6})?$/.exec(id.trim())?.[1];
  return node === undefined ? undefined : idsWhere(devices, ({ characterDevices = [] }) => characterDevices.includes(`/dev/dri/${node}`));
}
