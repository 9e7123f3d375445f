import { keptList } from '../model/kept.ts';
import { addValues, areSameLabels, type Labels, type Reading, restoredValue, subtractValues, type Value } from '../model/metric.ts';
import { chooser, keptBy, Readings, seriesOfOne, type Series as ToldSeries } from '../model/readings.ts';
import type { OwnCounter } from '../model/usage.ts';

/** One series. Each change makes a new counter, because outputs have the earlier one. */
interface Series {
  counter: OwnCounter;
}

/**
 * The counters of one container on one device. They grow with the counters of the device, for as long as the container alone holds it, and
 * keep what they have while others hold it too. They go on over a reset of the hardware.
 */
export class OwnCounters {
  readonly #series = new Map<string, Series>();
  /** Monotonic clock. An earlier read shows what others did. Infinite while others hold the device. */
  #fromMs: number;
  /** In the order of the last read, so that the next one finds them without a search. */
  readonly #order: Series[] = [];
  #told: readonly ToldSeries[] = [];
  #counters: readonly OwnCounter[] = [];
  #isCounting = false;
  /** Monotonic time of the last read that was taken, while this container alone holds the device. */
  #takenMs: number | undefined;

  constructor(fromMs: number) {
    this.#fromMs = fromMs;
  }

  /** Counters that an earlier run saved. After a reboot the hardware counts anew, so that each counter needs another base. */
  static restored(saved: readonly OwnCounter[], isSameBoot: boolean): OwnCounters {
    const own = new OwnCounters(Number.POSITIVE_INFINITY);
    for (const counter of saved) own.#series.set(seriesOf(counter), { counter: isSameBoot ? counter : withoutBase(counter) });
    own.#isCounting = isSameBoot && saved.some(({ last }) => last !== undefined);
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
    this.#takenMs = undefined;
    for (const one of this.#series.values()) one.counter = withoutBase(one.counter);
  }

  /** Takes the counters among the device's readings. `readFromMs`: monotonic clock at which their read began. */
  take(readings: Readings, readFromMs: number | undefined, isCounter: (metric: string) => boolean): void {
    if (readFromMs !== undefined && readFromMs >= this.#fromMs) this.#isCounting = true;
    if (!this.#isCounting || (readFromMs !== undefined && readFromMs === this.#takenMs)) return;
    this.#takenMs = readFromMs;
    const { series, values, times } = countersOf(isCounter)(readings);
    for (let at = 0; at < series.length; at += 1) this.#take(series[at] as ToldSeries, values[at] as Value, times?.[at], at);
  }

  /** Takes counters that were counted for this container alone, whoever else holds the device. */
  assign(readings: readonly Reading[]): void {
    for (const { metric, labels, value } of readings) {
      const counter = openCounter({ metric, labels, value });
      const known = this.#series.get(seriesOf(counter));
      if (known === undefined) this.#series.set(seriesOf(counter), { counter });
      else if (known.counter.value !== value) known.counter = counter;
    }
  }

  /** As outputs see them. */
  readings(): readonly OwnCounter[] {
    const counters: OwnCounter[] = [];
    for (const { counter } of this.#series.values()) counters.push(counter);
    // Series come, and none goes.
    if (this.#told.length !== counters.length) this.#told = counters.map(seriesOfOne);
    this.#counters = keptList(this.#counters, counters);
    Readings.of(this.#counters, this.#told);
    return this.#counters;
  }

  /** `at`: place of the series among the counters of its read. */
  #take(series: ToldSeries, value: Value, readMs: number | undefined, at: number): void {
    const { wrapsAt } = series;
    // A value that is no number is not read: it would end the total.
    if (!Number.isFinite(Number(value))) return;
    // An earlier read than the device's can show what others did. Then the next read of the source gives the base.
    const isBefore = readMs !== undefined && readMs < this.#fromMs;
    const one = isBefore ? this.#series.get(seriesOf(series)) : this.#seriesAt(series, at);
    if (one === undefined || (isBefore && one.counter.last === undefined)) return;
    const { counter } = one;
    const { last } = counter;
    if (value === last) return;
    const growth = last === undefined ? 0 : value < last ? addValues(value, restBefore(wrapsAt, last, value)) : subtractValues(value, last);
    one.counter = { ...counter, value: addValues(counter.value, growth), last: value };
  }

  #seriesAt(told: ToldSeries, at: number): Series {
    const guess = this.#order[at];
    if (guess?.counter.metric === told.metric && areSameLabels(guess.counter.labels, told.labels)) return guess;
    const name = seriesOf(told);
    const one = this.#series.get(name) ?? { counter: openCounter({ ...told, value: 0 }) };
    this.#series.set(name, one);
    this.#order[at] = one;
    return one;
  }
}

const countersOf = keptBy((isCounter: (metric: string) => boolean) => chooser(isCounter));

/** A counter that an earlier run saved as JSON, in which a `bigint` is its digits. None for a value that is no number. */
export function restoredCounter({ metric, labels, value, last }: OwnCounter): readonly OwnCounter[] {
  const [total, base] = [restoredValue(value), restoredValue(last)];
  if (total === undefined) return [];
  const counter = openCounter({ metric, labels, value: total });
  return [base === undefined ? counter : { ...counter, last: base }];
}

const openCounter = ({ metric, labels, value }: { metric: string; labels?: Labels | undefined; value: Value }): OwnCounter =>
  labels === undefined ? { metric, value } : { metric, labels, value };

const withoutBase = (counter: OwnCounter): OwnCounter => (counter.last === undefined ? counter : openCounter(counter));

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
