import type { Labels, Reading, Value } from '../../model/metric.ts';
import { areSameFields, type ReadingList, Readings, type Series, seriesOfOne } from '../../model/readings.ts';

/**
 * Writes the readings of one device, read after read, and lives as long as the device. While a read gives the same series as the read before, in
 * the same order, it writes only numbers. What did not change is the same object: the series, the times, and all readings.
 */
export class ReadingWriter {
  readonly #series: Series[] = [];
  #values = new Float64Array(64);
  /** Values that a `number` cannot hold exactly, by their places; the column has NaN there. */
  readonly #exact = new Map<number, bigint>();
  readonly #times: (number | undefined)[] = [];
  #end = 0;
  #hasOtherSeries = false;
  #hasOtherTimes = false;
  #hasOtherValues = false;
  #last = Readings.NONE;

  /** An undefined value adds nothing. `readMs` and `wrapsAt` as in a {@link Reading}. */
  add(metric: string, value: Value | undefined, labels?: Labels, readMs?: number, wrapsAt?: number): void {
    if (value === undefined) return;
    const at = this.#end;
    this.#end = at + 1;
    const series = this.#series[at];
    if (series === undefined || series.labels !== labels || series.metric !== metric || series.wrapsAt !== wrapsAt)
      this.#learn(at, seriesOfOne({ metric, labels, wrapsAt }));
    if (this.#times[at] !== readMs) {
      this.#times[at] = readMs;
      this.#hasOtherTimes = true;
    }
    if (this.#values[at] !== value) this.#write(at, value);
  }

  addAll(readings: Iterable<Reading>): this {
    for (const { metric, value, labels, readMs, wrapsAt } of readings) this.add(metric, value, labels, readMs, wrapsAt);
    return this;
  }

  /** What was added since the last end. */
  end(): Readings {
    const length = this.#end;
    this.#end = 0;
    const isOther = this.#hasOtherSeries || length !== this.#last.length;
    if (isOther) for (const at of this.#exact.keys()) if (at >= length) this.#exact.delete(at);
    if (isOther || this.#hasOtherTimes || this.#hasOtherValues) {
      const series = isOther ? this.#series.slice(0, length) : this.#last.series;
      this.#last = new Readings(series, this.#column(length), isOther || this.#hasOtherTimes ? this.#timesOf(length) : this.#last.times);
    }
    this.#hasOtherSeries = false;
    this.#hasOtherTimes = false;
    this.#hasOtherValues = false;
    return this.#last;
  }

  #learn(at: number, series: Series): void {
    const known = this.#series[at];
    if (known?.metric === series.metric && known.wrapsAt === series.wrapsAt && areSameFields(known.labels, series.labels)) return;
    this.#series[at] = series;
    this.#hasOtherSeries = true;
  }

  #write(at: number, value: Value): void {
    if (at >= this.#values.length) {
      const before = this.#values;
      this.#values = new Float64Array(2 * at);
      this.#values.set(before);
    }
    if (typeof value === 'bigint') {
      if (this.#exact.get(at) === value) return;
      this.#exact.set(at, value);
      this.#values[at] = Number.NaN;
    } else {
      this.#exact.delete(at);
      this.#values[at] = value;
    }
    this.#hasOtherValues = true;
  }

  /** A copy, so that readings never change. */
  #column(length: number): Readings['values'] {
    const column = this.#values.slice(0, length);
    return this.#exact.size === 0 ? column : Array.from(column, (value, at) => this.#exact.get(at) ?? value);
  }

  #timesOf(length: number): Readings['times'] {
    const times = this.#times.slice(0, length);
    return times.some((time) => time !== undefined) ? times : undefined;
  }
}

const WRITERS = new WeakMap<Readings, ReadingWriter>();

/** The columns of a list. `before`: those of the same source at the read before, whose objects stay for what is the same. */
export function columnsOf(list: ReadingList, before: Readings | undefined): Readings {
  if (list instanceof Readings) return list;
  if (list.length === 0) return Readings.NONE;
  const writer = (before && WRITERS.get(before)) ?? new ReadingWriter();
  const readings = writer.addAll(list).end();
  WRITERS.set(readings, writer);
  return readings;
}
