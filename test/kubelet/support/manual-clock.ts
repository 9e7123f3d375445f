import type { Clock } from '../../../src/host/clock.ts';

/** A clock that moves only when told; timers that come due ring in order. */
export class ManualClock implements Clock {
  #nowMs = 0;
  readonly #timers = new Set<{ readonly atMs: number; readonly run: () => void }>();

  now(): number {
    return 1_700_000_000_000 + this.#nowMs;
  }

  monotonic(): number {
    return this.#nowMs;
  }

  after(delayMs: number, run: () => void): () => void {
    const timer = { atMs: this.#nowMs + delayMs, run };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  get pendingTimers(): number {
    return this.#timers.size;
  }

  /** Time passes while the process stands still: what came due meanwhile rings late. */
  standStill(forMs: number): void {
    this.#nowMs += forMs;
    this.advance(0);
  }

  advance(byMs: number): void {
    const until = this.#nowMs + byMs;
    for (;;) {
      const next = [...this.#timers].filter(({ atMs }) => atMs <= until).sort((a, b) => a.atMs - b.atMs)[0];
      if (next === undefined) break;
      this.#timers.delete(next);
      this.#nowMs = Math.max(this.#nowMs, next.atMs);
      next.run();
    }
    this.#nowMs = until;
  }
}
