import type { Device } from '../../model/device.ts';

/** The highest levels that were seen of a device's parts. Plain data. */
export interface Levels {
  /** UUID of the device that had them; absent when it never told one. */
  readonly of?: string;
  /** Keyed as conditions are. */
  readonly highest: Readonly<Record<string, number>>;
}

const NO_LEVELS: Levels = { highest: {} };

/** A card has a few ports. More than these are told by a probe that names a part anew each time. */
const MOST_LEVELS = 256;

/** The levels that a device has to keep: not those of another card that had its name before. */
export function levelsOf(known: Levels | undefined, { uuid }: Pick<Device, 'uuid'>): Levels {
  if (known === undefined) return uuid === undefined ? NO_LEVELS : { of: uuid, highest: {} };
  if (uuid === undefined || known.of === uuid) return known;
  return { of: uuid, highest: known.of === undefined ? known.highest : {} };
}

/** With those of one reading. A part that was not read keeps what it had: it may come back lower than it went. */
export function withLevels(known: Levels, read: ReadonlyMap<string, number>): Levels {
  const isSame = [...read].every(([key, level]) => known.highest[key] === level);
  if (isSame) return known;
  const highest = { ...known.highest, ...Object.fromEntries(read) };
  const keys = Object.keys(highest);
  if (keys.length <= MOST_LEVELS) return { ...known, highest };
  const kept = [...read.keys(), ...keys.filter((key) => !read.has(key))].slice(0, MOST_LEVELS);
  return { ...known, highest: Object.fromEntries(kept.map((key) => [key, highest[key] as number])) };
}

/** As a device's memory has them, which most devices have not. */
export function asKept(levels: Levels): { readonly levels?: Levels } {
  for (const _ in levels.highest) return { levels };
  return {};
}
