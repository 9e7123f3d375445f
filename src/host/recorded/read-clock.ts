import { type Clock, systemClock } from '../clock.ts';

/** The time of one read. */
export interface StillTime {
  readonly wallMs: number;
  readonly monotonicMs: number;
}

/**
 * The clock of a capture and of its replay. At a read it is moved to the time of that read, and runs on. For the probes it
 * stands still meanwhile, see {@link stillClock}: a rate between two reads is then the same in the replay, however long the reads last.
 */
export class ReadClock implements Clock {
  time: StillTime = { wallMs: 0, monotonicMs: 0 };
  #movedAtMs = systemClock.monotonic();
  /** By how much a read came later than that of the capture. */
  #lateMs = 0;
  readonly after = systemClock.after;

  now(): number {
    return this.time.wallMs + this.#passedMs();
  }

  monotonic(): number {
    return this.time.monotonicMs + this.#lateMs + this.#passedMs();
  }

  /** Moves to the time of a read, in milliseconds since 1970 and since the first read. */
  moveTo(wallMs: number, monotonicMs: number): void {
    this.#lateMs = Math.max(0, this.monotonic() - monotonicMs);
    this.time = { wallMs, monotonicMs };
    this.#movedAtMs = systemClock.monotonic();
  }

  #passedMs(): number {
    return systemClock.monotonic() - this.#movedAtMs;
  }
}

/** The time of the present read. The deadline of a command counts real time. */
export const stillClock = (time: () => StillTime): Clock => ({
  isStill: true,
  now: () => time().wallMs,
  monotonic: () => time().monotonicMs,
  after: systemClock.after,
});
