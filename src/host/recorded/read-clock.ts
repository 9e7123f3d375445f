import { type Clock, systemClock } from '../clock.ts';

const [WALL, MONOTONIC] = [0, 1];

/**
 * The clock of a capture and of its replay. At a read it is moved to the time of that read, and runs on. In the threads of the probes it
 * stands still meanwhile, see {@link readTime}: a rate between two reads is then the same in the replay, however long the reads last.
 */
export class ReadClock implements Clock {
  /** Shared with the clocks of the threads. */
  readonly memory = new SharedArrayBuffer(2 * Float64Array.BYTES_PER_ELEMENT);
  readonly #times = new Float64Array(this.memory);
  #movedAtMs = systemClock.monotonic();
  /** By how much a read came later than that of the capture. */
  #lateMs = 0;
  readonly after = systemClock.after;

  now(): number {
    return (this.#times[WALL] as number) + this.#passedMs();
  }

  monotonic(): number {
    return (this.#times[MONOTONIC] as number) + this.#lateMs + this.#passedMs();
  }

  /** Moves to the time of a read, in milliseconds since 1970 and since the first read. */
  moveTo(wallMs: number, monotonicMs: number): void {
    this.#lateMs = Math.max(0, this.monotonic() - monotonicMs);
    this.#times[WALL] = wallMs;
    this.#times[MONOTONIC] = monotonicMs;
    this.#movedAtMs = systemClock.monotonic();
  }

  #passedMs(): number {
    return systemClock.monotonic() - this.#movedAtMs;
  }
}

/** The time of the present read in a thread. The deadline of a command counts real time. */
export function readTime(memory: SharedArrayBuffer): Clock {
  const times = new Float64Array(memory);
  return {
    isStill: true,
    now: () => times[WALL] as number,
    monotonic: () => times[MONOTONIC] as number,
    after: systemClock.after,
  };
}
