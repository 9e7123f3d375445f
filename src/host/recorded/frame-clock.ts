import { type Clock, systemClock } from '../clock.ts';

const [WALL, MONOTONIC] = [0, 1];

/**
 * The clock of a capture and of its replay. It does not advance while a frame is read. All readings of a frame therefore have one time, and a
 * replay has the same times. Timers that come due between two frames run in order, each at its own time.
 */
export class FrameClock implements Clock {
  readonly isStill = true;
  /** Shared with the clocks of the threads, see {@link frameTime}. */
  readonly memory = new SharedArrayBuffer(2 * Float64Array.BYTES_PER_ELEMENT);
  readonly #times = new Float64Array(this.memory);
  readonly #timers = new Set<{ readonly dueMs: number; readonly run: () => void }>();

  now(): number {
    return this.#times[WALL] as number;
  }

  monotonic(): number {
    return this.#times[MONOTONIC] as number;
  }

  after(delayMs: number, run: () => void): () => void {
    const timer = { dueMs: this.monotonic() + delayMs, run };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** Moves to the time of the next frame, in milliseconds since 1970 and since the first frame. */
  moveTo(wallMs: number, monotonicMs: number): void {
    for (let next = this.#nextBefore(monotonicMs); next !== undefined; next = this.#nextBefore(monotonicMs)) {
      this.#timers.delete(next);
      const passedMs = Math.max(0, next.dueMs - this.monotonic());
      this.#set(this.now() + passedMs, this.monotonic() + passedMs);
      next.run();
    }
    this.#set(wallMs, monotonicMs);
  }

  #nextBefore(untilMs: number): { readonly dueMs: number; readonly run: () => void } | undefined {
    return [...this.#timers].filter(({ dueMs }) => dueMs <= untilMs).sort((a, b) => a.dueMs - b.dueMs)[0];
  }

  #set(wallMs: number, monotonicMs: number): void {
    this.#times[WALL] = wallMs;
    this.#times[MONOTONIC] = monotonicMs;
  }
}

/** The time of the present frame in a thread. `memory`: that of the {@link FrameClock}. The deadline of a command counts real time. */
export function frameTime(memory: SharedArrayBuffer): Clock {
  const times = new Float64Array(memory);
  return {
    isStill: true,
    now: () => times[WALL] as number,
    monotonic: () => times[MONOTONIC] as number,
    after: systemClock.after,
  };
}
