import type { Clock } from '../host/clock.ts';
import type { Collection } from '../model/collection.ts';

/** Runs in a row that have to find nothing: a driver may need some seconds from its first sign to its first device. */
const EMPTY_RUNS = 3;
/**
 * What comes without leaving a trace in the surroundings, as a library that is put beside its driver later, is found by looking
 * nevertheless: soon after a trace, and then ever more seldom, since each look starts a thread.
 */
const REST_MS = { first: 60_000, longest: 3_600_000 };
const REST_GROWTH = 8;

/**
 * Tells when a family is not on this node: nothing found, several times, and never anything before. Most nodes lack most families, and a
 * thread costs 9 MiB, and a tenth of a second of CPU each time it is started. Such a family rests until something comes or goes in its
 * surroundings. What was here once is looked for at every refresh: it may come back at any time, and is missed meanwhile.
 */
export class Absence {
  readonly #clock: Clock;
  readonly #look: () => string;
  #emptyRuns = 0;
  #isKnown: boolean;
  #restMs = REST_MS.first;
  #restUntilMs = 0;
  /** What the surroundings were before the last run. */
  #surroundings = '';
  #before = '';

  /** `look` tells what a driver or hardware that comes would change. `isKnown`: the family had devices before. */
  constructor(clock: Clock, look: () => string, isKnown: boolean) {
    this.#clock = clock;
    this.#look = look;
    this.#isKnown = isKnown;
  }

  /** Whether the family has, or ever had, devices on this node. */
  get isKnown(): boolean {
    return this.#isKnown;
  }

  /** To be called when a run begins: what comes during the run, and may not be seen by it, then ends the rest. */
  begins(): void {
    if (!this.#isKnown) this.#before = this.#look();
  }

  /** Takes note of what a run found. True when the thread is not needed for a while. */
  saw({ reports, problems, listing }: Collection): boolean {
    if (reports.length > 0) this.#isKnown = true;
    if (this.#before !== this.#surroundings) {
      this.#emptyRuns = 0;
      this.#restMs = REST_MS.first;
    }
    this.#surroundings = this.#before;
    this.#emptyRuns = this.#isKnown || problems.length > 0 || listing === 'partial' ? 0 : this.#emptyRuns + 1;
    const isAbsent = this.#emptyRuns >= EMPTY_RUNS;
    this.#restUntilMs = isAbsent ? this.#clock.monotonic() + this.#restMs : 0;
    if (isAbsent) this.#restMs = Math.min(REST_GROWTH * this.#restMs, REST_MS.longest);
    return isAbsent;
  }

  isResting(): boolean {
    return this.#clock.monotonic() < this.#restUntilMs && this.#look() === this.#surroundings;
  }
}
