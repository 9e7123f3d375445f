import type { Clock } from '../../host/clock.ts';
import { nodeAnswer } from '../../model/known-well.ts';
import { TAINT_KEY } from './device-rules.ts';
import { COMPONENT } from './events.ts';
import { type Kubernetes, NoAnswer } from './kubernetes.ts';
import { SPACING_MS } from './node-conditions.ts';
import { callOrThrow, NotTaken } from './pace.ts';
import { type AgentView, nodeViewOf } from './view.ts';

/** How often a conflict with another writer is tried again at once. */
const MOST_CONFLICTS = 5;

/** A taint in the specification of a node. Those with {@link TAINT_KEY} belong to this program. */
interface Taint {
  readonly key: string;
  readonly effect: string;
}

interface TaintParts {
  readonly kubernetes: Kubernetes;
  readonly clock: Clock;
  readonly node: string;
  /** `NoSchedule`, `PreferNoSchedule` or `NoExecute`. */
  readonly effect: string;
  readonly resyncMs: number;
  /** Whether somebody works on the node. Default: nobody does. */
  readonly isWorkedOn?: () => boolean;
}

const isOwn = ({ key }: Taint): boolean => key === TAINT_KEY;
const effectsOf = (taints: readonly Taint[]): string =>
  taints
    .filter(isOwn)
    .map(({ effect }) => effect)
    .join();

const taintsIn = (node: unknown): readonly Taint[] =>
  (node as { readonly spec?: { readonly taints?: readonly Taint[] } } | undefined | null)?.spec?.taints ?? [];

const differ = (present: readonly Taint[], wanted: readonly Taint[] | undefined): boolean =>
  wanted !== undefined && effectsOf(present) !== effectsOf(wanted);

/** Returns the own taints that the node should have; undefined: those that it has. */
function wantedTaints(
  view: AgentView | undefined,
  present: readonly Taint[],
  effect: string,
  isWorkedOn: boolean,
): readonly Taint[] | undefined {
  if (view === undefined) return undefined;
  const { status } = nodeAnswer('DevicesUnhealthy', nodeViewOf(view));
  if (status === 'False') return [];
  if (!view.feed.some(({ state }) => state === 'UNHEALTHY')) return undefined;
  // Who works on the node has taken it out already. A taint of now would stay after the work.
  return isWorkedOn && !present.some(isOwn) ? undefined : [{ key: TAINT_KEY, effect }];
}

/**
 * The own taint of one node: there while a device is unhealthy, and until the node is known to be well. The API replaces the list
 * of taints as a whole, so each write names the version of the node that it was made from, and a conflict starts anew.
 */
export class NodeTaint {
  readonly #parts: TaintParts;
  /** As last read or written; undefined when that is not known. */
  #present: readonly Taint[] | undefined;
  #readMs = Number.NEGATIVE_INFINITY;
  #patchedMs = Number.NEGATIVE_INFINITY;

  constructor(parts: TaintParts) {
    this.#parts = parts;
  }

  /** Returns after how many milliseconds to call again, even without news. `view`: undefined while nothing is known, which changes nothing. */
  async keep(view: () => AgentView | undefined): Promise<number> {
    const { clock, resyncMs, effect } = this.#parts;
    if (clock.monotonic() - this.#readMs >= resyncMs) this.#present = undefined;
    const present = this.#present ?? (await this.#read()).taints;
    const isWorkedOn = this.#parts.isWorkedOn?.() ?? false;
    const wanted = (taints: readonly Taint[]): readonly Taint[] | undefined => wantedTaints(view(), taints, effect, isWorkedOn);
    const untilReadMs = this.#readMs + resyncMs - clock.monotonic();
    if (!differ(present, wanted(present))) return untilReadMs;
    const waitMs = this.#patchedMs + SPACING_MS - clock.monotonic();
    if (waitMs > 0) return Math.min(waitMs, untilReadMs);
    await this.#write(wanted);
    return untilReadMs;
  }

  /** Removes the taint. Returns how many there were. */
  async withdraw(): Promise<number> {
    const own = (await this.#read()).taints.filter(isOwn);
    if (own.length > 0) await this.#write(() => []);
    return own.length;
  }

  async #read(): Promise<{ readonly taints: readonly Taint[]; readonly resourceVersion: string }> {
    const { body } = await callOrThrow(this.#parts.kubernetes, { method: 'GET', path: this.#path() });
    const { metadata } = (body ?? {}) as { readonly metadata?: { readonly resourceVersion?: string } };
    // A write without a version would replace the taints of others.
    if (metadata?.resourceVersion === undefined) throw new NoAnswer('the answer has no node');
    this.#readMs = this.#parts.clock.monotonic();
    const taints = taintsIn(body);
    this.#present = taints;
    return { taints, resourceVersion: metadata.resourceVersion };
  }

  /** Calls `wanted` after each reading, because its answer can change until the request is sent. */
  async #write(wanted: (present: readonly Taint[]) => readonly Taint[] | undefined): Promise<void> {
    for (let conflicts = 0; ; conflicts += 1) {
      const { taints, resourceVersion } = await this.#read();
      const own = wanted(taints);
      if (own === undefined || !differ(taints, own)) return;
      const after = [...taints.filter((taint) => !isOwn(taint)), ...own];
      // A failed request may have been carried out.
      this.#present = undefined;
      this.#patchedMs = this.#parts.clock.monotonic();
      const body = { metadata: { resourceVersion }, spec: { taints: after } };
      const path = `${this.#path()}?fieldManager=${COMPONENT}`;
      const request = { method: 'PATCH', path, body, contentType: 'application/merge-patch+json' } as const;
      const { status, body: answer } = await callOrThrow(this.#parts.kubernetes, request, conflicts < MOST_CONFLICTS ? [409] : []);
      if (status === 409) continue;
      if (differ(taintsIn(answer), own)) throw new NotTaken('the answer to the patch lacks the taint that was written, or still has it');
      this.#present = after;
      return;
    }
  }

  #path = (): string => `/api/v1/nodes/${encodeURIComponent(this.#parts.node)}`;
}
