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
