import { defined } from './defined.ts';
import { areSameLabels, type Reading, type SeriesChoice, type Value } from './metric.ts';

/** Keeps what is derived from an object for as long as the object lives. */
export function memoizedBy<K extends object, V>(derive: (key: K) => V): (key: K) => V {
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

/** Values of a list of series, in its order. A column of numbers alone is a `Float64Array`. */
export type Values = ArrayLike<Value>;

/** Time of each value that an earlier read gave; absent while the read of the device gave all of them. See {@link Reading.readMs}. */
export type ValueTimes = readonly (number | undefined)[] | undefined;

/**
 * Readings of one device as columns. `series` is the same object for each read that has the same series, so that a reader looks up once at
 * which place a series is, and what is derived from a list of series can be kept by its identity. The same values are the same object.
 */
export class Readings implements Iterable<Reading> {
  readonly series: readonly Series[];
  readonly values: Values;
  readonly times: ValueTimes;

  constructor(series: readonly Series[], values: Values, times?: ValueTimes) {
    this.series = series;
    this.values = values;
    this.times = times;
  }

  static readonly NONE = new Readings([], []);

  /** Readings that were made one by one. The same list gives the same object. `series`: of the list, when they are known. */
  static of(list: ReadingList, series?: readonly Series[]): Readings {
    if (list instanceof Readings) return list;
    if (list.length === 0) return Readings.NONE;
    const known = OF_LISTS.get(list);
    if (known !== undefined) return known;
    const times = list.some(({ readMs }) => readMs !== undefined) ? list.map(({ readMs }) => readMs) : undefined;
    const readings = new Readings(
      series ?? list.map(seriesOfOne),
      list.map(({ value }) => value),
      times,
    );
    OF_LISTS.set(list, readings);
    return readings;
  }

  get length(): number {
    return this.series.length;
  }

  /** The reading at a place, as an object of its own. */
  at(place: number): Reading {
    const readMs = this.times?.[place];
    const reading = { ...(this.series[place] as Series), value: this.values[place] as Value };
    return readMs === undefined ? reading : { ...reading, readMs };
  }

  *[Symbol.iterator](): Generator<Reading> {
    for (let at = 0; at < this.length; at += 1) yield this.at(at);
  }
}

/** As a family makes them, or as the agent keeps them. */
export type ReadingList = readonly Reading[] | Readings;

const OF_LISTS = new WeakMap<readonly Reading[], Readings>();

type SeriesParts = { readonly [K in keyof Series]: Series[K] | undefined } & { readonly metric: string };

export const seriesOfOne = ({ metric, labels, wrapsAt }: SeriesParts): Series => ({
  metric,
  ...defined({ labels, wrapsAt }),
});

const NO_PLACES: readonly number[] = [];

/** The places of a metric. They are found without a search. */
export const placesOf = ({ series }: Readings, metric: string): readonly number[] => placesOfMetrics(series).get(metric) ?? NO_PLACES;

/** All readings of a metric. */
export function ofMetric(readings: Readings, metric: string): readonly Reading[] {
  return placesOf(readings, metric).map((at) => readings.at(at));
}

const placesOfMetrics = memoizedBy((all: readonly Series[]): ReadonlyMap<string, readonly number[]> => {
  const places = new Map<string, number[]>();
  for (const [at, { metric }] of all.entries()) {
    const own = places.get(metric);
    if (own === undefined) places.set(metric, [at]);
    else own.push(at);
  }
  return places;
});

/** Chooses readings by their metric. The same readings give the same object, and so do the same series with other values. */
export function chooser(isWanted: (metric: string) => boolean): (readings: Readings) => Readings {
  const wanted = memoizedBy((all: readonly Series[]) => {
    const places = all.flatMap(({ metric }, at) => (isWanted(metric) ? [at] : []));
    return { places, series: places.map((at) => all[at] as Series) };
  });
  return memoizedBy(({ series: all, values, times }: Readings) => {
    const { places, series } = wanted(all);
    const chosen = places.map((at) => values[at] as Value);
    return new Readings(series, chosen, times && places.map((at) => times[at]));
  });
}

/** Both lists as one, which is the same object while both are. */
export function joinedReadings(own: Readings, side: Readings): Readings {
  if (side.length === 0) return own;
  const before = JOINED.get(own);
  if (before?.side === side) return before.joined;
  const { series, values, times } = own;
  const timesOf = (one: Readings): ValueTimes & object => one.times ?? new Array<undefined>(one.length).fill(undefined);
  const joined = new Readings(
    joinedSeries(series)(side.series),
    [...Array.from(values), ...Array.from(side.values)],
    times === undefined && side.times === undefined ? undefined : [...timesOf(own), ...timesOf(side)],
  );
  JOINED.set(own, { side, joined });
  return joined;
}

const JOINED = new WeakMap<Readings, { readonly side: Readings; readonly joined: Readings }>();
const joinedSeries = memoizedBy((own: readonly Series[]) => memoizedBy((side: readonly Series[]): readonly Series[] => [...own, ...side]));

/** Value of the series with exactly these labels. Undefined when it was not read, or is no number. */
export function seriesValue(readings: Readings, { metric, labels }: SeriesChoice): number | undefined {
  const at = placesOf(readings, metric).find((place) => areSameLabels(readings.series[place]?.labels, labels));
  const value = at === undefined ? undefined : Number(readings.values[at]);
  return Number.isFinite(value) ? value : undefined;
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
