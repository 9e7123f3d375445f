import type { Allocation } from '../model/allocation.ts';
import { type Device, isOtherDevice } from '../model/device.ts';
import type { Value } from '../model/metric.ts';
import type { Readings } from '../model/readings.ts';
import type { ContainerReadings } from '../model/snapshot.ts';

/** What a container was told of a device last. */
export interface Told {
  readonly holder: Allocation;
  /** Those of the device. */
  readonly readings: Readings;
  readonly result: ContainerReadings;
  /** For each reading of the result its place among those of the device, of which some are not the container's business. */
  readonly places: readonly number[];
  /** For each reading of the result its counter; undefined where it is none. */
  readonly counters: readonly (HolderCounter | undefined)[];
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
  /** Number of the refresh in which it was last asked for. */
  seenIn = 0;
  readonly #counters = new Map<string, HolderCounter>();
  #device: Device | undefined;

  /** To be called before they are asked for: when the device's name has come to stand for another one, they begin anew. */
  countAt(device: Device): void {
    if (device === this.#device) return;
    if (this.#device !== undefined && isOtherDevice(this.#device, device)) {
      this.#counters.clear();
      this.told = undefined;
    }
    this.#device = device;
  }

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
  readonly #holders = new Map<string, HolderCounters>();
  /** The one that was asked for last, by device: mostly it is asked for again. */
  readonly #latest = new Map<string, { readonly holder: Allocation; readonly counters: HolderCounters }>();
  #refresh = 1;
  #seen = 0;

  /** Of a container on a device. */
  of(holder: Allocation, deviceKey: string): HolderCounters {
    const latest = this.#latest.get(deviceKey);
    const counters = latest?.holder === holder ? latest.counters : this.#find(holder, deviceKey);
    if (counters.seenIn !== this.#refresh) this.#seen += 1;
    counters.seenIn = this.#refresh;
    return counters;
  }

  /** Ends one refresh: holders that were not asked for in it are forgotten. */
  sweep(): void {
    if (this.#seen < this.#holders.size) {
      for (const [key, { seenIn }] of this.#holders) if (seenIn !== this.#refresh) this.#holders.delete(key);
      for (const [key, { counters }] of this.#latest) if (counters.seenIn !== this.#refresh) this.#latest.delete(key);
    }
    this.#refresh += 1;
    this.#seen = 0;
  }

  get size(): number {
    return this.#holders.size;
  }

  #find(holder: Allocation, deviceKey: string): HolderCounters {
    const key = `${holder.namespace}/${holder.pod}/${holder.container}/${deviceKey}`;
    const counters = this.#holders.get(key) ?? new HolderCounters();
    this.#holders.set(key, counters);
    this.#latest.set(deviceKey, { holder, counters });
    return counters;
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
