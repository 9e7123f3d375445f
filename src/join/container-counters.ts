import type { Allocation } from '../model/allocation.ts';
import type { Reading } from '../model/metric.ts';
import type { ContainerReading } from '../model/snapshot.ts';

type Value = number | bigint;

/** What a container was told of a device last: one place per reading of the device, and all of it in one list. */
export interface Told {
  readonly holder: Allocation;
  readonly readings: readonly Reading[];
  readonly places: readonly ToldPlace[];
  readonly result: readonly ContainerReading[];
}

export interface ToldPlace {
  readonly reading: Reading;
  /** Absent where a reading is not the container's business. */
  readonly told?: ContainerReading;
  /** Of a counter. */
  readonly counter?: HolderCounter;
}

/** One counter of one container: where it stood when the container was first seen, and what came before a reset. */
export class HolderCounter {
  #base: Value;
  #last: Value;
  #carried: Value = 0;

  constructor(value: Value) {
    this.#base = value;
    this.#last = value;
  }

  /** Growth since it was first asked for. */
  sinceFirstSeen(value: Value): Value {
    if (value < this.#last) {
      this.#carried = add(this.#carried, subtract(this.#last, this.#base));
      this.#base = 0;
    }
    this.#last = value;
    return add(this.#carried, subtract(value, this.#base));
  }
}

/** The counters of one container on one device. They start at 0 and go on over a reset of the hardware's counter. */
export class HolderCounters {
  /** Absent before the first time. */
  told: Told | undefined;
  readonly #counters = new Map<string, HolderCounter>();

  /** The counter of a series; `value` is where a new one begins. */
  counter(series: string, value: Value): HolderCounter {
    let counter = this.#counters.get(series);
    if (counter === undefined) {
      counter = new HolderCounter(value);
      this.#counters.set(series, counter);
    }
    return counter;
  }

  /** Growth of the series since it was first asked for. */
  sinceFirstSeen(series: string, value: Value): Value {
    return this.counter(series, value).sinceFirstSeen(value);
  }
}

/** {@link HolderCounters} of all holders; those of containers that are gone end with {@link sweep}. */
export class ContainerCounters {
  #holders = new Map<string, HolderCounters>();
  #seen = new Map<string, HolderCounters>();

  of(holder: string): HolderCounters {
    const counters = this.#seen.get(holder) ?? this.#holders.get(holder) ?? new HolderCounters();
    this.#seen.set(holder, counters);
    return counters;
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
