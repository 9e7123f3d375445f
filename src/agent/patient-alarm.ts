import type { Clock } from '../host/clock.ts';

/**
 * An alarm that is put off again and again and hardly ever rings, such as a deadline. Putting it off touches no timer: when the one
 * that runs goes off too early, it is wound up for the rest.
 */
export class PatientAlarm {
  readonly #clock: Clock;
  readonly #ring: (lateMs: number) => void;
  /** Monotonic time to ring at; undefined: not at all. */
  #dueMs: number | undefined;
  /** Monotonic time at which the timer that runs goes off. */
  #timer: { readonly atMs: number; cancel(): void } | undefined;

  /** `ring` is told how late it is called: much, when the process stood still. */
  constructor(clock: Clock, ring: (lateMs: number) => void) {
    this.#clock = clock;
    this.#ring = ring;
  }

  /** Rings once after that time, and not as set before. */
  set(delayMs: number): void {
    this.#dueMs = this.#clock.monotonic() + delayMs;
    if (this.#timer !== undefined && this.#timer.atMs <= this.#dueMs) return;
    this.#timer?.cancel();
    this.#windUp(delayMs);
  }

  /** Does not ring. */
  unset(): void {
    this.#dueMs = undefined;
  }

  /** The end: no timer is left. */
  close(): void {
    this.#dueMs = undefined;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #windUp(delayMs: number): void {
    this.#timer = { atMs: this.#clock.monotonic() + delayMs, cancel: this.#clock.after(delayMs, () => this.#wentOff()) };
  }

  #wentOff(): void {
    this.#timer = undefined;
    if (this.#dueMs === undefined) return;
    const restMs = this.#dueMs - this.#clock.monotonic();
    if (restMs > 0) {
      this.#windUp(restMs);
    } else {
      this.#dueMs = undefined;
      this.#ring(-restMs);
    }
  }
}
