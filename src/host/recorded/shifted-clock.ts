import { type Clock, systemClock } from '../clock.ts';

/** Shared memory of a {@link ShiftedClock}: by how many milliseconds the wall clock and the monotonic clock are ahead of the system's. */
export const shiftMemory = (): SharedArrayBuffer => new SharedArrayBuffer(2 * Float64Array.BYTES_PER_ELEMENT);
const [WALL, MONOTONIC] = [0, 1];

/**
 * The clock of a replay. It runs like the system's clock, and jumps from one frame to the next one. All threads of the replay share its
 * memory. Timers of the thread that calls {@link ShiftedClock.jump} follow the jump; those of other threads keep their delays.
 */
export class ShiftedClock implements Clock {
  readonly memory: SharedArrayBuffer;
  readonly #shift: Float64Array;
  readonly #timers = new Set<{ readonly dueMs: number; cancel: () => void; readonly run: () => void }>();

  constructor(memory: SharedArrayBuffer = shiftMemory()) {
    this.memory = memory;
    this.#shift = new Float64Array(memory);
  }

  now(): number {
    return systemClock.now() + (this.#shift[WALL] as number);
  }

  monotonic(): number {
    return systemClock.monotonic() + (this.#shift[MONOTONIC] as number);
  }

  after(delayMs: number, run: () => void): () => void {
    const timer = { dueMs: this.monotonic() + delayMs, cancel: (): void => {}, run };
    this.#timers.add(timer);
    this.#arm(timer, delayMs);
    return () => {
      timer.cancel();
      this.#timers.delete(timer);
    };
  }

  /** Sets the wall clock, and moves the monotonic clock forward to a time. It never moves the monotonic clock back. */
  jump(wallMs: number, monotonicMs: number): void {
    this.#shift[WALL] = wallMs - systemClock.now();
    this.#shift[MONOTONIC] = (this.#shift[MONOTONIC] as number) + Math.max(0, monotonicMs - this.monotonic());
    for (const timer of [...this.#timers].sort((a, b) => a.dueMs - b.dueMs)) {
      timer.cancel();
      this.#arm(timer, Math.max(0, timer.dueMs - this.monotonic()));
    }
  }

  #arm(timer: { cancel: () => void; readonly run: () => void; readonly dueMs: number }, delayMs: number): void {
    timer.cancel = systemClock.after(delayMs, () => {
      this.#timers.delete(timer);
      timer.run();
    });
  }
}
