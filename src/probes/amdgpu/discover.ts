import type { Tree } from '../../host/fs/tree.ts';
import type { Host } from '../../host/host.ts';
import type { PciNames } from '../../host/pci/pci-names.ts';
import type { Problem } from '../../model/collection.ts';
import { byNodeNumber, mayHaveCard, nodeNumber, ownerOfNode } from '../kit/drm/cards.ts';

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

/** Returns true when a graphics device belongs to a driver of AMD, when its driver is unknown, or when the class cannot be listed. */
export const isPresent = ({ sys }: Host): boolean => mayHaveCard(sys, ['amdgpu', 'radeon']);

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
