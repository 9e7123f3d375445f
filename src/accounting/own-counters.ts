import {
  addValues,
  areSameLabels,
  type Labels,
  type Reading,
  restoredValue,
  type SavedValue,
  savedValue,
  subtractValues,
  type Value,
} from '../model/metric.ts';

/** One counter of one container. It grew by `carried`, and since the base by `last` without `base`. */
interface OwnCounter {
  /** Its growth as outputs see it. Another growth is another object. */
  total: Reading;
  carried: Value;
  /** Absent until a read gives it. */
  since: { readonly base: Value; last: Value } | undefined;
}

/** A counter as plain data for JSON. `since`: base and last value, null while there is no base. */
export type SavedCounter = readonly [
  metric: string,
  carried: SavedValue,
  since: readonly [base: SavedValue, last: SavedValue] | null,
  labels?: Labels,
];

/**
 * The counters of one container on one device. They grow with the counters of the device, for as long as the container alone holds it, and
 * keep what they have while others hold it too. They go on over a reset of the hardware.
 */
export class OwnCounters {
  readonly #counters = new Map<string, OwnCounter>();
  /** Monotonic clock. An earlier read shows what others did. Infinite while others hold the device. */
  #fromMs: number;
  /** In the order of the last read, so that the next one finds them without a search. */
  readonly #order: OwnCounter[] = [];
  #isCounting = false;

  constructor(fromMs: number) {
    this.#fromMs = fromMs;
  }

  /** Counters of an earlier run. After a reboot the hardware counts anew, so that each counter needs another base. */
  static restored(saved: readonly SavedCounter[], isSameBoot: boolean): OwnCounters {
    const own = new OwnCounters(Number.POSITIVE_INFINITY);
    for (const [metric, total, since, labels] of saved) {
      const [carried, base, last] = [restoredValue(total), restoredValue(since?.[0]), restoredValue(since?.[1])];
      if (carried === undefined) continue;
      const counter = openCounter(metric, labels, carried, base === undefined || last === undefined ? undefined : { base, last });
      if (!isSameBoot) rebase(counter);
      own.#isCounting ||= counter.since !== undefined;
      own.#counters.set(seriesOf(metric, labels), counter);
    }
    return own;
  }

  get saved(): readonly SavedCounter[] {
    return [...this.#counters.values()].map(({ total: { metric, labels }, carried, since }): SavedCounter => {
      const at = since === undefined ? null : ([savedValue(since.base), savedValue(since.last)] as const);
      return labels === undefined ? [metric, savedValue(carried), at] : [metric, savedValue(carried), at, labels];
    });
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
    for (const counter of this.#counters.values()) rebase(counter);
  }

  /** Takes the counters among the device's readings. `readFromMs`: monotonic clock at which their read began. */
  take(readings: readonly Reading[], readFromMs: number | undefined, isCounter: (metric: string) => boolean): void {
    if (readFromMs !== undefined && readFromMs >= this.#fromMs) this.#isCounting = true;
    if (!this.#isCounting) return;
    let at = 0;
    for (const reading of readings) if (isCounter(reading.metric)) this.#take(reading, at++);
  }

  /** Takes counters that were counted for this container alone, whoever else holds the device. */
  assign(readings: readonly Reading[]): void {
    for (const { metric, labels, value } of readings) {
      const series = seriesOf(metric, labels);
      if (this.#counters.get(series)?.total.value !== value) this.#counters.set(series, openCounter(metric, labels, value));
    }
  }

  /** All totals, for outputs. */
  readings(): readonly Reading[] {
    const totals: Reading[] = [];
    for (const { total } of this.#counters.values()) totals.push(total);
    return totals;
  }

  /** `at`: place of the reading among the counters of its read. */
  #take(reading: Reading, at: number): void {
    const { value, wrapsAt, readMs } = reading;
    // An earlier read than the device's can show what others did. Then the next read of the source gives the base.
    const isBefore = readMs !== undefined && readMs < this.#fromMs;
    const counter = isBefore ? this.#counters.get(seriesOf(reading.metric, reading.labels)) : this.#counterOf(reading, at);
    if (counter === undefined || (isBefore && counter.since === undefined)) return;
    const last = counter.since?.last;
    if (counter.since === undefined || last === undefined) counter.since = { base: value, last: value };
    else if (value === last) return;
    else if (value < last) {
      const rest = wrapsAt === undefined ? 0 : restBefore(wrapsAt, Number(last), Number(value));
      counter.carried = addValues(grownOf(counter), rest);
      counter.since = { base: 0, last: value };
    } else counter.since.last = value;
    counter.total = { ...counter.total, value: grownOf(counter) };
  }

  #counterOf({ metric, labels }: Reading, at: number): OwnCounter {
    const guess = this.#order[at];
    if (guess?.total.metric === metric && areSameLabels(guess.total.labels, labels)) return guess;
    const series = seriesOf(metric, labels);
    const counter = this.#counters.get(series) ?? openCounter(metric, labels, 0);
    this.#counters.set(series, counter);
    this.#order[at] = counter;
    return counter;
  }
}

function openCounter(metric: string, labels: Labels | undefined, carried: Value, since?: OwnCounter['since']): OwnCounter {
  const counter: OwnCounter = { total: { metric, value: carried }, carried, since };
  counter.total = labels === undefined ? { metric, value: grownOf(counter) } : { metric, labels, value: grownOf(counter) };
  return counter;
}

function rebase(counter: OwnCounter): void {
  counter.carried = grownOf(counter);
  counter.since = undefined;
}

const grownOf = ({ carried, since }: OwnCounter): Value =>
  since === undefined ? carried : addValues(carried, subtractValues(since.last, since.base));

/**
 * What a counter of known width counted before it began again at 0. A smaller value can also mean a reset, so it counts as a wrap only when
 * the growth is less than half of the range, as of sequence numbers in RFC 1982.
 */
function restBefore(wrapsAt: number, last: number, value: number): number {
  const rest = wrapsAt - last;
  return rest >= 0 && rest + value < wrapsAt / 2 ? rest : 0;
}

/** A family always gives labels in the same order. */
const seriesOf = (metric: string, labels: Labels | undefined): string =>
  labels === undefined ? metric : `${metric}\u0000${Object.values(labels).join('\u0000')}`;
