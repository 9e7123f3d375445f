import type { Clock } from '../host/clock.ts';
import { deviceDirectory, type Step } from '../host/fs/step-guard.ts';
import type { HungStep, Problem } from '../model/collection.ts';

/** Time until a place is tried again: the first time, and at most. Each trial without an answer doubles it. */
const RETRY = { firstMs: 10_000, mostMs: 60_000 };

interface HungPlace {
  readonly step: Step;
  readonly problem: Problem;
  readonly waitMs: number;
  /** Monotonic clock from which it may be tried again. */
  readonly dueMs: number;
}

/** The places in which a step of one family hung or ended its reader, and when each of them is tried again. */
export class HungPlaces {
  readonly #clock: Clock;
  readonly #all = new Map<string, HungPlace>();

  /** `before`: of an earlier run of the agent. */
  constructor(clock: Clock, before: readonly HungStep[]) {
    this.#clock = clock;
    for (const step of before) {
      const dueMs = Number.NEGATIVE_INFINITY;
      this.#all.set(deviceDirectory(step.path), { step, problem: hungAt(step), waitMs: RETRY.firstMs / 2, dueMs });
    }
  }

  get isEmpty(): boolean {
    return this.#all.size === 0;
  }

  has(place: string): boolean {
    return this.#all.has(place);
  }

  /** A call of a vendor's library hangs there. Such a probe leaves devices out only when it starts. */
  isOfLibrary(place: string): boolean {
    return this.#all.get(place)?.step.kind === 'call';
  }

  get places(): readonly string[] {
    return [...this.#all.keys()];
  }

  get steps(): readonly HungStep[] {
    return [...this.#all.values()].map(({ step }) => step);
  }

  get problems(): readonly Problem[] {
    return [...this.#all.values()].map(({ problem }) => problem);
  }

  /** A place that did not answer, or not in time, waits longer from now on. */
  postpone(place: string): void {
    const hung = this.#all.get(place);
    if (hung !== undefined) this.add(hung.step, hung.problem);
  }

  add(step: Step, problem = hungAt(step)): void {
    const place = deviceDirectory(step.path);
    const waitMs = Math.min(RETRY.mostMs, 2 * (this.#all.get(place)?.waitMs ?? RETRY.firstMs / 2));
    this.#all.set(place, { step, problem, waitMs, dueMs: this.#clock.monotonic() + waitMs });
  }

  delete(place: string): void {
    this.#all.delete(place);
    // One cause often makes several places hang.
    for (const other of this.#all.keys()) this.answered(other);
  }

  /** A reader that slept there has ended, so the place can be tried at once. */
  answered(place: string): void {
    const hung = this.#all.get(place);
    if (hung !== undefined) this.#all.set(place, { ...hung, dueMs: Number.NEGATIVE_INFINITY });
  }

  /** The place that is to be tried next, if one is due and no killed reader sleeps there. */
  due(asleep: ReadonlySet<string>): string | undefined {
    const nowMs = this.#clock.monotonic();
    return [...this.#all].find(([place, { dueMs }]) => dueMs <= nowMs && !asleep.has(place))?.[0];
  }
}

/** `step`: undefined when it is unknown where the reader hangs. */
export function hungAt(step: Step | undefined): Problem {
  const place = step && deviceDirectory(step.path);
  return {
    code: 'probe-hung',
    message: place === undefined ? 'a run of the probe has not returned' : `a read below ${place} has not returned`,
  };
}
