import type { Allocation } from '../model/allocation.ts';
import { type Device, isOtherDevice } from '../model/device.ts';
import type { Value } from '../model/metric.ts';
import { addValues, restoredValue, type SavedValue, savedValue, subtractValues } from '../model/value-sum.ts';

/** One counter of one container: its value when the container was first seen, and the growth before a reset. */
class HolderCounter {
  #base: Value;
  #last: Value;
  #carried: Value;

  constructor(value: Value, carried: Value = 0) {
    this.#base = value;
    this.#last = value;
    this.#carried = carried;
  }

  get saved(): SavedCounter {
    return [savedValue(this.#base), savedValue(this.#last), savedValue(this.#carried)];
  }

  static restored([savedBase, savedLast, savedCarried]: SavedCounter): HolderCounter | undefined {
    const [base, last, carried] = [restoredValue(savedBase), restoredValue(savedLast), restoredValue(savedCarried)];
    if (base === undefined || last === undefined || carried === undefined) return undefined;
    const counter = new HolderCounter(base, carried);
    counter.#last = last;
    return counter;
  }

  /** Growth until the last value. */
  get grown(): Value {
    return addValues(this.#carried, subtractValues(this.#last, this.#base));
  }

  /** Growth since the base. A smaller value means a reset, after which the counter grew from 0. */
  grownTo(value: Value): Value {
    if (value < this.#last) {
      this.#carried = this.grown;
      this.#base = 0;
    }
    this.#last = value;
    return this.grown;
  }
}

/** Base, last value, and growth before the base. */
type SavedCounter = readonly [SavedValue, SavedValue, SavedValue];

/** Counters of one container on one device, as plain data for JSON. */
export interface SavedHolder {
  /** Device and container. */
  readonly key: string;
  readonly uid?: string;
  readonly device: Pick<Device, 'identity' | 'pciAddress' | 'uuid'>;
  readonly counters: Readonly<Record<string, SavedCounter>>;
}

/** Counters of one container on one device. They start at 0 and continue over a reset of the hardware's counter. */
export class HolderCounters {
  /** Monotonic clock at which the container was first seen with the device. Earlier growth belongs to no container. */
  seenFromMs: number;
  /** UID of the pod, once it is known. */
  uid: string | undefined;
  readonly #counters = new Map<string, HolderCounter>();
  /** Growth before a reboot, of series that were not read since. */
  readonly #carried = new Map<string, Value>();
  #device: SavedHolder['device'] | undefined;
  #isCounting = false;

  constructor(seenFromMs: number, uid?: string) {
    this.seenFromMs = seenFromMs;
    this.uid = uid;
  }

  /** Counters of an earlier run. After a reboot the hardware counts anew: the first value of each series is a new base. */
  static restored({ uid, device, counters }: SavedHolder, isSameBoot: boolean): HolderCounters {
    const holder = new HolderCounters(Number.NEGATIVE_INFINITY, uid);
    holder.#device = device;
    holder.#isCounting = isSameBoot;
    for (const [series, saved] of Object.entries(counters)) {
      const counter = HolderCounter.restored(saved);
      if (counter === undefined) continue;
      if (isSameBoot) holder.#counters.set(series, counter);
      else holder.#carried.set(series, counter.grown);
    }
    return holder;
  }

  /** Counters without a base get it from a read that begins now or later. */
  countFrom(nowMs: number): void {
    if (!this.#isCounting) this.seenFromMs = nowMs;
  }

  /** Undefined while there is nothing to save. */
  saved(key: string): SavedHolder | undefined {
    if (this.#device === undefined || (!this.#isCounting && this.#carried.size === 0)) return undefined;
    const { identity, pciAddress, uuid } = this.#device;
    const waiting = [...this.#carried].map(([series, value]) => [series, [0, 0, savedValue(value)]] as const);
    return {
      key,
      ...(this.uid === undefined ? {} : { uid: this.uid }),
      device: {
        ...(typeof identity === 'string' ? { identity } : {}),
        ...(pciAddress === undefined ? {} : { pciAddress }),
        ...(uuid === undefined ? {} : { uuid }),
      },
      counters: Object.fromEntries([...waiting, ...[...this.#counters].map(([series, counter]) => [series, counter.saved] as const)]),
    };
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
    if (this.#device !== undefined && isOtherDevice(this.#device, device)) {
      this.#counters.clear();
      this.#carried.clear();
    }
    this.#device = device;
    if (readFromMs !== undefined && readFromMs >= this.seenFromMs) this.#isCounting = true;
  }

  /** Growth of a series since the first call for it. */
  grownTo(series: string, value: Value): Value {
    let counter = this.#counters.get(series);
    if (counter === undefined) {
      counter = new HolderCounter(value, this.#carried.get(series));
      this.#carried.delete(series);
      this.#counters.set(series, counter);
    }
    return counter.grownTo(value);
  }
}

/** {@link HolderCounters} of all holders. {@link sweep} removes those of containers that no longer exist. */
export class ContainerCounters {
  #holders = new Map<string, HolderCounters>();
  #used = new Map<string, HolderCounters>();
  /** Counters of an earlier run, until the container or its end is seen. */
  readonly #earlier: Map<string, HolderCounters>;
  readonly #isSameBoot: boolean;
  #awaited: ReadonlyMap<string, number> = new Map();

  /** `earlier`: what an earlier run saved, before or after a reboot of the node. */
  constructor(earlier: readonly SavedHolder[] = [], isSameBoot = true) {
    this.#isSameBoot = isSameBoot;
    this.#earlier = new Map(earlier.map((saved) => [saved.key, HolderCounters.restored(saved, isSameBoot)]));
  }

  /** Families with a container whose counters have no base yet. The value is the monotonic time from which a read gives the base. */
  get awaited(): ReadonlyMap<string, number> {
    return this.#awaited;
  }

  /**
   * Counters of a container on a device. `nowMs`: monotonic clock. `uid`: that of the pod, where it is known. A pod of the same name with
   * another UID starts at 0.
   */
  of({ namespace, pod, container }: Allocation, deviceKey: string, nowMs: number, uid?: string): HolderCounters {
    const key = `${deviceKey} ${namespace}/${pod}/${container}`;
    const known = this.#used.get(key) ?? this.#holders.get(key) ?? this.#ofEarlier(key, nowMs);
    const counters = known === undefined || isOtherPod(known.uid, uid) ? new HolderCounters(nowMs, uid) : known;
    counters.uid ??= uid;
    this.#used.set(key, counters);
    return counters;
  }

  /** Ends one turn: forgets the holders that {@link of} did not return in it. */
  sweep(awaited: ReadonlyMap<string, number>): void {
    this.#holders = this.#used;
    this.#used = new Map();
    this.#awaited = awaited;
  }

  /** Forgets the counters of an earlier run that no container took up, for the devices whose holders are known now. */
  settle(isSettled: (deviceKey: string) => boolean): void {
    for (const key of this.#earlier.keys()) if (isSettled(key.slice(0, key.lastIndexOf(' ')))) this.#earlier.delete(key);
  }

  /** All counters as plain data, also those of an earlier run that wait for their container. */
  saved(): readonly SavedHolder[] {
    return [...this.#earlier, ...this.#holders].flatMap(([key, holder]) => holder.saved(key) ?? []);
  }

  get size(): number {
    return this.#holders.size;
  }

  /** After a reboot, only a UID tells that a pod is the same. */
  #ofEarlier(key: string, nowMs: number): HolderCounters | undefined {
    const found = this.#earlier.get(key);
    this.#earlier.delete(key);
    if (found === undefined || (found.uid === undefined && !this.#isSameBoot)) return undefined;
    found.countFrom(nowMs);
    return found;
  }
}

/** While one UID is not known, the name tells the pod. */
const isOtherPod = (before: string | undefined, now: string | undefined): boolean =>
  before !== undefined && now !== undefined && before !== now;
