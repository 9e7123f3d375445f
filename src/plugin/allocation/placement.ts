import type { Device } from '../../model/device.ts';
import { type Place, placeOf } from '../../model/locality.ts';
import type { Offer } from '../offers/inventory.ts';

/** Location of one offered id in the node's topology. */
export interface Placement extends Place {
  readonly id: string;
}

export function placementsOf(offers: readonly Offer[]): Placement[] {
  const places = new Map<Device, Place>();
  return offers.map(({ id, baseId, devices }) => {
    const device = devices.length === 1 ? devices[0]?.device : undefined;
    if (device === undefined) return { id, device: baseId, physical: baseId, pciPath: [], links: new Map() };
    const place = places.get(device) ?? placeOf(device);
    places.set(device, place);
    return { id, ...place };
  });
}
