import type { Allocation } from '../model/allocation.ts';
import { type Device, isOtherDevice } from '../model/device.ts';
import type { Value } from '../model/metric.ts';

/** One counter of one container: where it stood when the container was first seen, and what came before a reset. */
class HolderCounter {
  #base: Value;
  #last: Value;
  #carried: Value = 0;

  constructor(value: Value) {
    this.#base = value;
    this.#last = value;
  }

  /** Growth since the base. A counter that falls was reset, and has grown from 0 since. */
  grownTo(value: Value): Value {
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
  /** Monotonic clock of the moment at which the container was first seen with the device. What came before is nobody's. */
  readonly seenFromMs: number;
  readonly #counters = new Map<string, HolderCounter>();
  #device: Device | undefined;
  #isCounting = false;

  constructor(seenFromMs: number) {
    this.seenFromMs = seenFromMs;
  }

  /** False until there was a look that began when the container was there: a look from before would give it what others moved. */
  get isCounting(): boolean {
    return this.#isCounting;
  }

  /**
   * To be called before each {@link grownTo}. `readFromMs`: monotonic clock of the begin of the look that gave the values. When the device's name
   * has come to stand for another device, the counters begin anew.
   */
  look(device: Device, readFromMs: number | undefined): void {
    if (this.#device !== undefined && isOtherDevice(this.#device, device)) this.#counters.clear();
    this.#device = device;
    if (readFromMs !== undefined && readFromMs >= this.seenFromMs) this.#isCounting = true;
  }

  /** Growth of a series since it was first asked for. */
  grownTo(series: string, value: Value): Value {
    let counter = this.#counters.get(series);
    if (counter === undefined) {
      counter = new HolderCounter(value);
      this.#counters.set(series, counter);
    }
    return counter.grownTo(value);
  }
}

/** {@link HolderCounters} of all holders; those of containers that are gone end with {@link sweep}. */
export class ContainerCounters {
  #holders = new Map<string, HolderCounters>();
  #asked = new Map<string, HolderCounters>();
  #awaited: ReadonlyMap<string, number> = new Map();

  /**
   * Families with a device whose container has no base for its counters yet, as of the last {@link sweep}, and the monotonic clock from
   * which on a look would give one.
   */
  get awaited(): ReadonlyMap<string, number> {
    return this.#awaited;
  }

  /** Of a container on a device; `nowMs`: monotonic clock. */
  of({ namespace, pod, container }: Allocation, deviceKey: string, nowMs: number): HolderCounters {
    const key = `${namespace}/${pod}/${container}/${deviceKey}`;
    const counters = this.#asked.get(key) ?? this.#holders.get(key) ?? new HolderCounters(nowMs);
    this.#asked.set(key, counters);
    return counters;
  }

  /** Ends one turn: holders that were not asked for in it are forgotten. */
  sweep(awaited: ReadonlyMap<string, number>): void {
    this.#holders = this.#asked;
    this.#asked = new Map();
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
