import { defined } from '../../model/defined.ts';
import type { Device } from '../../model/device.ts';
import type { LastIdentities } from '../kit/identities.ts';
import type { CardFacts } from './card.ts';
import { type CardPlace, type KfdNode, MODELS, type PartitionPlace, renderMinorOf, type Topology } from './discover.ts';

/** A partition of a card, which a container can hold instead of the card. */
export interface Partition {
  readonly number: number;
  readonly node: KfdNode;
  /** Absent for the first partition, which uses the nodes of the card. */
  readonly place?: PartitionPlace;
}

/** Position of a card among the devices of the machine. */
export interface PartitionedCard {
  readonly place: CardPlace;
  /** Node of the card itself, or of its first partition; absent when KFD does not list it. */
  readonly node?: KfdNode;
  /** Empty without partitioning. */
  readonly partitions: readonly Partition[];
}

/** Joins cards, platform devices of partitions and nodes of the topology. */
export function partitionedCards(
  cards: readonly CardPlace[],
  partitions: readonly PartitionPlace[],
  { nodes = [] }: Topology,
): readonly PartitionedCard[] {
  const owners = new Map(cards.map((card) => [renderMinorOf(card.nodes), card.address]));
  const places = new Map(partitions.map((place) => [renderMinorOf(place.nodes), place]));
  // A copied tree has no render nodes, so the location identifies the card.
  const isOnly = ({ pciAddress, partition, renderMinor }: KfdNode, address: string): boolean =>
    pciAddress === address && partition === 0 && !owners.has(renderMinor) && !places.has(renderMinor);
  return cards.map((place): PartitionedCard => {
    const minor = renderMinorOf(place.nodes);
    const own = nodes.find(({ renderMinor }) => renderMinor === minor) ?? nodes.find((node) => isOnly(node, place.address));
    // A node with the render node of another card belongs to that card, whatever its location says.
    const parts = nodes.filter((node) => node !== own && node.pciAddress === place.address && !owners.has(node.renderMinor));
    if (parts.length === 0) return { place, ...(own !== undefined && { node: own }), partitions: [] };
    const all = [...(own === undefined ? [] : [own]), ...parts];
    return {
      place,
      ...(own !== undefined && { node: own }),
      partitions: all.map((node): Partition => {
        const platform = node === own ? undefined : places.get(node.renderMinor);
        return { number: node.partition, node, ...(platform !== undefined && { place: platform }) };
      }),
    };
  });
}

/** Number of partitions of each mode. CPX has one for each compute die, which depends on the card. */
const MODES: Readonly<Record<string, number>> = { SPX: 1, DPX: 2, TPX: 3, QPX: 4 };

/**
 * Number of partitions that a card must have; undefined when it is unknown. In CPX mode it is the largest number among the cards of the
 * same kind and mode, because no file tells it.
 */
export function expectedPartitions(mode: string | undefined, present: number, alike: readonly number[]): number | undefined {
  if (mode === undefined) return undefined;
  if (mode === 'CPX') return Math.max(present, ...alike);
  return MODES[mode];
}

const KFD_NODE = '/dev/kfd';

/** Paths of the device nodes that a container needs. */
function nodePaths(nodes: readonly string[], hasKfd: boolean): readonly string[] {
  return [...(hasKfd ? [KFD_NODE] : []), ...nodes.map((node) => `/dev/dri/${node}`)];
}

/** Other cards that a direct link leads to, with the number of links. */
function peersOf(seat: PartitionedCard, seats: readonly PartitionedCard[]): Device['peers'] {
  const counts = new Map<string, number>();
  for (const to of seat.node?.xgmi ?? []) {
    const other = seats.find(({ node, partitions }) => node?.node === to || partitions.some((part) => part.node.node === to));
    if (other === undefined || other === seat) continue;
    // Partitions are linked with each other over the same wires, so only the first partition of the other card counts.
    if (other.node?.node !== to) continue;
    counts.set(other.place.address, (counts.get(other.place.address) ?? 0) + 1);
  }
  return counts.size === 0 ? undefined : [...counts].map(([device, links]) => ({ device, links, path: 'XGMI' }));
}

/** `isUnread`: the topology cannot be read, so only the mode of the card tells that it has partitions. */
export function cardDevice(
  seat: PartitionedCard,
  facts: CardFacts,
  seats: readonly PartitionedCard[],
  identities: LastIdentities,
  isUnread: boolean,
): Device {
  const { place, node, partitions } = seat;
  const isDivided = partitions.length > 0 || (isUnread && (facts.computePartition ?? 'SPX') !== 'SPX');
  const peers = peersOf(seat, seats);
  const uniqueId = facts.uniqueId ?? node?.uniqueId;
  const model = facts.model ?? MODELS[facts.pciDevice ?? ''] ?? facts.listedModel;
  return defined({
    family: 'amdgpu',
    id: place.address,
    ...identities.of(place.address, uniqueId),
    kind: 'gpu',
    aliases: [],
    pciAddress: place.address,
    vendor: 'AMD',
    driver: place.driver,
    // With partitions, a container gets the nodes of a partition and never those of the whole card.
    characterDevices: isDivided ? [] : nodePaths(place.nodes, node !== undefined || isUnread),
    ...(uniqueId !== undefined && { uuid: `GPU-${uniqueId}` }),
    model,
    numaNode: facts.numaNode,
    serial: facts.serial,
    firmware: facts.vbios,
    pciVendor: facts.pciVendor,
    pciDevice: facts.pciDevice,
    pciPath: facts.pciPath,
    direct: facts.direct,
    peers,
  });
}

/** The device plugin of ROCm has either form, whatever the kernel has. */
const formsOf = (name: string): readonly string[] => [...new Set([name, name.replace('.', '_')])];

/** The device plugin of ROCm names the first partition by the PCI address of its card, and the others by their platform device. */
export function partitionDevice(card: Device, { place }: PartitionedCard, partition: Partition): Device {
  const nodes = partition.place?.nodes ?? (partition.number === 0 ? place.nodes : []);
  return defined({
    family: 'amdgpu',
    id: `${place.address}-xcp${partition.number}`,
    ...(typeof card.identity === 'string' && { identity: `${card.identity} xcp${partition.number}` }),
    kind: 'partition',
    aliases: partition.place === undefined ? (partition.number === 0 ? [place.address] : []) : formsOf(partition.place.name),
    parent: card.id,
    pciAddress: place.address,
    vendor: 'AMD',
    driver: place.driver,
    characterDevices: nodePaths(nodes, true),
    model: card.model,
    numaNode: card.numaNode,
    firmware: card.firmware,
    pciVendor: card.pciVendor,
    pciDevice: card.pciDevice,
    pciPath: card.pciPath,
    direct: card.direct,
  });
}
