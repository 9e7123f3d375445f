import type { Clock } from '../../host/clock.ts';
import type { Logger } from '../../log/logger.ts';
import {
  type ConditionContent,
  type ConditionType,
  differ,
  isWorkedOn,
  type NodeCondition,
  ownConditionsIn,
  withTimes,
} from './conditions.ts';
import { COMPONENT } from './events.ts';
import type { Kubernetes } from './kubernetes.ts';
import { callOrThrow, NotTaken } from './pace.ts';

const APPLY = 'application/apply-patch+yaml';
/** Patches follow each other no faster. */
export const SPACING_MS = 5_000;

interface NodeParts {
  readonly kubernetes: Kubernetes;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly node: string;
  readonly resyncMs: number;
}

/** The own conditions of one node, by server-side apply. It writes only what differs from what the node has. */
export class NodeConditions {
  readonly #parts: NodeParts;
  /** As last read or written; undefined when that is not known. */
  #present: readonly NodeCondition[] | undefined;
  #uid: string | undefined;
  #isWorkedOn = false;
  #readMs = Number.NEGATIVE_INFINITY;
  #patchedMs: number | undefined;

  constructor(parts: NodeParts) {
    this.#parts = parts;
  }

  /** UID of the node; undefined while it was not read. */
  get uid(): string | undefined {
    return this.#uid;
  }

  /** Whether a drain or a maintenance was in progress when the node was read last. */
  get isWorkedOn(): boolean {
    return this.#isWorkedOn;
  }

  /**
   * Makes the node have what `wanted` returns, which is asked as late as possible; undefined: not known yet. Returns after how many
   * milliseconds to call again, even without news. Throws when the API server does not take it.
   */
  async keep(wanted: () => readonly ConditionContent[] | undefined): Promise<number> {
    const { clock, resyncMs } = this.#parts;
    if (clock.monotonic() - this.#readMs >= resyncMs) this.#present = undefined;
    const present = this.#present ?? (await this.#read());
    const said = wanted();
    const untilReadMs = this.#readMs + resyncMs - clock.monotonic();
    if (said === undefined || !differ(present, said)) return untilReadMs;
    const waitMs = this.#spacingMs();
    if (waitMs > 0) return Math.min(waitMs, untilReadMs);
    await this.#apply(said, present);
    return untilReadMs;
  }

  /** The publisher ends: its conditions say so. Those that were removed meanwhile stay away. */
  async end(words: (types: readonly ConditionType[]) => readonly ConditionContent[]): Promise<void> {
    const present = await this.#read();
    const said = words(present.map(({ type }) => type));
    if (!differ(present, said)) return;
    const waitMs = this.#spacingMs();
    // A timer of the clock would not keep the process alive.
    if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
    await this.#apply(said, present);
  }

  /** Removes the conditions. Returns how many there were, and how many others keep. */
  async withdraw(): Promise<{ readonly removed: number; readonly kept: number }> {
    const present = await this.#read();
    if (present.length === 0) return { removed: 0, kept: 0 };
    const kept = await this.#patch({});
    return { removed: present.length - kept.length, kept: kept.length };
  }

  #spacingMs(): number {
    return this.#patchedMs === undefined ? 0 : this.#patchedMs + SPACING_MS - this.#parts.clock.monotonic();
  }

  async #read(): Promise<readonly NodeCondition[]> {
    const { kubernetes, node, clock } = this.#parts;
    this.#present = undefined;
    this.#uid = undefined;
    const { body } = await callOrThrow(kubernetes, { method: 'GET', path: `/api/v1/nodes/${encodeURIComponent(node)}` });
    const present = ownConditionsIn(body);
    this.#present = present;
    this.#isWorkedOn = isWorkedOn(body);
    this.#uid = (body as { readonly metadata?: { readonly uid?: string } } | undefined)?.metadata?.uid;
    this.#readMs = clock.monotonic();
    this.#patchedMs ??= this.#patchedBefore(present);
    return present;
  }

  /** Another run of this program may have written a moment ago. Its time has no fractions of a second. One in the future is of another clock. */
  #patchedBefore(present: readonly NodeCondition[]): number {
    const { clock } = this.#parts;
    const ages = present.map(({ lastHeartbeatTime = '' }) => clock.now() - Date.parse(lastHeartbeatTime)).filter((ageMs) => ageMs >= 0);
    return clock.monotonic() - Math.min(SPACING_MS, ...ages.map((ageMs) => Math.max(0, ageMs - 1_000)));
  }

  async #apply(said: readonly ConditionContent[], present: readonly NodeCondition[]): Promise<void> {
    const { clock, logger } = this.#parts;
    const conditions = withTimes(said, present, clock.now());
    // A failed request may have been carried out.
    this.#present = undefined;
    const after = await this.#patch({ conditions });
    if (differ(after, conditions)) throw new NotTaken('the answer to the patch lacks conditions that were written');
    this.#present = after;
    const statuses = Object.fromEntries(said.map(({ type, status, reason }) => [type, `${status} (${reason})`]));
    logger.info('the conditions of the node were written', statuses);
  }

  /** Returns the own conditions afterwards. */
  async #patch(status: object): Promise<readonly NodeCondition[]> {
    const { kubernetes, node, clock } = this.#parts;
    this.#patchedMs = clock.monotonic();
    const { body } = await callOrThrow(kubernetes, {
      method: 'PATCH',
      path: `/api/v1/nodes/${encodeURIComponent(node)}/status?fieldManager=${COMPONENT}&force=true`,
      // JSON is YAML.
      body: { apiVersion: 'v1', kind: 'Node', metadata: { name: node }, status },
      contentType: APPLY,
    });
    return ownConditionsIn(body);
  }
}
