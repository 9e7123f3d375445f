import type { Tree } from '../../host/fs/tree.ts';
import type { Host } from '../../host/host.ts';
import { mayBeOnBus } from '../../host/pci/functions.ts';
import { normalizePciAddress } from '../../host/pci/pci.ts';
import type { PciNames } from '../../host/pci/pci-names.ts';
import type { Problem } from '../../model/collection.ts';
import type { BusHardware } from '../../model/declaration.ts';
import { minutes, seconds } from '../../model/duration.ts';
import { constant, integerOption, type OptionSpecs, type OptionValues, pacedOption } from '../../model/options.ts';
import { byNodeNumber, mayHaveCard, nodeNumber, ownerOfNode } from '../kit/drm/cards.ts';
import { parseCount, plainText } from '../kit/text.ts';

export const options = {
  /** Names, limits, partitions, the topology. */
  'facts-interval': pacedOption('refresh.facts', minutes(2)),
  /** The error counts: each read makes the driver query the hardware. */
  'ras-interval': pacedOption('refresh.slow', seconds(60)),
  'bad-pages-interval': pacedOption('refresh.slow', minutes(10)),
  /** There is one search in 30 seconds. New processes come first. */
  'processes-per-search': constant(
    integerOption(16, 'Processes whose open files are listed in one search for processes that use a GPU without KFD; 0: no search'),
  ),
} as const satisfies OptionSpecs;

export type AmdgpuOptions = OptionValues<typeof options>;

/** A card, named by its PCI function. */
export interface CardPlace {
  readonly address: string;
  /** Directory with its files: the PCI function, or the copy of it in a tree without links. */
  readonly directory: string;
  readonly driver: string;
  /** `card0`, `renderD128`: names below `/dev/dri`. */
  readonly nodes: readonly string[];
}

/** The platform device of a partition. The first partition of a card has none: it uses the nodes of the card. */
export interface PartitionPlace {
  /** `amdgpu_xcp_30`, or `amdgpu_xcp.30` where the driver leaves the number to the kernel. The number follows the order of the driver. */
  readonly name: string;
  readonly nodes: readonly string[];
}

export interface Places {
  readonly cards: readonly CardPlace[];
  readonly partitions: readonly PartitionPlace[];
  readonly problems: readonly Problem[];
  /** False when a card may exist that is not listed. */
  readonly isComplete: boolean;
}

const DRIVERS: ReadonlySet<string> = new Set(['amdgpu', 'radeon']);
const NODE = /^(?:card|renderD)\d+$/;

/** Finds cards and partitions by the links of the class directory. It opens a file only in a tree without links. */
export function findPlaces(sys: Tree, names: readonly string[]): Places {
  const cards = new Map<string, { directory: string; driver: string; nodes: string[] }>();
  const partitions = new Map<string, string[]>();
  const problems: Problem[] = [];
  let isComplete = true;
  for (const node of names.filter((name) => NODE.test(name)).sort(byNodeNumber)) {
    const owner = ownerOfNode(sys, node, (name) => DRIVERS.has(name));
    if (owner === undefined) continue;
    if ('problem' in owner) {
      problems.push(owner.problem);
      isComplete = false;
    } else if ('parent' in owner) {
      if (/^amdgpu_xcp[_.]\d+$/.test(owner.parent)) partitions.set(owner.parent, [...(partitions.get(owner.parent) ?? []), node]);
    } else {
      const { address, driver } = owner;
      // The function of a copied card may be on the bus of the copy.
      const onBus = `bus/pci/devices/${address}`;
      const directory = owner.directory === onBus || !sys.exists(onBus) ? owner.directory : onBus;
      const card = cards.get(address) ?? { directory, driver, nodes: [] };
      card.nodes.push(node);
      cards.set(address, card);
    }
  }
  return {
    cards: [...cards].map(([address, card]) => ({ address, ...card })).sort((a, b) => (a.address < b.address ? -1 : 1)),
    partitions: [...partitions].map(([name, nodes]) => ({ name, nodes })),
    problems,
    isComplete,
  };
}

/** Number of a render node among names below `/dev/dri`; undefined without one. */
export function renderMinorOf(nodes: readonly string[]): number | undefined {
  const name = nodes.find((node) => node.startsWith('renderD'));
  return name === undefined ? undefined : nodeNumber(name);
}

export const bus: readonly BusHardware[] = [
  { what: 'AMD GPU', vendor: '0x1002', maker: 'AMD', classes: ['03', '1200'], kind: 'gpu', drivers: ['amdgpu', 'radeon'] },
];

/** Returns true when the bus or a graphics device shows a card of AMD, when the driver of a card is unknown, or when the class cannot be listed. */
export const isPresent = ({ sys }: Host): boolean => mayHaveCard(sys, ['amdgpu', 'radeon']) || mayBeOnBus(sys, bus);

/**
 * Names of AMD's data centre cards, keyed by PCI device id. Other cards report their name, or the host has it: {@link nameOf}. Source: PCI ID
 * repository.
 */
export const MODELS: Readonly<Record<string, string>> = {
  '0x66a0': 'AMD Radeon Instinct MI50',
  '0x66a1': 'AMD Radeon Instinct MI50',
  '0x738c': 'AMD Instinct MI100',
  '0x738e': 'AMD Instinct MI100',
  '0x7408': 'AMD Instinct MI250X',
  '0x740c': 'AMD Instinct MI250X/MI250',
  '0x740f': 'AMD Instinct MI210',
  '0x74a0': 'AMD Instinct MI300A',
  '0x74a1': 'AMD Instinct MI300X',
  '0x74a2': 'AMD Instinct MI308X',
  '0x74a5': 'AMD Instinct MI325X',
  '0x74b5': 'AMD Instinct MI300X VF',
  '0x75a0': 'AMD Instinct MI350X',
  '0x75a3': 'AMD Instinct MI355X',
};

/** Whether the hardware handles errors, by its model. What a virtual function can do, its host decides. */
export const handlesErrors = (pciDevice = ''): boolean => MODELS[pciDevice]?.endsWith(' VF') === false;

const PRODUCT = /^(?:AMD |ATI )?(?:Mobility )?(?:Radeon|Instinct|FirePro|FireGL)\b/;

/**
 * Model of a card by its names in the database of PCI ids. The name of a device lists all products with the chip, behind the name of the
 * chip: `Navi 21 [Radeon RX 6800/6800 XT]`. That of the subsystem is one product, or a word of its vendor, such as `Pulse`.
 */
export function nameOf({ device, subsystem = '' }: PciNames): string | undefined {
  const name = PRODUCT.test(subsystem) ? subsystem : (/\[(.+)\]$/.exec(device ?? '')?.[1] ?? device);
  return name === undefined || /^(?:AMD|ATI) /.test(name) ? name : `AMD ${name}`;
}

const TOPOLOGY = 'class/kfd/kfd/topology';

export type RasBlocks = readonly string[] | 'none';

/** A GPU, or a partition of one, in the topology of the compute driver (KFD). */
export interface KfdNode {
  /** Name of its directory. */
  readonly node: string;
  /** The `gpuid` in the names of per-process files; absent in copied trees. */
  readonly gpuId?: string;
  /** Number of the render node: 128 for `/dev/dri/renderD128`. */
  readonly renderMinor: number;
  /** PCI address of the card: the low bits of `location_id` are the number of the partition and no function. */
  readonly pciAddress: string;
  /** Number of the partition; 0 for a whole card. */
  readonly partition: number;
  /** 16 hexadecimal digits, the same for all partitions of a card; absent for cards without one. */
  readonly uniqueId?: string;
  /** `90402`: major, minor and stepping of the instruction set. */
  readonly gfxTarget?: string;
  /** Compute dies. */
  readonly dies?: number;
  /** Blocks of which the driver counts errors for certain, `'none'` when it handles no errors; absent when the topology does not tell. */
  readonly rasBlocks?: RasBlocks;
  /** Bytes of its memory; absent when the topology does not tell. */
  readonly memoryBytes?: number | bigint;
  /** Directory of its memory bank, which tells the memory in use; absent without one. */
  readonly memoryBank?: string;
  /** Nodes that a direct link (xGMI) leads to. */
  readonly xgmi: readonly string[];
}

/** `ENOENT`: the machine has no KFD. */
type NoTopology = { readonly nodes?: undefined; readonly error: string; readonly path: string };

export type Topology = { readonly nodes: readonly KfdNode[]; readonly error?: undefined } | NoTopology;

/** The topology exists but cannot be read. */
export const isUnread = (topology: Topology): topology is NoTopology => topology.error !== undefined && topology.error !== 'ENOENT';

/** Changes with each change of the topology. */
export function topologyGeneration(sys: Tree): string | undefined {
  return sys.reread(`${TOPOLOGY}/generation_id`).text;
}

/** Largest number of nodes that are read. The largest known machine has 66. */
const MOST_NODES = 1_024;

export function readTopology(sys: Tree): Topology {
  const path = `${TOPOLOGY}/nodes`;
  const { names, error } = sys.listing(path);
  if (names === undefined) return { error, path };
  const nodes = names
    .filter((name) => /^\d{1,4}$/.test(name))
    .slice(0, MOST_NODES)
    .sort((a, b) => Number(a) - Number(b));
  const properties = nodes.map((node) => [node, sys.read(`${path}/${node}/properties`)] as const);
  // KFD refuses a node whose render node the reader may not open (kfd_devcgroup_check_permission). It may be the node of any card.
  for (const [node, { error: refusal }] of properties)
    if (refusal !== undefined && refusal !== 'ENOENT') return { error: refusal, path: `${path}/${node}/properties` };
  return { nodes: properties.flatMap(([node, { text = '' }]) => readNode(sys, node, text)) };
}

function readNode(sys: Tree, node: string, properties: string): readonly KfdNode[] {
  const directory = `${TOPOLOGY}/nodes/${node}`;
  const identity = identityOf(parseProperties(properties));
  if (identity === undefined) return [];
  const gpuId = plainText(sys.read(`${directory}/gpu_id`).text ?? '');
  const bank = `${directory}/mem_banks/0`;
  const size = parseProperties(sys.read(`${bank}/properties`).text ?? '').get('size_in_bytes');
  const memoryBytes = parseCount(size);
  return [
    {
      node,
      ...identity,
      ...(/^[1-9]\d{0,9}$/.test(gpuId) && { gpuId }),
      ...(memoryBytes !== undefined && memoryBytes !== 0 && { memoryBytes, memoryBank: bank }),
      xgmi: linksOf(sys, directory),
    },
  ];
}

type Identity = Omit<KfdNode, 'node' | 'gpuId' | 'memoryBytes' | 'memoryBank' | 'xgmi'>;

/** Undefined for a CPU, and for a GPU that has no render node. */
export function identityOf(properties: ReadonlyMap<string, string>): Identity | undefined {
  const number = (name: string): number | undefined => {
    const value = parseCount(properties.get(name));
    return typeof value === 'number' ? value : undefined;
  };
  const [simds, renderMinor, location] = [number('simd_count'), number('drm_render_minor'), number('location_id')];
  if (simds === undefined || simds === 0 || renderMinor === undefined || renderMinor === 0 || location === undefined) return undefined;
  const pciAddress = addressOf(number('domain') ?? 0, location);
  if (pciAddress === undefined) return undefined;
  const unique = properties.get('unique_id');
  const dies = number('num_xcc');
  const gfxTarget = number('gfx_target_version');
  const capability = number('capability');
  return {
    renderMinor,
    pciAddress,
    partition: location & 7,
    ...(isUnique(unique) && { uniqueId: BigInt(unique).toString(16).padStart(16, '0') }),
    ...(gfxTarget !== undefined && gfxTarget > 0 && { gfxTarget: String(gfxTarget) }),
    ...(dies !== undefined && dies > 0 && { dies }),
    ...(capability !== undefined && { rasBlocks: rasBlocksOf(capability) }),
  };
}

/**
 * Bits by which KFD tells that error handling (RAS) is on: of any block, of the memory, of the engines. Source: HSA_CAP_RASEVENTNOTIFY,
 * HSA_CAP_MEM_EDCSUPPORTED and HSA_CAP_SRAM_EDCSUPPORTED in kfd_sysfs.h, set in kfd_topology.c.
 */
const [ANY_RAS, MEMORY_RAS, ENGINE_RAS] = [0x0020_0000, 0x0010_0000, 0x0400_0000];

function rasBlocksOf(capability: number): RasBlocks {
  const blocks = [...((capability & MEMORY_RAS) !== 0 ? ['umc'] : []), ...((capability & ENGINE_RAS) !== 0 ? ['gfx'] : [])];
  return blocks.length > 0 || (capability & ANY_RAS) !== 0 ? blocks : 'none';
}

/** KFD prints the number in decimal and sysfs in hexadecimal. Both have 64 bits. */
const isUnique = (text: string | undefined): text is string =>
  text !== undefined && /^\d{1,20}$/.test(text) && BigInt(text) !== 0n && BigInt(text) < 2n ** 64n;

/** Bus in bits 8 to 15, device in bits 3 to 7. Bits 0 to 2 are the number of the partition. */
function addressOf(domain: number, location: number): string | undefined {
  if (location > 0xffff || domain > 0xffff_ffff) return undefined;
  const hex = (value: number): string => value.toString(16);
  return normalizePciAddress(`${hex(domain)}:${hex(location >> 8)}:${hex((location >> 3) & 0x1f)}.0`);
}

/** Parses lines of a name and a decimal number. */
export function parseProperties(text: string): ReadonlyMap<string, string> {
  const properties = new Map<string, string>();
  for (const line of plainText(text).split('\n')) {
    const match = /^([a-z0-9_]{1,64}) +(\d{1,20})$/.exec(line.trim());
    if (match !== null && properties.size < 256) properties.set(match[1] as string, match[2] as string);
  }
  return properties;
}

/** Type of an xGMI link. Source: HSA_IOLINKTYPE_XGMI in kfd_topology.h and CRAT. */
const XGMI = '11';

function linksOf(sys: Tree, directory: string): readonly string[] {
  return sys.list(`${directory}/io_links`).flatMap((link) => {
    const properties = parseProperties(sys.read(`${directory}/io_links/${link}/properties`).text ?? '');
    const to = properties.get('node_to');
    return properties.get('type') === XGMI && to !== undefined ? [to] : [];
  });
}
