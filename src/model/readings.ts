import type { Reading, SeriesId, Value } from './metric.ts';

/**
 * What one look at a device told: which series it has, and the value of each. Series and values lie apart, since from one look to the next
 * the series are mostly the same object, and a list of numbers costs a tenth of as many objects. Nothing of it is ever changed.
 */
export class Readings implements Iterable<Reading> {
  static readonly NONE = new Readings([], []);
  readonly series: readonly SeriesId[];
  /** Of the series at the same place. */
  readonly values: readonly Value[];

  constructor(series: readonly SeriesId[], values: readonly Value[]) {
    this.series = series;
    this.values = values;
  }

  /** `before`: what may have had the same series. */
  static of(list: readonly Reading[], before: Readings = Readings.NONE): Readings {
    if (list.length === 0) return Readings.NONE;
    const values = list.map(({ value }) => value);
    return new Readings(haveSeries(list, before.series) ? before.series : list.map(seriesOf), values);
  }

  get length(): number {
    return this.values.length;
  }

  at(place: number): Reading | undefined {
    const series = this.series[place];
    return series && { ...series, value: this.values[place] as Value };
  }

  *[Symbol.iterator](): IterableIterator<Reading> {
    for (let place = 0; place < this.length; place += 1) yield this.at(place) as Reading;
  }

  map<T>(of: (reading: Reading) => T): T[] {
    return Array.from(this, of);
  }

  filter(isWanted: (reading: Reading) => boolean): Reading[] {
    return [...this].filter(isWanted);
  }

  find(isWanted: (series: SeriesId) => boolean): Reading | undefined {
    return this.at(this.series.findIndex(isWanted));
  }
}

const seriesOf = ({ metric, labels }: Reading): SeriesId => (labels === undefined ? { metric } : { metric, labels });

/** Whether the series from a place on are those of a list; told by the identity of their labels, so a "no" may be wrong. */
export function haveSeries(list: readonly Reading[], series: readonly SeriesId[], from = 0): boolean {
  if (list.length !== series.length - from) return false;
  for (let at = 0; at < list.length; at += 1) {
    const [one, other] = [list[at] as Reading, series[from + at] as SeriesId];
    if (one.metric !== other.metric || one.labels !== other.labels) return false;
  }
  return true;
}
