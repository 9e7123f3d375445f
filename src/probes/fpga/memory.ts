import type { Clock } from '../../host/clock.ts';
import type { Millis } from '../../model/duration.ts';
import { isDue, type Pace, Pacer } from '../kit/pace.ts';
import { CredibleLimits } from '../kit/temperature.ts';

interface Kept {
  readonly value: unknown;
  readonly atMs: number;
  readonly forMs: number;
}

/**
 * State of a probe that is kept between reads. All keys begin with the name of a device, so the hardware limits the size. A device
 * that returns after a removal keeps its counters.
 */
export class ProbeMemory {
  readonly limits = new CredibleLimits();
  readonly #clock: Clock;
  readonly #pacer = new Pacer();
  #pace: Pace;
  readonly #kept = new Map<string, Kept>();
  readonly #levels = new Map<string, boolean>();
  readonly #names = new Map<string, string>();
  readonly #counts = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#pace = { nowMs: clock.monotonic(), graceMs: 0 };
  }

  /** Must be called at the begin of each collection. */
  begin(): void {
    this.#pace = this.#pacer.next(this.#clock.monotonic());
  }

  /** Limits expensive reads: returns the last result while it is younger than `keptFor(result)`, otherwise reads again. */
  atMostEvery<T>(key: string, keptFor: (value: T) => Millis, read: () => T): T {
    const kept = this.#kept.get(key);
    if (kept !== undefined && !isDue(kept.atMs, kept.forMs, this.#pace)) return kept.value as T;
    const value = read();
    this.#kept.set(key, { value, atMs: this.#pace.nowMs, forMs: keptFor(value) });
    return value;
  }

  /** Monotonic clock of the read of what {@link atMostEvery} returned for a key, when an earlier collection made it. */
  readMs(key: string): number | undefined {
    const atMs = this.#kept.get(key)?.atMs;
    return atMs === this.#pace.nowMs ? undefined : atMs;
  }

  /** Drops the result that {@link atMostEvery} keeps for a key. */
  forget(key: string): void {
    this.#kept.delete(key);
  }

  /** Tells whether a name differs from the name at the last call. */
  isOther(key: string, name: string): boolean {
    const before = this.#names.get(key);
    this.#names.set(key, name);
    return before !== undefined && before !== name;
  }

  /** Counts how often a level rose between two calls. A level that is up at the first call does not count. */
  rises(key: string, isUp: boolean): number {
    const before = this.#levels.get(key);
    this.#levels.set(key, isUp);
    return this.#count(key, before === false && isUp);
  }

  /** Counts how often a name changed between two calls. Undefined means "unknown now" and is no change. */
  changes(key: string, name: string | undefined): number {
    const before = this.#names.get(key);
    if (name !== undefined) this.#names.set(key, name);
    return this.#count(key, before !== undefined && name !== undefined && before !== name);
  }

  /** Level with hysteresis: true from `on`, false below `off`, unchanged in between; undefined when there is no earlier level. */
  isAbove(key: string, value: number, on: number, off: number): boolean | undefined {
    const isOn = value >= on ? true : value < off ? false : this.#levels.get(key);
    if (isOn !== undefined) this.#levels.set(key, isOn);
    return isOn;
  }

  /** Returns the number of consecutive failures, including this one. */
  failuresInARow(key: string, failed: boolean): number {
    const count = failed ? (this.#counts.get(key) ?? 0) + 1 : 0;
    this.#counts.set(key, count);
    return count;
  }

  /** Returns the given name; if it is undefined, the last known name. */
  lastKnown(key: string, name: string | undefined): string | undefined {
    if (name !== undefined) this.#names.set(key, name);
    return name ?? this.#names.get(key);
  }

  #count(key: string, hasHappened: boolean): number {
    const count = (this.#counts.get(key) ?? 0) + (hasHappened ? 1 : 0);
    this.#counts.set(key, count);
    return count;
  }
}
