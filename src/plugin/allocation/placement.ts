import { type Device, deviceKey } from '../../model/device.ts';
import type { Offer } from '../offers/inventory.ts';

/** Location of one offered id in the node's topology. */
export interface Placement {
  readonly id: string;
  /** Key of the device; the same for all its replicas. */
  readonly device: string;
  /** Key of the parent device (the GPU of an instance, the physical function of a virtual one), or of the device itself when it has no parent. */
  readonly physical: string;
  readonly numaNode?: number;
  /** From the root complex down to the device itself; empty when unknown. */
  readonly pciPath: readonly string[];
  /** Number of direct links between the devices, keyed by `device` of the other end. */
  readonly links: ReadonlyMap<string, number>;
}

export function placementsOf(offers: readonly Offer[]): Placement[] {
  const places = new Map<Device, Omit<Placement, 'id'>>();
  return offers.map(({ id, baseId, devices }) => {
    const device = devices.length === 1 ? devices[0]?.device : undefined;
    if (device === undefined) return { id, device: baseId, physical: baseId, pciPath: [], links: new Map() };
    const place = places.get(device) ?? placeOf(device);
    places.set(device, place);
    return { id, ...place };
  });
}

function placeOf(device: Device): Omit<Placement, 'id'> {
  const keyOf = (id: string): string => deviceKey({ family: device.family, id });
  const place = {
    device: deviceKey(device),
    physical: keyOf(device.parent ?? device.id),
    pciPath: device.pciPath?.split('/') ?? [],
    links: new Map((device.peers ?? []).map((peer) => [keyOf(peer.device), peer.links])),
  };
  return device.numaNode === undefined ? place : { ...place, numaNode: device.numaNode };
}

/** Its absolute value is larger than the sum of all other nearness values of a set. */
const SAME_DEVICE = -1_000_000;

/** Nearness of two parts of one physical device, with or without a known PCI path. */
const ONE_BOARD = 70;

/**
 * Nearness of two places; a larger value is nearer. One direct link outweighs every PCIe distance. Parts of one board come before boards
 * below one switch. Replicas of one device are furthest: the second adds no hardware. The levels are those of vendors' tools: PSB, PIX, PXB, PHB, NODE, SYS.
 */
export function nearness(a: Placement, b: Placement): number {
  if (a.device === b.device) return SAME_DEVICE;
  const links = Math.max(a.links.get(b.device) ?? 0, b.links.get(a.device) ?? 0);
  return 100 * links + pcieNearness(a, b);
}

function pcieNearness(a: Placement, b: Placement): number {
  if (a.physical === b.physical) return ONE_BOARD;
  let common = 0;
  while (common < Math.min(a.pciPath.length, b.pciPath.length) && a.pciPath[common] === b.pciPath[common]) common += 1;
  if (common >= 2) {
    const below = Math.max(a.pciPath.length, b.pciPath.length) - common;
    return below <= 1 ? 60 : below === 2 ? 50 : 40;
  }
  if (common === 1) return 30;
  return a.numaNode !== undefined && a.numaNode === b.numaNode ? 20 : 10;
}
