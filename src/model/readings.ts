import type { Reading } from './metric.ts';

/** One series of a device: a reading without its value and its time. */
export type Series = Omit<Reading, 'value' | 'readMs'>;

/** Lists of series by the list of readings that has their values, in the same order. */
const LISTS = new WeakMap<readonly Reading[], readonly Series[]>();

/**
 * The series of readings. It is the same object for each read that has the same series, so that a reader looks up once at which place a
 * series is. What is derived from a list of series can be kept by its identity.
 */
export function seriesOf(readings: readonly Reading[]): readonly Series[] {
  const known = LISTS.get(readings);
  if (known !== undefined) return known;
  const series = readings.map(seriesOfOne);
  LISTS.set(readings, series);
  return series;
}

export const seriesOfOne = ({ metric, labels, wrapsAt }: Reading): Series => ({
  metric,
  ...(labels === undefined ? {} : { labels }),
  ...(wrapsAt === undefined ? {} : { wrapsAt }),
});

/** Says which list of series these readings have. */
export function ofSeries(series: readonly Series[], readings: readonly Reading[]): readonly Reading[] {
  LISTS.set(readings, series);
  return readings;
}

/** Keeps what is derived from an object for as long as the object lives. */
export function keptBy<K extends object, V>(derive: (key: K) => V): (key: K) => V {
  const kept = new WeakMap<K, V>();
  return (key) => {
    const known = kept.get(key);
    if (known !== undefined) return known;
    const value = derive(key);
    kept.set(key, value);
    return value;
  };
}

/** The readings at some places, whose series are the same object while the places are. */
export function readingsAt(readings: readonly Reading[], { series, places }: Places): readonly Reading[] {
  return ofSeries(
    series,
    places.map((at) => readings[at] as Reading),
  );
}

/** Some places of a list of series, and the series there. */
export interface Places {
  readonly places: readonly number[];
  readonly series: readonly Series[];
}

/** The places of series that a reader wants. */
export function placesOf(all: readonly Series[], isWanted: (series: Series) => boolean): Places {
  const places = all.flatMap((one, at) => (isWanted(one) ? [at] : []));
  return { places, series: places.map((at) => all[at] as Series) };
}

/** Whether both objects have the same fields with the same values, of flat objects. */
export function areSameFields<T extends object>(a: T | undefined, b: T | undefined): boolean {
  if (a === b) return true;
  if (a === undefined || b === undefined) return false;
  let names = 0;
  for (const name in a) {
    if (a[name as keyof T] !== b[name as keyof T]) return false;
    names += 1;
  }
  for (const _ in b) names -= 1;
  return names === 0;
}
