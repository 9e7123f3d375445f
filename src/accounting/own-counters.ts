import { defined } from '../model/defined.ts';
import { addValues, type Labels, type Reading, restoredValue, subtractValues, type Value } from '../model/metric.ts';
import { chooser, memoizedBy, Readings, type Series, seriesOfOne } from '../model/readings.ts';
import type { OwnCounter } from '../model/usage.ts';

/**
 * The counters of one container on one device. They grow with the counters of the device, for as long as the container alone holds it, and
 * keep what they have while others hold it too. They go on over a reset of the hardware.
 */
export class OwnCounters {
  /** Each change makes a new counter, because outputs have the earlier one. */
  readonly #counters = new Map<string, OwnCounter>();
  #told: { readonly counters: readonly OwnCounter[]; readonly series: readonly Series[] } | undefined;
  /** Monotonic clock. An earlier read shows what others did. Infinite while others hold the device. */
  #fromMs: number;
  #isCounting = false;
  #isChanged = false;
  /** They give nothing more. */
  #taken: Readings | undefined;

  constructor(fromMs: number) {
    this.#fromMs = fromMs;
  }

  /** Counters that an earlier run saved. */
  static restored(saved: readonly OwnCounter[]): OwnCounters {
    const own = new OwnCounters(Number.POSITIVE_INFINITY);
    for (const counter of saved) own.#counters.set(seriesOf(counter), counter);
    own.#isCounting = saved.some(({ last }) => last !== undefined);
    return own;
  }

  /** Monotonic time from which a read gives the bases. Undefined when none is needed. */
  get awaitedFromMs(): number | undefined {
    return this.#isCounting || this.#fromMs === Number.POSITIVE_INFINITY ? undefined : this.#fromMs;
  }

  /** The container holds the device alone, from now on or as before. `nowMs`: monotonic clock. */
  hold(nowMs: number): void {
    if (this.#fromMs === Number.POSITIVE_INFINITY) this.#fromMs = nowMs;
  }

  /** Others hold the device too. The growth belongs to an unknown holder until the first read after the others ended. */
  share(): void {
    this.#fromMs = Number.POSITIVE_INFINITY;
    this.#isCounting = false;
    this.#taken = undefined;
    for (const [name, counter] of this.#counters) if (counter.last !== undefined) this.#put(name, openCounter(counter));
  }

  /** Takes the counters among the device's readings. `readFromMs`: monotonic clock at which their read began. */
  take(readings: Readings, readFromMs: number | undefined, isCounter: (metric: string) => boolean): void {
    if (readFromMs !== undefined && readFromMs >= this.#fromMs) this.#isCounting = true;
    if (!this.#isCounting || readings === this.#taken) return;
    this.#taken = readings;
    const { series, values, times } = countersOf(isCounter)(readings);
    for (let at = 0; at < series.length; at += 1) this.#take(series[at] as Series, values[at] as Value, times?.[at]);
  }

  /** Takes counters that were counted for this container alone, whoever else holds the device. */
  assign(readings: readonly Reading[]): void {
    for (const reading of readings) {
      const name = seriesOf(reading);
      if (this.#counters.get(name)?.value !== reading.value) this.#put(name, openCounter(reading));
    }
  }

  /** As outputs see them. */
  readings(): readonly OwnCounter[] {
    if (this.#told === undefined || this.#isChanged) {
      const counters = [...this.#counters.values()];
      // Series come, and none goes.
      const series = this.#told?.series.length === counters.length ? this.#told.series : counters.map(seriesOfOne);
      Readings.of(counters, series);
      this.#told = { counters, series };
      this.#isChanged = false;
    }
    return this.#told.counters;
  }

  #take(series: Series, value: Value, readMs: number | undefined): void {
    // A value that is no number is not read: it would end the total.
    if (!Number.isFinite(Number(value))) return;
    const name = nameOf(series);
    const counter = this.#counters.get(name);
    const last = counter?.last;
    // An earlier read than the device's can show what others did. Then the next read of the source gives the base.
    if (value === last || (last === undefined && readMs !== undefined && readMs < this.#fromMs)) return;
    const growth =
      last === undefined ? 0 : value < last ? addValues(value, restBefore(series.wrapsAt, last, value)) : subtractValues(value, last);
    this.#put(name, { ...(counter ?? openCounter({ ...series, value: 0 })), value: addValues(counter?.value ?? 0, growth), last: value });
  }

  #put(name: string, counter: OwnCounter): void {
    this.#counters.set(name, counter);
    this.#isChanged = true;
  }
}

const countersOf = memoizedBy((isCounter: (metric: string) => boolean) => chooser(isCounter));

/** A counter that an earlier run saved as JSON, in which a `bigint` is its digits. None for a value that is no number. */
export function restoredCounter(saved: OwnCounter): readonly OwnCounter[] {
  const [value, last] = [restoredValue(saved.value), restoredValue(saved.last)];
  return value === undefined ? [] : [{ ...openCounter({ ...saved, value }), ...defined({ last }) }];
}

const openCounter = ({ metric, labels, value }: { metric: string; labels?: Labels | undefined; value: Value }): OwnCounter =>
  labels === undefined ? { metric, value } : { metric, labels, value };

/**
 * What a counter of known width counted before it began again at 0. A smaller value can also mean a reset, so it counts as a wrap only when
 * the growth is less than half of the range, as of sequence numbers in RFC 1982.
 */
function restBefore(wrapsAt: number | undefined, last: Value, value: Value): number {
  if (wrapsAt === undefined) return 0;
  const rest = wrapsAt - Number(last);
  return rest >= 0 && rest + Number(value) < wrapsAt / 2 ? rest : 0;
}

/** A family always gives labels in the same order. */
const seriesOf = ({ metric, labels }: Pick<Reading, 'metric' | 'labels'>): string =>
  labels === undefined ? metric : `${metric}\u0000${Object.values(labels).join('\u0000')}`;
const nameOf = memoizedBy<Series, string>(seriesOf);
