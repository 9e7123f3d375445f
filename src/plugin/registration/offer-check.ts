import type { Clock } from '../../host/clock.ts';
import type { ChangeLog } from '../../log/changes.ts';
import type { OfferDifference } from '../../model/agent-stats.ts';
import { defined } from '../../model/defined.ts';
import type { ResourceOffers } from '../offers/resource-offers.ts';
import type { PluginService } from '../service.ts';
import type { Neighbour } from './sockets.ts';

/** An answer of the kubelet counts for a list only if the question was sent at least this long after the list. */
const LIST_DELAY_MS = 1_000;

/**
 * Wait before the next remedy; it doubles as long as none lasts. A registration takes the resource away for a moment, so it waits longer in
 * the end. Another plugin that left may have changed everything, so a remedy after that waits `afterLeave` at most.
 */
const WAIT_MS = { first: 2_000, longestRepeat: 60_000, longestRegister: 3_600_000, afterLeave: 5_000 } as const;

/** `repeat`: send the list again. The others are reasons to register again. */
export type OfferRemedy = 'repeat' | 'dropped' | 'superseded';

export interface OfferCheckDependencies {
  readonly offers: ResourceOffers;
  readonly service: PluginService;
  readonly clock: Clock;
  readonly changes: ChangeLog;
  /** An equality that lasts this long ends the trouble, and the waits begin anew. */
  readonly stableMs: number;
  neighbours(): Promise<readonly Neighbour[]>;
  apply(remedy: OfferRemedy): void;
}

/**
 * Compares, id by id, what the kubelet offers to pods with the healthy ids of the last list, and corrects the kubelet. Its own state does not
 * tell that somebody else changed its list: a kubelet from 1.37 on takes the last list that any plugin of the resource sent, and keeps it
 * when that plugin ends. Up to 1.36 the end of the plugin that registered last takes all ids away, though the stream goes on (kubernetes#127803).
 */
export class OfferCheck {
  readonly #parts: OfferCheckDependencies;
  #difference: OfferDifference | undefined;
  /** Monotonic time since which there is no difference. */
  #equalMs: number | undefined;
  #waitMs = 0;
  #appliedMs = Number.NEGATIVE_INFINITY;
  /** Identities of the sockets of others at the last look. */
  #others: readonly string[] = [];
  /** Monotonic time at which one of them was found to have left. */
  #leftMs = Number.NEGATIVE_INFINITY;
  #isLooking = false;

  constructor(parts: OfferCheckDependencies) {
    this.#parts = parts;
  }

  /** Undefined while it is unknown. */
  get difference(): OfferDifference | undefined {
    const { service } = this.#parts;
    return service.streams === 0 ? undefined : this.#difference;
  }

  /** True when the kubelet follows a list with healthy ids and offers none of the resource. */
  get isDropped(): boolean {
    return this.difference?.offered === 0 && this.difference.ids > 0;
  }

  /** Called when the kubelet may have answered. */
  async look(): Promise<void> {
    if (!this.#compare() || this.#isLooking) return;
    this.#isLooking = true;
    const others = await this.#parts.neighbours().catch(() => []);
    this.#isLooking = false;
    // A list may have been sent meanwhile.
    if (this.#compare()) this.#remedy(others);
  }

  /** Returns true when an answer of now shows a difference. */
  #compare(): boolean {
    const { offers, service, clock } = this.#parts;
    const { lastList, streams } = service;
    const offered = offers.offered();
    if (offered === undefined || lastList === undefined || streams === 0) {
      this.#difference = undefined;
      return false;
    }
    // Until the kubelet can have read a new list, what was found for the list before goes on.
    if (offered.askedMs - lastList.sentMs < LIST_DELAY_MS) return false;
    const ours = offered.ids.filter((id) => lastList.healthy.has(id)).length;
    const ids = offered.ids.length + lastList.healthy.size - 2 * ours;
    const sinceMs = ids === 0 ? undefined : (this.#difference?.sinceMs ?? clock.now());
    this.#difference = { ids, offered: offered.ids.length, ...defined({ sinceMs }) };
    this.#equalMs = ids > 0 ? undefined : (this.#equalMs ?? clock.monotonic());
    if (this.#equalMs !== undefined && clock.monotonic() - this.#equalMs >= this.#parts.stableMs) this.#ended();
    return ids > 0;
  }

  #ended(): void {
    this.#waitMs = 0;
    this.#appliedMs = Number.NEGATIVE_INFINITY;
    this.#parts.changes.end(this.#key);
  }

  #remedy(others: readonly Neighbour[]): void {
    const { clock, changes, offers } = this.#parts;
    const { resource } = offers.resource;
    const { ids, offered } = this.#difference as OfferDifference;
    const askedMs = offers.offered()?.askedMs ?? 0;
    changes.begin({
      key: this.#key,
      message: 'the kubelet offers other devices than it was told',
      ended: 'the kubelet offered other devices than it was told; it offers the same now',
      fields: { resource },
      detail: `${ids} ids differ, ${offered} are offered, sockets of other plugins: ${others.length}`,
      remedy:
        'Only one plugin may serve a resource: if this lasts, find and remove the other. docs/runbooks/agents.md#devicepluginofferdiffers',
    });
    const now = clock.monotonic();
    const present = others.map(({ identity }) => identity);
    if (this.#others.some((identity) => !present.includes(identity))) this.#leftMs = now;
    this.#others = present;
    // The newer one of two agents is right. Otherwise both would send their lists in turn.
    if (others.some(({ isAgents, isNewer }) => isAgents && isNewer)) return;
    // Up to 1.36 the end of one that left takes all ids away. A list would then bring them back, without a plugin that the kubelet can ask.
    if (askedMs - this.#leftMs < LIST_DELAY_MS) return;
    const remedy = offered === 0 ? 'dropped' : others.some(({ isNewer }) => isNewer) ? 'superseded' : 'repeat';
    const waitMs = this.#leftMs > this.#appliedMs ? Math.min(this.#waitMs, WAIT_MS.afterLeave) : this.#waitMs;
    if (now - this.#appliedMs < waitMs) return;
    const longestMs = remedy === 'repeat' ? WAIT_MS.longestRepeat : WAIT_MS.longestRegister;
    this.#waitMs = Math.min(Math.max(2 * this.#waitMs, WAIT_MS.first), longestMs);
    this.#appliedMs = now;
    this.#parts.apply(remedy);
  }

  get #key(): string {
    return `offer ${this.#parts.offers.resource.resource}`;
  }
}
