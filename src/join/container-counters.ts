import type { Allocation } from '../model/allocation.ts';
import { type Device, isOtherDevice } from '../model/device.ts';
import type { Value } from '../model/metric.ts';

/** One counter of one container: its value when the container was first seen, and the growth before a reset. */
class HolderCounter {
  #base: Value;
  #last: Value;
  #carried: Value = 0;

  constructor(value: Value) {
    this.#base = value;
    this.#last = value;
  }

  /** Growth since the base. A smaller value means a reset, after which the counter grew from 0. */
  grownTo(value: Value): Value {
    if (value < this.#last) {
      this.#carried = add(this.#carried, subtract(this.#last, this.#base));
      this.#base = 0;
    }
    this.#last = value;
    return add(this.#carried, subtract(value, this.#base));
  }
}

/** Counters of one container on one device. They start at 0 and continue over a reset of the hardware's counter. */
export class HolderCounters {
  /** Monotonic clock at which the container was first seen with the device. Earlier growth belongs to no container. */
  readonly seenFromMs: number;
  readonly #counters = new Map<string, HolderCounter>();
  #device: Device | undefined;
  #isCounting = false;

  constructor(seenFromMs: number) {
    this.seenFromMs = seenFromMs;
  }

  /** False until a read that began after `seenFromMs`: the base of an earlier read would include growth caused by other containers. */
  get isCounting(): boolean {
    return this.#isCounting;
  }

  /**
   * Must be called before each {@link grownTo}. `readFromMs`: monotonic clock at which the read of the values began. Restarts the counters
   * when the device's name belongs to another device.
   */
  look(device: Device, readFromMs: number | undefined): void {
    if (this.#device !== undefined && isOtherDevice(this.#device, device)) this.#counters.clear();
    this.#device = device;
    if (readFromMs !== undefined && readFromMs >= this.seenFromMs) this.#isCounting = true;
  }

  /** Growth of a series since the first call for it. */
  grownTo(series: string, value: Value): Value {
    let counter = this.#counters.get(series);
    if (counter === undefined) {
      counter = new HolderCounter(value);
      this.#counters.set(series, counter);
    }
    return counter.grownTo(value);
  }
}

/** {@link HolderCounters} of all holders. {@link sweep} removes those of containers that no longer exist. */
export class ContainerCounters {
  #holders = new Map<string, HolderCounters>();
  #used = new Map<string, HolderCounters>();
  #awaited: ReadonlyMap<string, number> = new Map();

  /** Families with a container whose counters have no base yet. The value is the monotonic time from which a read gives the base. */
  get awaited(): ReadonlyMap<string, number> {
    return this.#awaited;
  }

  /** Counters of a container on a device. `nowMs`: monotonic clock. */
  of({ namespace, pod, container }: Allocation, deviceKey: string, nowMs: number): HolderCounters {
    const key = `${namespace}/${pod}/${container}/${deviceKey}`;
    const counters = this.#used.get(key) ?? this.#holders.get(key) ?? new HolderCounters(nowMs);
    this.#used.set(key, counters);
    return counters;
  }

  /** Ends one turn: forgets the holders that {@link of} did not return in it. */
  sweep(awaited: ReadonlyMap<string, number>): void {
    this.#holders = this.#used;
    this.#used = new Map();
    this.#awaited = awaited;
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
