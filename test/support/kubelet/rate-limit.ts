import type { Clock } from '../../../src/host/clock.ts';

/** The kubelet's own figures: one bucket for all clients, versions and methods. */
export const KUBELET_RATE = { perSecond: 100, burst: 10 } as const;

export interface Rate {
  readonly perSecond: number;
  readonly burst: number;
}

/** A bucket of tokens that refills steadily. */
export class TokenBucket {
  readonly #rate: Rate;
  readonly #clock: Clock;
  #tokens: number;
  #atMs: number;

  constructor(rate: Rate, clock: Clock) {
    this.#rate = rate;
    this.#clock = clock;
    this.#tokens = rate.burst;
    this.#atMs = clock.monotonic();
  }

  /** False when the bucket is empty. */
  take(): boolean {
    const now = this.#clock.monotonic();
    this.#tokens = Math.min(this.#rate.burst, this.#tokens + ((now - this.#atMs) / 1_000) * this.#rate.perSecond);
    this.#atMs = now;
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }
}
