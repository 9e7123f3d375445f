import { type Device, deviceKey } from './device.ts';

/**
 * Ways between two PCIe functions, nearest first, in the words of `topo -m`. `PIX`: one bridge or switch at most. `PXB`: several, but no host
 * bridge. `PHB`: one host bridge. `NODE`: several host bridges of one NUMA node. `SYS`: the link between NUMA nodes.
 */
export const PCIE_PATHS = ['PIX', 'PXB', 'PHB', 'NODE', 'SYS'] as const;
export type PciePath = (typeof PCIE_PATHS)[number];

/** Where a PCIe function is in the node. */
export interface PciePlace {
  readonly numaNode?: number;
  /** From the root complex down to the function itself; empty when unknown. */
  readonly pciPath: readonly string[];
}

/** Where a device is in the node's topology. */
export interface Place extends PciePlace {
  /** Key of the device. */
  readonly device: string;
  /** Key of the parent device (the GPU of an instance, the physical function of a virtual one), or of the device itself when it has no parent. */
  readonly physical: string;
  /** Number of direct links between the devices, keyed by `device` of the other end. */
  readonly links: ReadonlyMap<string, number>;
}

export function placeOf(device: Device): Place {
  const keyOf = (id: string): string => deviceKey({ family: device.family, id });
  const place = {
    device: deviceKey(device),
    physical: keyOf(device.parent ?? device.id),
    pciPath: device.pciPath?.split('/') ?? [],
    links: new Map((device.peers ?? []).map((peer) => [keyOf(peer.device), peer.links])),
  };
  return device.numaNode === undefined ? place : { ...place, numaNode: device.numaNode };
}

/** A device and its place, which is made once for many pairs. */
export interface Placed {
  readonly device: Device;
  readonly place: Place;
}

export const placed = (device: Device): Placed => ({ device, place: placeOf(device) });

/** The way between two devices: the word of the vendor for a direct link, such as `NV4`, or else the one over PCIe. Undefined: unknown. */
export const pathBetween = (a: Device, b: Device): string | undefined => wayBetween(placed(a), placed(b));

/** As {@link pathBetween}. */
export function wayBetween(a: Placed, b: Placed): string | undefined {
  const direct = linkWord(a.device, b.device) ?? linkWord(b.device, a.device);
  return direct ?? (a.place.physical === b.place.physical ? 'PIX' : pciePathBetween(a.place, b.place));
}

const linkWord = (a: Device, b: Device): string | undefined =>
  a.family === b.family ? a.peers?.find(({ device }) => device === b.id)?.path : undefined;

/** The way over PCIe. Undefined: the place of one is unknown, or the NUMA node of devices below different host bridges. */
export function pciePathBetween(a: PciePlace, b: PciePlace): PciePath | undefined {
  if (a.pciPath.length === 0 || b.pciPath.length === 0) return undefined;
  let common = 0;
  while (common < Math.min(a.pciPath.length, b.pciPath.length) && a.pciPath[common] === b.pciPath[common]) common += 1;
  if (common === 1) return 'PHB';
  // Below one switch, each has its own port of the switch and its own function. Functions of one slot have only the latter.
  if (common > 1) return Math.max(a.pciPath.length, b.pciPath.length) - common <= 2 ? 'PIX' : 'PXB';
  if (a.numaNode === undefined || b.numaNode === undefined) return undefined;
  return a.numaNode === b.numaNode ? 'NODE' : 'SYS';
}

/** Order of two ways, the nearer one first. Any direct link is nearer than any way over PCIe, and more links are nearer. */
export function comparePaths(a: string, b: string): number {
  return rankOf(a) - rankOf(b) || linksOf(b) - linksOf(a);
}

/** Whether one way is farther than another. An unknown way may be farther than any other. */
function isFarther(path: string | undefined, than: string | undefined): boolean {
  if (path === undefined || than === undefined) return than !== undefined;
  return comparePaths(path, than) > 0;
}

/** For each device, keyed by its key, the farthest of its pairs; the first of equal ones. */
export function farthestPairs<P extends { readonly from: string; readonly to: string; readonly path?: string }>(
  pairs: readonly P[],
): ReadonlyMap<string, P> {
  const farthest = new Map<string, P>();
  for (const pair of pairs) {
    for (const key of [pair.from, pair.to]) {
      const known = farthest.get(key);
      if (known === undefined || isFarther(pair.path, known.path)) farthest.set(key, pair);
    }
  }
  return farthest;
}

const rankOf = (path: string): number => (PCIE_PATHS as readonly string[]).indexOf(path);
const linksOf = (path: string): number => Number(/\d+$/.exec(path)?.[0] ?? 0);

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
