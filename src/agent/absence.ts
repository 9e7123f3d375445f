import type { Clock } from '../host/clock.ts';
import type { Collection } from '../model/collection.ts';

/** Runs in a row that have to find nothing. */
const EMPTY_RUNS = 3;
/** A driver that is loaded later is found after this time at the latest. */
const REST_MS = 60_000;

/**
 * Tells when a family is not on this node: nothing found, several times, and never anything before. Most nodes lack most families, and a
 * thread costs 9 MiB. What was here once is looked for at every refresh: it may come back at any time, and is missed meanwhile.
 */
export class Absence {
  readonly #clock: Clock;
  #emptyRuns = 0;
  #isKnown = false;
  #restUntilMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Takes note of what a run found. True when the thread is not needed for a while. */
  saw({ reports, problems, complete }: Collection): boolean {
    if (reports.length > 0) this.#isKnown = true;
    this.#emptyRuns = this.#isKnown || problems.length > 0 || complete === false ? 0 : this.#emptyRuns + 1;
    if (this.#emptyRuns < EMPTY_RUNS) return false;
    this.#restUntilMs = this.#clock.monotonic() + REST_MS;
    return true;
  }

  isResting(): boolean {
    return this.#clock.monotonic() < this.#restUntilMs;
  }
}
