import { basename } from 'node:path';
import type { Tree } from '../../host/fs/tree.ts';
import { isPciAddress } from '../../host/pci/pci.ts';
import type { Problem } from '../../model/collection.ts';
import { copiedCard } from '../kit/drm/copied-card.ts';

export const CLASS = 'class/drm';
export const DRIVERS = ['i915', 'xe'] as const;
export const driverDirectory = (driver: string): string => `bus/pci/drivers/${driver}`;

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

/**
 * Finds cards by the directories of the drivers, because a card in survivability mode has no node. Finds virtual functions that another
 * driver has by the links of their card. It opens a file only in a tree without links.
 */
export function findPlaces(sys: Tree, { nodes, bound }: Names): Places {
  const found = new Map<string, CardPlace>();
  for (const { driver, address } of bound) found.set(address, { address, directory: onBus(address), driver, nodes: [] });
  const problems: Problem[] = [];
  for (const node of [...nodes].sort(byNumber)) {
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
const byNumber = (a: string, b: string): number => numberOf(a) - numberOf(b) || (a < b ? -1 : 1);
const numberOf = (name: string): number => Number(/\d+$/.exec(name)?.[0] ?? 0);

/** The directory of the card node wins, because the render node has none of the files of i915. */
const minorOf = (place: CardPlace, before: CardPlace | undefined): Partial<CardPlace> => {
  const minorDirectory = before?.minorDirectory ?? place.minorDirectory;
  return minorDirectory === undefined ? {} : { minorDirectory };
};

/** Virtual functions of a card. `known`: places with a driver of Intel, which get their parent and number here. */
function virtualFunctions(sys: Tree, card: CardPlace, known: ReadonlyMap<string, CardPlace>): readonly CardPlace[] {
  return sys.list(card.directory).flatMap((name): CardPlace[] => {
    const index = /^virtfn(\d{1,4})$/.exec(name)?.[1];
    const address = index === undefined ? '' : basename(sys.link(`${card.directory}/${name}`) ?? '');
    if (!isPciAddress(address)) return [];
    const driver = sys.link(`${onBus(address)}/driver`);
    const place = known.get(address) ?? {
      address,
      directory: onBus(address),
      nodes: [],
      ...(driver !== undefined && { driver: basename(driver) }),
    };
    return [{ ...place, parent: card.address, vfIndex: Number(index) }];
  });
}

function placeOf(sys: Tree, node: string): CardPlace | { readonly problem: Problem } | undefined {
  const link = sys.link(`${CLASS}/${node}`);
  if (link === undefined) return node.startsWith('card') ? copiedPlace(sys, node) : undefined;
  const address = link.split('/').at(-3) ?? '';
  if (!isPciAddress(address)) return undefined;
  const driver = basename(sys.link(`${onBus(address)}/driver`) ?? '');
  if (!isKnown(driver)) return undefined;
  return { address, directory: onBus(address), driver, nodes: [], ...(node.startsWith('card') && { minorDirectory: `drm/${node}` }) };
}

function copiedPlace(sys: Tree, node: string): CardPlace | { readonly problem: Problem } | undefined {
  const card = copiedCard(sys, `${CLASS}/${node}`, isKnown);
  return card === undefined || 'problem' in card ? card : { ...card, minorDirectory: '..', nodes: [] };
}

const isKnown = (driver: string): boolean => DRIVERS.some((known) => known === driver);
