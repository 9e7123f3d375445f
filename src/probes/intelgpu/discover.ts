import { basename } from 'node:path';
import type { Tree } from '../../host/fs/tree.ts';
import type { Host } from '../../host/host.ts';
import { mayBeOnBus } from '../../host/pci/functions.ts';
import { isPciAddress } from '../../host/pci/pci.ts';
import type { Problem } from '../../model/collection.ts';
import type { BusHardware } from '../../model/declaration.ts';
import { defined } from '../../model/defined.ts';
import { byNodeNumber, mayHaveCard, ownerOfNode } from '../kit/drm/cards.ts';
import { virtualFunctionsOf } from '../kit/network.ts';

const CLASS = 'class/drm';
const DRIVERS = ['i915', 'xe'] as const;
const driverDirectory = (driver: string): string => `bus/pci/drivers/${driver}`;

/** A card or a virtual function, named by its PCI function. */
export interface CardPlace {
  readonly address: string;
  /** Directory with its files: the PCI function, or the copy of it in a tree without links. */
  readonly directory: string;
  /** Directory of `cardN`, relative to `directory`; absent for a card without a node. */
  readonly minorDirectory?: string;
  /** Absent for a virtual function without a driver. */
  readonly driver?: string;
  /** `card0`, `renderD128`: names below `/dev/dri`. Empty for a card in survivability mode, and for one that a virtual machine has. */
  readonly nodes: readonly string[];
  /** Address of the card that a virtual function belongs to. */
  readonly parent?: string;
  /** Number of the `virtfn` link of a virtual function, from 0. */
  readonly vfIndex?: number;
}

export interface Places {
  readonly cards: readonly CardPlace[];
  readonly problems: readonly Problem[];
  /** False when a card may exist that is not listed. */
  readonly isComplete: boolean;
}

/** Names that tell when cards come and go. `error`: a directory exists but cannot be listed. */
export interface Names {
  readonly nodes: readonly string[];
  readonly bound: readonly { readonly driver: string; readonly address: string }[];
  readonly error?: string;
  /** The machine has neither the class nor one of the drivers. */
  readonly isAbsent: boolean;
}

/** Lists the directories that name all cards. It opens no file. */
export function listNames(sys: Tree): Names {
  const drm = sys.listing(CLASS);
  const drivers = DRIVERS.map((driver) => ({ driver, path: driverDirectory(driver), ...sys.listing(driverDirectory(driver)) }));
  const failed = [{ path: CLASS, ...drm }, ...drivers].find(({ error }) => error !== undefined && error !== 'ENOENT');
  return {
    nodes: (drm.names ?? []).filter((name) => /^(?:card|renderD)\d+$/.test(name)),
    bound: drivers.flatMap(({ driver, names = [] }) => names.filter(isPciAddress).map((address) => ({ driver, address }))),
    ...(failed !== undefined && { error: `listing /sys/${failed.path} fails with ${failed.error}` }),
    isAbsent: drm.names === undefined && drivers.every(({ names }) => names === undefined),
  };
}

export const bus: readonly BusHardware[] = [
  { what: 'Intel GPU', vendor: '0x8086', maker: 'Intel', classes: ['03'], kind: 'gpu', drivers: ['i915', 'xe'] },
];

/**
 * Finds cards by the directories of the drivers, because a card in survivability mode has no node. Finds virtual functions that another
 * driver has by the links of their card. It opens a file only in a tree without links.
 */
export function findPlaces(sys: Tree, { nodes, bound }: Names): Places {
  const found = new Map<string, CardPlace>();
  for (const { driver, address } of bound) found.set(address, { address, directory: onBus(address), driver, nodes: [] });
  const problems: Problem[] = [];
  for (const node of [...nodes].sort(byNodeNumber)) {
    const place = placeOf(sys, node);
    if (place === undefined) continue;
    if ('problem' in place) {
      problems.push(place.problem);
      continue;
    }
    const before = found.get(place.address);
    found.set(place.address, { ...place, ...before, ...minorOf(place, before), nodes: [...(before?.nodes ?? []), node] });
  }
  for (const place of [...found.values()]) for (const vf of virtualFunctions(sys, place, found)) found.set(vf.address, vf);
  return {
    cards: [...found.values()].sort((a, b) => (a.address < b.address ? -1 : 1)),
    problems,
    isComplete: problems.length === 0,
  };
}

const onBus = (address: string): string => `bus/pci/devices/${address}`;
/** The directory of the card node wins, because the render node has none of the files of i915. */
const minorOf = (place: CardPlace, before: CardPlace | undefined): Partial<CardPlace> => {
  const minorDirectory = before?.minorDirectory ?? place.minorDirectory;
  return defined({ minorDirectory });
};

/** Virtual functions of a card. `known`: places with a driver of Intel, which get their parent and number here. */
function virtualFunctions(sys: Tree, card: CardPlace, known: ReadonlyMap<string, CardPlace>): readonly CardPlace[] {
  if (!card.directory.startsWith('bus/')) return [];
  return [...virtualFunctionsOf(sys, card.address)]
    .filter(([address]) => isPciAddress(address))
    .map(([address, vfIndex]): CardPlace => {
      const driver = sys.link(`${onBus(address)}/driver`);
      const place = known.get(address) ?? {
        address,
        directory: onBus(address),
        nodes: [],
        ...(driver !== undefined && { driver: basename(driver) }),
      };
      return { ...place, parent: card.address, vfIndex };
    });
}

function placeOf(sys: Tree, node: string): CardPlace | { readonly problem: Problem } | undefined {
  const owner = ownerOfNode(sys, node, isKnown);
  if (owner === undefined || 'parent' in owner) return undefined;
  if ('problem' in owner) return owner;
  const { address, directory, driver } = owner;
  const minorDirectory = directory === onBus(address) ? (node.startsWith('card') ? `drm/${node}` : undefined) : '..';
  return { address, directory, driver, nodes: [], ...(minorDirectory !== undefined && { minorDirectory }) };
}

const isKnown = (driver: string): boolean => DRIVERS.some((known) => known === driver);

/** Returns true when the bus shows a card or a driver of Intel has one, when the driver of a card is unknown, or when the class cannot be listed. */
export function isPresent({ sys }: Host): boolean {
  return (
    DRIVERS.some((driver) => sys.list(driverDirectory(driver)).some(isPciAddress)) || mayHaveCard(sys, DRIVERS) || mayBeOnBus(sys, bus)
  );
}

/** Names of models, keyed by PCI device id. The driver does not report them. Source: PCI ID repository, Intel's DRA driver. */
export const MODELS: Readonly<Record<string, string>> = {
  '0x0bd5': 'Data Center GPU Max 1550',
  '0x0bd6': 'Data Center GPU Max 1550',
  '0x0bd9': 'Data Center GPU Max 1100',
  '0x0bda': 'Data Center GPU Max 1100',
  '0x0bdb': 'Data Center GPU Max 1100',
  '0x56a0': 'Arc A770',
  '0x56a1': 'Arc A750',
  '0x56a2': 'Arc A580',
  '0x56a5': 'Arc A380',
  '0x56a6': 'Arc A310',
  '0x56b1': 'Arc Pro A40/A50',
  '0x56c0': 'Data Center GPU Flex 170',
  '0x56c1': 'Data Center GPU Flex 140',
  '0xe20b': 'Arc B580',
  '0xe20c': 'Arc B570',
  '0xe211': 'Arc Pro B60',
  '0xe212': 'Arc Pro B50',
};

/**
 * PCI device ids of the switches on Intel's discrete cards: upper and lower ports of the Arc A and B series. Root ports of Intel have the
 * same vendor id, so the vendor alone does not tell a switch on the card. Source: PCI ID repository.
 */
export const OWN_SWITCHES: ReadonlySet<string> = new Set(['0x4fa0', '0x4fa1', '0x4fa4', '0xe2f0', '0xe2f1', '0xe2ff']);
