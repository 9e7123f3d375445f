import { type Device, deviceKey } from '../../model/device.ts';
import type { Offer } from '../offers/inventory.ts';

/** Where one offered id lies, as far as it is known. */
export interface Placement {
  readonly id: string;
  /** The device, whichever replica of it this is. */
  readonly device: string;
  /** The device that contains it, or itself: a GPU for its MIG instances, a PF for its VFs. */
  readonly physical: string;
  readonly numaNode?: number;
  /** From the root complex down, the device itself last; empty when unknown. */
  readonly pciPath: readonly string[];
  /** Direct links (NVLink, xGMI) by `device` of the other end. */
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

/** More than all links and distances of a set can add up to. */
const SAME_DEVICE = -1_000_000;

/** Two parts of one device, whether or not its path is known. */
const ONE_BOARD = 70;

/**
 * How near two devices are; more is nearer. One direct link outweighs every PCIe distance, and two replicas of one device are the
 * furthest, since they add nothing to each other. Parts of one board come before boards below one switch. Levels after nvidia-smi's topology matrix: PSB, PIX, PXB, PHB, NODE, SYS.
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
