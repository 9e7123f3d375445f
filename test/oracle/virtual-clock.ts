import type { UptimeClock } from '../../src/host/clock.ts';

/** An arbitrary time; no code may depend on it. */
const START_MS = Date.parse('2030-01-01T00:00:00Z');

interface Timer {
  readonly dueMs: number;
  readonly order: number;
  readonly run: () => void;
}

/** A clock that only the test moves. Moving it fires the timers in order. */
export class VirtualClock implements UptimeClock {
  #nowMs = 0;
  #wallOffsetMs = START_MS;
  #timers: Timer[] = [];
  #orders = 0;

  now(): number {
    return this.#wallOffsetMs + this.#nowMs;
  }

  monotonic(): number {
    return this.#nowMs;
  }

  sinceBoot(): number {
    return this.#nowMs;
  }

  after(delayMs: number, run: () => void): () => void {
    const timer = { dueMs: this.#nowMs + Math.max(0, delayMs), order: ++this.#orders, run };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  /** Steps the wall clock by `byMs`, like an administrator. No time passes. */
  setWall(byMs: number): void {
    this.#wallOffsetMs += byMs;
  }

  /** Lets time pass. Awaits `settle` after each timer. */
  async advance(byMs: number, settle: () => Promise<void>): Promise<void> {
    const endMs = this.#nowMs + byMs;
    for (;;) {
      const next = this.#timers.filter(({ dueMs }) => dueMs <= endMs).sort((a, b) => a.dueMs - b.dueMs || a.order - b.order)[0];
      if (next === undefined) break;
      this.#timers = this.#timers.filter((timer) => timer !== next);
      this.#nowMs = Math.max(this.#nowMs, next.dueMs);
      next.run();
      await settle();
    }
    this.#nowMs = endMs;
  }
}
