import type { Probation } from '../../src/model/health.ts';
import { INTERVAL_MS } from './node.ts';

/** What a device does while it is read: `hidden` when the files that tell it cannot be read. */
export type Use = 'busy' | 'idle' | 'hidden';

/** Busy time that ends a probation in the histories. */
export const NEEDED_MS = 60_000;
/** What an agent that is killed may have learned and not written. */
const UNWRITTEN_MS = 50_000;

/**
 * The true past of one piece of hardware, and what an agent that reads it may and must say of it. The model does not depend on the
 * implementation of the agent.
 */
export class RepeatKnowledge {
  isFaulty = false;
  use: Use = 'idle';
  readonly #isLatched: boolean;
  readonly #isCounted: boolean;
  /** How often it got out of service. A boot that finds the fault again is another time. */
  #failures = 0;
  /** A read of this boot saw the fault, and none saw its end. */
  #isOut = false;
  /** Unsure: a killed agent may not have written the end. */
  #trial: 'on' | 'unsure' | 'off' = 'off';
  /** Bounds of the busy time without a fault. */
  #leastMs = 0;
  #mostMs = 0;
  /** A read may have told the use since the probation began. */
  #mayBeTold = false;
  /** Time since the end of the last probation. */
  #endedForMs = Number.POSITIVE_INFINITY;
  /** This run of the agent read it before. */
  #wasRead = false;
  /** This run of the agent read a value of its use before, and found it in each read since. A counter that was absent is looked for rarely. */
  #isTold = false;

  /** `isCounted`: its use is the growth of a counter, which one value does not tell. */
  constructor(isLatched: boolean, isCounted: boolean) {
    this.#isLatched = isLatched;
    this.#isCounted = isCounted;
  }

  /** The agent reads it, one interval after the read before. */
  read(): void {
    const wasOut = this.#isOut;
    this.#isOut = this.isFaulty;
    this.#endedForMs += INTERVAL_MS;
    if (this.#isOut) {
      if (!wasOut) this.#failures += 1;
      this.#again();
    } else {
      if (wasOut && this.#isLatched) this.#begin();
      this.#mayBeTold ||= this.use !== 'hidden';
      if (this.use === 'busy' && this.#wasRead && !wasOut) {
        if (this.#isTold || !this.#isCounted) this.#leastMs += INTERVAL_MS;
        this.#mostMs += INTERVAL_MS;
      }
      if (this.#trial !== 'off' && this.#leastMs >= NEEDED_MS) {
        this.#trial = 'off';
        this.#endedForMs = 0;
      }
    }
    this.#isTold = this.use !== 'hidden' && (this.#isTold || !this.#wasRead);
    this.#wasRead = true;
  }

  killed(): void {
    this.#wasRead = this.#isTold = false;
    this.#leastMs = Math.max(0, this.#leastMs - UNWRITTEN_MS);
    if (this.#endedForMs > UNWRITTEN_MS) return;
    this.#trial = 'unsure';
    this.#mostMs = NEEDED_MS;
  }

  booted(): void {
    this.killed();
    if (this.#isOut) this.#begin();
    this.#isOut = false;
  }

  #begin(): void {
    this.#trial = 'on';
    this.#again();
  }

  #again(): void {
    if (this.#trial === 'on' && this.#mostMs >= NEEDED_MS) this.#trial = 'unsure';
    this.#leastMs = this.#mostMs = 0;
    this.#mayBeTold = false;
  }

  /** Contradictions with what the agent says after a read, one sentence each. `fatal`: number of fatal incidents. */
  violations(fatal: number, probation: Probation | undefined): readonly string[] {
    const found = fatal === this.#failures ? [] : [`${fatal} fatal incidents instead of ${this.#failures}`];
    const isOn = this.#trial !== 'off' && !this.#isOut;
    if (probation === undefined) return isOn && this.#trial === 'on' && this.#mostMs < NEEDED_MS ? [...found, 'not on probation'] : found;
    const { busyMs } = probation;
    const says = `on probation with ${busyMs} of ${this.#leastMs} to ${this.#mostMs} ms`;
    if (!isOn) return [...found, `${says}, but it is unhealthy, or never began, or has ended`];
    const [least, most] = [this.#leastMs > 0 ? this.#leastMs : undefined, this.#mayBeTold ? this.#mostMs : undefined];
    const isWithin = busyMs === undefined ? least === undefined : busyMs >= (least ?? 0) - 1 && most !== undefined && busyMs <= most + 1;
    return isWithin || this.#trial === 'unsure' ? found : [...found, says];
  }
}
