import { UserError } from '../errors.ts';
import type { SimulatedFamily, SimulatedSize } from './family-simulation.ts';

/** Means all names. */
const ALL = 'all';

export const sizesOf = (families: readonly SimulatedFamily[]): readonly SimulatedSize[] =>
  families.flatMap(({ simulation }) => simulation.sizes);

/**
 * Returns the number of each size. An entry `name=count` replaces the default of a size; `all=count` first replaces those of all. Throws
 * `flag-invalid` for an entry of another form, an unknown name and a number that is too large.
 */
export function countsOf(entries: readonly string[], sizes: readonly SimulatedSize[]): Readonly<Record<string, number>> {
  const counts = new Map(sizes.map(({ name, default: usual }) => [name, usual]));
  const given = entries.map((entry) => parsed(entry, sizes));
  for (const { name, count } of given) if (name === ALL) for (const size of sizes) counts.set(size.name, checked(count, size));
  for (const { name, count, size } of given) if (size !== undefined) counts.set(name, checked(count, size));
  return Object.fromEntries(counts);
}

interface Entry {
  readonly name: string;
  readonly count: number;
  /** Absent for {@link ALL}. */
  readonly size?: SimulatedSize;
}

function parsed(entry: string, sizes: readonly SimulatedSize[]): Entry {
  const [, name, digits] = /^([a-z0-9.-]+)=(\d{1,6})$/.exec(entry.trim()) ?? [];
  if (name === undefined) throw refused(`"${entry}" is not name=count`);
  const size = sizes.find((one) => one.name === name);
  if (size === undefined && name !== ALL) throw refused(`nothing has the name ${name}; there are ${ALL}, ${namesOf(sizes)}`);
  return { name, count: Number(digits), ...(size && { size }) };
}

function checked(count: number, { name, most }: SimulatedSize): number {
  if (count > most) throw refused(`${name} must be ${most} or less`);
  return count;
}

const namesOf = (sizes: readonly SimulatedSize[]): string => sizes.map(({ name }) => name).join(', ');

const refused = (problem: string): UserError => new UserError('flag-invalid', { flag: '--sim.devices', problem });

/** Names all that a node has in words: `8 network adapters and 12 pods`. */
export function sizeText(counts: Readonly<Record<string, number>>, sizes: readonly SimulatedSize[], pods: number): string {
  const devices = sizes.map(({ name, about }) => [counts[name] ?? 0, about] as const).filter(([count]) => count > 0);
  const words = [...devices, [pods, 'pod'] as const].map(([count, about]) => `${count} ${about}${count === 1 ? '' : 's'}`);
  const last = words.pop() ?? '';
  return words.length === 0 ? last : `${words.join(', ')} and ${last}`;
}
