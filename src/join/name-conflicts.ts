import type { Problem } from '../model/collection.ts';
import { ORIGINS, type Origin } from '../model/declaration.ts';
import { defined } from '../model/defined.ts';
import { type Device, deviceKey } from '../model/device.ts';

/** Limit of conflicts that one family reports: a declaration can have thousands of names. */
const MOST_TOLD = 8;

/** Origin of each family. Default: `code`. */
export type Origins = ReadonlyMap<string, Origin>;

/** The place of a family in the order of {@link ORIGINS}. The lower one keeps a name that both have. */
export const rankOf = (origins: Origins | undefined, family: string): number => ORIGINS.indexOf(origins?.get(family) ?? 'code');

export interface NameConflicts {
  /** By key, the devices that lose names; undefined for a device that is left out, because its id belongs to another device. */
  readonly changed: ReadonlyMap<string, Device | undefined>;
  /** Keyed by family. */
  readonly problems: ReadonlyMap<string, readonly Problem[]>;
}

/**
 * Finds names that devices of two families have. The family whose origin is more trusted keeps the name: the other loses an alias, and it
 * loses the device when both have the same id, because a metric names a device by its id alone. Between equals both keep the name, and the
 * join gives its holder to neither.
 */
export function nameConflicts(devices: readonly Device[], origins: Origins): NameConflicts {
  if (devices.every(({ family }) => family === devices[0]?.family)) return NO_CONFLICTS;
  const bearers = bearersOf(devices);
  const changed = new Map<string, Device | undefined>();
  const problems = new Map<string, Problem[]>();
  for (const device of devices) {
    const rank = rankOf(origins, device.family);
    const rivals = (name: string): readonly Rival[] =>
      (bearers.get(name.toLowerCase()) ?? NO_DEVICES)
        .filter(({ family }) => family !== device.family)
        .map((rival) => ({ device: rival, isStronger: rankOf(origins, rival.family) < rank, rank: rankOf(origins, rival.family) }))
        .filter((rival) => rival.rank <= rank)
        .sort((a, b) => a.rank - b.rank);
    const { left, messages } = withoutNamesOf(device, rivals);
    if (left !== device) changed.set(deviceKey(device), left);
    for (const message of messages)
      addTo(problems, device.family, { code: 'name-conflict', message, ...defined({ device: left && device.id }) });
  }
  return { changed, problems: new Map([...problems].map(([family, list]) => [family, bounded(list)])) };
}

const NO_CONFLICTS: NameConflicts = { changed: new Map(), problems: new Map() };

interface Rival {
  readonly device: Device;
  readonly rank: number;
  readonly isStronger: boolean;
}

interface Left {
  readonly left: Device | undefined;
  readonly messages: readonly string[];
}

function withoutNamesOf(device: Device, rivals: (name: string) => readonly Rival[]): Left {
  const messages: string[] = [];
  const keeps = (what: string, name: string): boolean => {
    const [rival] = rivals(name);
    if (rival === undefined) return true;
    const end = rival.isStronger ? 'which keeps it' : 'and neither gets the holders of this name';
    messages.push(`the ${what} ${name} of ${deviceKey(device)} is also a name of ${deviceKey(rival.device)}, ${end}`);
    return !rival.isStronger;
  };
  const isSame = (other: Device): boolean => other.id.toLowerCase() === device.id.toLowerCase();
  const isLost = rivals(device.id).some((rival) => rival.isStronger && isSame(rival.device));
  keeps('id', device.id);
  if (isLost) return { left: undefined, messages: messages.map((text) => `${text}: the device is left out`) };
  const aliases = device.aliases.filter((alias) => keeps('alias', alias));
  return { left: aliases.length === device.aliases.length ? device : { ...device, aliases }, messages };
}

const NO_DEVICES: readonly Device[] = [];

/** The names by which the join finds a device. A bare number names no device. */
const namesOf = ({ id, aliases }: Device): readonly string[] => [id, ...aliases].filter((name) => !/^\d+$/.test(name));

function bearersOf(devices: readonly Device[]): ReadonlyMap<string, readonly Device[]> {
  const bearers = new Map<string, Device[]>();
  for (const device of devices) for (const name of new Set(namesOf(device).map((one) => one.toLowerCase()))) addTo(bearers, name, device);
  return bearers;
}

function bounded(problems: readonly Problem[]): readonly Problem[] {
  if (problems.length <= MOST_TOLD) return problems;
  return [...problems.slice(0, MOST_TOLD), { code: 'name-conflict', message: 'more names of the family are names of other families' }];
}

/** Adds a value to the list of a key. */
export function addTo<K, V>(lists: Map<K, V[]>, key: K, value: V): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [value]);
  else list.push(value);
}
