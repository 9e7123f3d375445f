import type { Device } from '../../generated/deviceplugin/v1beta1/api.ts';
import { isHealthy, numaNodesOf } from './capacity.ts';

export type TopologyPolicy = 'none' | 'best-effort' | 'single-numa-node';

/** Devices to choose from, and whether the plugin's preference is asked for. */
export interface Choice {
  readonly candidates: readonly string[];
  readonly askPlugin: boolean;
}

/** Why a pod is not admitted, in the kubelet's words. */
export class AdmissionError extends Error {
  readonly reason: 'UnexpectedAdmissionError' | 'TopologyAffinityError';

  constructor(reason: AdmissionError['reason'], message: string) {
    super(message);
    this.name = 'AdmissionError';
    this.reason = reason;
  }
}

/** Narrows a resource's devices down to the free ones, on one NUMA node where the policy wants that and one has enough. */
export function chooseFrom(
  resource: string,
  devices: ReadonlyMap<string, Device>,
  inUse: ReadonlySet<string>,
  count: number,
  policy: TopologyPolicy,
): Choice {
  const healthy = [...devices.values()].filter(isHealthy);
  if (devices.size > 0 && healthy.length === 0) {
    throw refusal(`no healthy devices present; cannot allocate unhealthy devices ${resource}`);
  }
  const free = healthy.filter(({ ID }) => !inUse.has(ID));
  if (free.length < count) {
    throw refusal(`requested number of devices unavailable for ${resource}. Requested: ${count}, Available: ${free.length}`);
  }
  const aligned = policy === 'none' ? undefined : smallestNode(free, count);
  if (policy === 'single-numa-node' && aligned === undefined && free.some((device) => numaNodesOf(device) !== undefined)) {
    throw new AdmissionError('TopologyAffinityError', 'Resources cannot be allocated with Topology locality');
  }
  const candidates = (aligned ?? free).map(({ ID }) => ID);
  return { candidates, askPlugin: candidates.length > count };
}

/** The plugin's proposal as far as it can be followed, filled up with others where it is short. */
export function settle(candidates: readonly string[], proposed: readonly string[], count: number): string[] {
  const allowed = new Set(candidates);
  const wanted = [...new Set(proposed)].filter((id) => allowed.has(id));
  return [...wanted, ...candidates.filter((id) => !wanted.includes(id))].slice(0, count);
}

export const refusal = (message: string): AdmissionError => new AdmissionError('UnexpectedAdmissionError', message);

/** Free devices of the node that has enough of them, fewest first; devices without topology fit everywhere. */
function smallestNode(free: readonly Device[], count: number): readonly Device[] | undefined {
  const nodes = new Set(free.flatMap((device) => numaNodesOf(device) ?? []));
  const groups = [...nodes].map((node) => free.filter((device) => numaNodesOf(device)?.includes(node) ?? true));
  return groups.filter((group) => group.length >= count).sort((a, b) => a.length - b.length)[0];
}
