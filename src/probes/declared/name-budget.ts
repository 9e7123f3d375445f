import type { Clock } from '../../host/clock.ts';

const DAY_MS = 86_400_000;

/**
 * Limits how many different names a family uses in a day. Each new device id and label value is a new series in Prometheus, and a
 * declaration can take them from a file whose text is another one at each read.
 */
export class NameBudget {
  readonly most: number;
  readonly #clock: Clock;
  readonly #used = new Set<string>();
  #sinceMs: number;

  constructor(most: number, clock: Clock) {
    this.most = most;
    this.#clock = clock;
    this.#sinceMs = clock.monotonic();
  }

  /** Whether a name may be used: it was used on this day, or one more fits. */
  takes(name: string): boolean {
    const nowMs = this.#clock.monotonic();
    if (nowMs - this.#sinceMs >= DAY_MS) {
      this.#sinceMs = nowMs;
      this.#used.clear();
    }
    if (this.#used.has(name)) return true;
    if (this.#used.size >= this.most) return false;
    this.#used.add(name);
    return true;
  }
}
