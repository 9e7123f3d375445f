import type { Device } from '../../model/device.ts';
import { type PciePath, type Place, pciePathBetween, placeOf } from '../../model/locality.ts';
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

/** Its absolute value is larger than the sum of all other nearness values of a set. */
const SAME_DEVICE = -1_000_000;

/** Nearness of two parts of one physical device, with or without a known PCI path. */
const ONE_BOARD = 70;

const NEARNESS: Readonly<Record<PciePath, number>> = { PIX: 50, PXB: 40, PHB: 30, NODE: 20, SYS: 10 };

/**
 * Nearness of two places; a larger value is nearer. One direct link outweighs every PCIe distance. Parts of one board come before boards
 * below one switch. Replicas of one device are furthest: the second adds no hardware.
 */
export function nearness(a: Place, b: Place): number {
  if (a.device === b.device) return SAME_DEVICE;
  const links = Math.max(a.links.get(b.device) ?? 0, b.links.get(a.device) ?? 0);
  return 100 * links + (a.physical === b.physical ? ONE_BOARD : pcieNearness(a, b));
}

/** Without a known path, the NUMA node alone decides. */
function pcieNearness(a: Place, b: Place): number {
  const isOneNode = a.numaNode !== undefined && a.numaNode === b.numaNode;
  return NEARNESS[pciePathBetween(a, b) ?? (isOneNode ? 'NODE' : 'SYS')];
}
