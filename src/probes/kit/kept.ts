import { isDue, type Pace } from './pace.ts';

/** The result of an expensive read, kept for an interval. */
export class Kept<T> {
  #last: { readonly value: T; readonly atMs: number } | undefined;

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
