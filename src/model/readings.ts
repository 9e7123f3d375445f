import { areSameLabels, type Reading, type SeriesChoice } from './metric.ts';

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

const NONE: readonly Reading[] = [];

/** All readings of a metric. Where the series are known by their list, they are found without a search. */
export function ofMetric(readings: readonly Reading[], metric: string): readonly Reading[] {
  const series = LISTS.get(readings);
  if (series === undefined) return readings.filter((one) => one.metric === metric);
  const places = placesOfMetrics(series).get(metric);
  return places === undefined ? NONE : places.map((at) => readings[at] as Reading);
}

const placesOfMetrics = keptBy((all: readonly Series[]): ReadonlyMap<string, readonly number[]> => {
  const places = new Map<string, number[]>();
  for (const [at, { metric }] of all.entries()) {
    const own = places.get(metric);
    if (own === undefined) places.set(metric, [at]);
    else own.push(at);
  }
  return places;
});

/** Chooses readings by their metric. The same readings give the same list, and so do the same series with other values. */
export function chooser(isWanted: (metric: string) => boolean): (readings: readonly Reading[]) => readonly Reading[] {
  const wanted = keptBy((all: readonly Series[]) => {
    const places = all.flatMap(({ metric }, at) => (isWanted(metric) ? [at] : []));
    return { places, series: places.map((at) => all[at] as Series) };
  });
  return keptBy((readings: readonly Reading[]) => {
    const { places, series } = wanted(seriesOf(readings));
    return ofSeries(
      series,
      places.map((at) => readings[at] as Reading),
    );
  });
}

/** Both lists as one, which is the same object while both are. */
export function joinedReadings(own: readonly Reading[], side: readonly Reading[]): readonly Reading[] {
  if (side.length === 0) return own;
  const before = JOINED.get(own);
  if (before?.side === side) return before.joined;
  const joined = ofSeries(joinedSeries(seriesOf(own))(seriesOf(side)), [...own, ...side]);
  JOINED.set(own, { side, joined });
  return joined;
}

const JOINED = new WeakMap<readonly Reading[], { readonly side: readonly Reading[]; readonly joined: readonly Reading[] }>();
const joinedSeries = keptBy((own: readonly Series[]) => keptBy((side: readonly Series[]): readonly Series[] => [...own, ...side]));

/** Value of the series with exactly these labels. Undefined when it was not read, or is no number. */
export function seriesValue(readings: readonly Reading[], { metric, labels }: SeriesChoice): number | undefined {
  const value = ofMetric(readings, metric).find((one) => areSameLabels(one.labels, labels))?.value;
  return value === undefined || !Number.isFinite(Number(value)) ? undefined : Number(value);
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
