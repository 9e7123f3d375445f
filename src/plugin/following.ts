import type { Clock } from '../host/clock.ts';
import type { PluginService } from './service.ts';
import type { Supply } from './supply.ts';

/**
 * By how much a question to the kubelet must be younger than a list for the answer to have it. The kubelet writes its checkpoint when it has taken
 * a list up, after which it is asked until that is this long ago.
 */
const TAKEN_UP_MS = 1_000;

/** Time between two tries, which doubles while they are in vain: each takes the resource away for a moment. */
const REST_MS = { first: 60_000, longest: 3_600_000 };

/**
 * Tells when the kubelet has dropped a resource whose list it goes on reading. Kubelets up to 1.36 do when a plugin of the same resource ends
 * that registered later, and no stream says so (kubernetes#127803): only what they can hand out shows it.
 */
export class Following {
  readonly #supply: Pick<Supply, 'listed'>;
  readonly #service: Pick<PluginService, 'streams' | 'told'>;
  readonly #clock: Clock;
  #restMs = REST_MS.first;
  #notBeforeMs = Number.NEGATIVE_INFINITY;

  constructor(supply: Pick<Supply, 'listed'>, service: Pick<PluginService, 'streams' | 'told'>, clock: Clock) {
    this.#supply = supply;
    this.#service = service;
    this.#clock = clock;
  }

  get isDropped(): boolean {
    return this.#listed() === 0;
  }

  /** True when it is time to register anew. */
  look(): boolean {
    const listed = this.#listed();
    if (listed !== undefined && listed > 0) this.#restMs = REST_MS.first;
    if (listed !== 0) return false;
    const now = this.#clock.monotonic();
    if (now < this.#notBeforeMs) return false;
    this.#notBeforeMs = now + this.#restMs;
    this.#restMs = Math.min(2 * this.#restMs, REST_MS.longest);
    return true;
  }

  /** How many ids the kubelet can hand out; undefined where it does not tell, or need not have any of the list that it reads. */
  #listed(): number | undefined {
    const listed = this.#supply.listed();
    const { streams, told } = this.#service;
    if (listed === undefined || streams === 0 || told?.isAnyHealthy !== true) return undefined;
    return listed.askedMs - told.atMs >= TAKEN_UP_MS ? listed.count : undefined;
  }
}
