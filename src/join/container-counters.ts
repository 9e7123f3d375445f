import type { Allocation } from '../model/allocation.ts';
import type { Labels, Reading } from '../model/metric.ts';
import type { ContainerReading } from '../model/snapshot.ts';

type Value = number | bigint;

/** One counter of one container: where it stood when the container was first seen, and what came before a reset. */
interface Baseline {
  base: Value;
  last: Value;
  carried: Value;
}

/** What a container was told of a device last, and of which readings it was made, place by place. */
export interface Told {
  readonly holder: Allocation;
  readonly readings: readonly Reading[];
  /** Undefined where a reading is not the container's business. */
  readonly places: readonly (ContainerReading | undefined)[];
  readonly result: readonly ContainerReading[];
}

/** The counters of one container on one device. They start at 0 and go on over a reset of the hardware's counter. */
export class HolderCounters {
  /** Absent before the first time. */
  told: Told | undefined;
  readonly #baselines = new Map<string, Baseline>();

  /** Growth of the series since it was first asked for. */
  sinceFirstSeen(series: string, value: Value): Value {
    const baseline = this.#baselines.get(series);
    if (baseline === undefined) {
      this.#baselines.set(series, { base: value, last: value, carried: 0 });
      return 0;
    }
    if (value < baseline.last) {
      baseline.carried = add(baseline.carried, subtract(baseline.last, baseline.base));
      baseline.base = 0;
    }
    baseline.last = value;
    return add(baseline.carried, subtract(value, baseline.base));
  }
}

/** {@link HolderCounters} of all holders; those of containers that are gone end with {@link sweep}. */
export class ContainerCounters {
  /** Of label objects, which stay the same from one refresh to the next. */
  readonly #series = new WeakMap<Labels, string>();
  #holders = new Map<string, HolderCounters>();
  #seen = new Map<string, HolderCounters>();

  of(holder: string): HolderCounters {
    const counters = this.#seen.get(holder) ?? this.#holders.get(holder) ?? new HolderCounters();
    this.#seen.set(holder, counters);
    return counters;
  }

  /** The name of a series among those of its holder. */
  seriesOf({ metric, labels }: Reading): string {
    if (labels === undefined) return metric;
    let text = this.#series.get(labels);
    if (text === undefined) {
      text = JSON.stringify(labels);
      this.#series.set(labels, text);
    }
    return `${metric}${text}`;
  }

  /** Ends one refresh: holders that were not asked for in it are forgotten. */
  sweep(): void {
    this.#holders = this.#seen;
    this.#seen = new Map();
  }

  get size(): number {
    return this.#holders.size;
  }
}

const exact = (value: Value): boolean => typeof value === 'bigint' || Number.isInteger(value);

function add(a: Value, b: Value): Value {
  if (typeof a === 'number' && typeof b === 'number') return a + b;
  return exact(a) && exact(b) ? narrow(BigInt(a) + BigInt(b)) : Number(a) + Number(b);
}

function subtract(a: Value, b: Value): Value {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return exact(a) && exact(b) ? narrow(BigInt(a) - BigInt(b)) : Number(a) - Number(b);
}

function narrow(value: bigint): Value {
  return value >= BigInt(Number.MIN_SAFE_INTEGER) && value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : value;
}
