import type { Attribution } from './allocations.ts';
import { type HeldAttribution, keepThroughRestart, NOTHING } from './grace.ts';

/** What is known about who holds what, over restarts and silences of the kubelet. Time is its owner's business. */
export class AttributionLedger {
  #known: HeldAttribution = NOTHING;
  #identity: string | undefined;
  #lost = false;
  #inGrace = false;

  get known(): HeldAttribution {
    return this.#known;
  }

  /** True when the answer comes from another kubelet process than the one before, or may do so: a grace should begin. */
  isRestart(identity: string): boolean {
    return this.#identity !== undefined && (this.#lost || identity !== this.#identity);
  }

  answer(attribution: Attribution, identity: string): void {
    this.#known = this.#inGrace ? keepThroughRestart(this.#known, attribution) : { ...attribution, held: new Set() };
    this.#identity = identity;
    this.#lost = false;
  }

  /** The kubelet was out of reach: it may have been restarted meanwhile. */
  lose(): void {
    this.#lost = true;
  }

  beginGrace(): void {
    this.#inGrace = true;
  }

  /** From the next answer on, what it does not have is gone. */
  endGrace(): void {
    this.#inGrace = false;
  }

  /** Nobody has confirmed it for too long. */
  forget(): void {
    this.#known = NOTHING;
  }
}
