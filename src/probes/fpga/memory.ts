import type { Clock } from '../../host/clock.ts';
import type { Millis } from '../../model/duration.ts';

interface Kept {
  readonly value: unknown;
  readonly untilMs: number;
}

/**
 * What a probe must know from one read to the next. All keys begin with the name of a device, so that the size is bounded
 * by the hardware; a device that comes back finds its counters as it left them.
 */
export class ProbeMemory {
  readonly #clock: Clock;
  readonly #kept = new Map<string, Kept>();
  readonly #levels = new Map<string, boolean>();
  readonly #names = new Map<string, string>();
  readonly #counts = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** For reads that cost something: the last result for as long as `keptFor` says of it. */
  atMostEvery<T>(key: string, keptFor: (value: T) => Millis, read: () => T): T {
    const nowMs = this.#clock.monotonic();
    const kept = this.#kept.get(key);
    if (kept !== undefined && nowMs < kept.untilMs) return kept.value as T;
    const value = read();
    this.#kept.set(key, { value, untilMs: nowMs + keptFor(value) });
    return value;
  }

  /** The next {@link atMostEvery} of that key reads. */
  forget(key: string): void {
    this.#kept.delete(key);
  }

  /** Whether a name is another than it was at the last call. */
  isOther(key: string, name: string): boolean {
    const before = this.#names.get(key);
    this.#names.set(key, name);
    return before !== undefined && before !== name;
  }

  /** Counts how often a level rose while it was watched. What was up at first sight rose before that. */
  rises(key: string, isUp: boolean): number {
    const before = this.#levels.get(key);
    this.#levels.set(key, isUp);
    return this.#count(key, before === false && isUp);
  }

  /** Counts how often a name changed while it was watched; undefined (not known now) is no change. */
  changes(key: string, name: string | undefined): number {
    const before = this.#names.get(key);
    if (name !== undefined) this.#names.set(key, name);
    return this.#count(key, before !== undefined && name !== undefined && before !== name);
  }

  /** A level with hysteresis: on from `on`, off below `off`, in between as it was; undefined where that is not known. */
  isAbove(key: string, value: number, on: number, off: number): boolean | undefined {
    const isOn = value >= on ? true : value < off ? false : this.#levels.get(key);
    if (isOn !== undefined) this.#levels.set(key, isOn);
    return isOn;
  }

  /** How often in a row something failed, this time included. */
  failuresInARow(key: string, failed: boolean): number {
    const count = failed ? (this.#counts.get(key) ?? 0) + 1 : 0;
    this.#counts.set(key, count);
    return count;
  }

  /** The name as told now, else as it was last told. */
  lastKnown(key: string, name: string | undefined): string | undefined {
    if (name !== undefined) this.#names.set(key, name);
    return name ?? this.#names.get(key);
  }

  #count(key: string, oneMore: boolean): number {
    const count = (this.#counts.get(key) ?? 0) + (oneMore ? 1 : 0);
    this.#counts.set(key, count);
    return count;
  }
}
