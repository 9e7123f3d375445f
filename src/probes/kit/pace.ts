import { type Millis, millis } from '../../model/duration.ts';

/** When a collection began, and how far it is from the one before. */
export interface Pace {
  /** Monotonic clock. */
  readonly nowMs: number;
  /** What is due within this time is read now: half the usual time between collections. The next collection would be further off. */
  readonly graceMs: number;
}

/** Measures the collections of one probe. */
export class Pacer {
  #beforeMs: number | undefined;
  #spacingMs: number | undefined;

  /** `nowMs`: monotonic clock at the begin of a collection. A single collection out of turn does not widen the grace. */
  next(nowMs: number): Pace {
    const spacingMs = this.#beforeMs === undefined ? undefined : Math.max(0, nowMs - this.#beforeMs);
    const usualMs = spacingMs === undefined || this.#spacingMs === undefined ? 0 : Math.min(spacingMs, this.#spacingMs);
    this.#beforeMs = nowMs;
    this.#spacingMs = spacingMs;
    return { nowMs, graceMs: usualMs / 2 };
  }
}

/** The time between two reads of a value: what the option says, and at least what its hardware bears. 0 asks for each refresh, whatever it costs. */
export const pacedMs = (option: Millis, bound: Millis): Millis => (option === 0 ? option : millis(Math.max(option, bound)));

/** Whether a source that was read at `atMs` must be read again. A timer fires early and late, so an interval is as exact as half a refresh. */
export function isDue(atMs: number | undefined, everyMs: number, { nowMs, graceMs }: Pace): boolean {
  if (atMs === undefined) return true;
  const ageMs = nowMs - atMs;
  return ageMs >= everyMs || (ageMs > 0 && ageMs >= everyMs - graceMs);
}

/** Values of one source, as an earlier read gave them; see `readMs` of a reading. Undefined: the present read gave them. */
export function asOf<T extends { readonly readMs?: number }>(all: readonly T[], readMs: number | undefined): readonly T[] {
  return readMs === undefined ? all : all.map((one) => ({ ...one, readMs }));
}

/** The result of an expensive read, kept for an interval. */
export class IntervalCache<T> {
  #last: { readonly value: T; readonly atMs: number; dated?: T } | undefined;

  /** Returns the kept value. Reads again when it is `everyMs` old, or when `isValid` refuses it. */
  of(pace: Pace, everyMs: number, read: () => T, isValid: (value: T) => boolean = () => true): T {
    const last = this.#last;
    if (last !== undefined && !isDue(last.atMs, everyMs, pace) && isValid(last.value)) return last.value;
    const value = read();
    this.#last = { value, atMs: pace.nowMs };
    return value;
  }

  /** Monotonic clock of the read that gave the value, when that was not the present collection; see `readMs` of a reading. */
  readMs({ nowMs }: Pace): number | undefined {
    const atMs = this.#last?.atMs;
    return atMs === nowMs ? undefined : atMs;
  }

  /** The value as {@link of} gives it, with the time of its read when that was an earlier collection: the same object at each later one. */
  datedOf(pace: Pace, everyMs: number, read: () => T, date: (value: T, readMs: number) => T, isValid?: (value: T) => boolean): T {
    const value = this.of(pace, everyMs, read, isValid);
    const last = this.#last;
    if (last === undefined || last.atMs === pace.nowMs) return value;
    last.dated ??= date(value, last.atMs);
    return last.dated;
  }

  forget(): void {
    this.#last = undefined;
  }
}

/**
 * Returns the parts of the places that are there now. The part of an unchanged place stays, a new place gets a new part, and the part of a
 * place that is gone or has changed is closed.
 */
export function reconciled<Place, Part extends { close(): void }>(
  before: ReadonlyMap<string, Part>,
  places: readonly Place[],
  keyOf: (place: Place) => string,
  make: (place: Place) => Part,
  isSame: (part: Part, place: Place) => boolean = () => true,
): Map<string, Part> {
  const parts = new Map<string, Part>();
  for (const place of places) {
    const part = before.get(keyOf(place));
    parts.set(keyOf(place), part !== undefined && isSame(part, place) ? part : make(place));
  }
  for (const [key, part] of before) if (parts.get(key) !== part) part.close();
  return parts;
}
