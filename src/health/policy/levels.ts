/** Highest level seen for each part of a device. Plain data. */
export interface Levels {
  /** Keyed as conditions are. */
  readonly highest: Readonly<Record<string, number>>;
}

export const NO_LEVELS: Levels = { highest: {} };

/** A card has a few ports. More levels than this come from a probe that changes the name of a part at each read. */
const MOST_LEVELS = 256;

/** Adds the levels of one reading. A part that was not read keeps its level, because it may return with a lower one. */
export function withLevels(known: Levels, read: ReadonlyMap<string, number>): Levels {
  const isSame = [...read].every(([key, level]) => known.highest[key] === level);
  if (isSame) return known;
  const highest = { ...known.highest, ...Object.fromEntries(read) };
  const keys = Object.keys(highest);
  if (keys.length <= MOST_LEVELS) return { ...known, highest };
  const kept = [...read.keys(), ...keys.filter((key) => !read.has(key))].slice(0, MOST_LEVELS);
  return { ...known, highest: Object.fromEntries(kept.map((key) => [key, highest[key] as number])) };
}

/** Field of a device's memory; absent when there are no levels, as for most devices. */
export function storedLevels(levels: Levels): { readonly levels?: Levels } {
  for (const _ in levels.highest) return { levels };
  return {};
}
