import type { SimulatedWorkload } from './family-simulation.ts';

/** The ids of one resource that the node can allocate. */
export interface Supply {
  readonly resource: string;
  readonly deviceIds: readonly string[];
}

/** A planned pod with its devices. */
export interface PlannedPod {
  readonly namespace: string;
  readonly name: string;
  readonly container: string;
  readonly devices: readonly { readonly resource: string; readonly deviceIds: readonly string[] }[];
  /** Ids of devices that it holds and does not use; absent when it uses all of them. */
  readonly idleIds?: readonly string[];
}

/** Most pods of a node need no device. */
const WITHOUT_DEVICES: SimulatedWorkload = { namespace: 'web', name: 'front', container: 'nginx', wants: [] };

/**
 * Mixes the workloads of families: the first of each, then the second of each, and so on, and one that needs no device. A workload is left out
 * when the node has none of the resources that it wants.
 */
export function mixed(families: readonly (readonly SimulatedWorkload[])[], supplies: readonly Supply[]): readonly SimulatedWorkload[] {
  const has = ([prefix]: readonly [string, number]): boolean => supplies.some(({ resource }) => resource.startsWith(prefix));
  const able = families.map((workloads) => workloads.filter(({ wants }) => wants.some(has)));
  const most = Math.max(0, ...able.map(({ length }) => length));
  return [...Array.from({ length: most }, (_, n) => able.flatMap((workloads) => workloads[n] ?? [])).flat(), WITHOUT_DEVICES];
}

/**
 * Plans the pods of the node after `changes` replacements. Pods take their workload in turn. Each takes free devices; a pod whose request
 * cannot be met runs without devices.
 */
export function planPods(
  supplies: readonly Supply[],
  workloads: readonly SimulatedWorkload[],
  count: number,
  changes: number,
): readonly PlannedPod[] {
  const free = new Map(supplies.map(({ resource, deviceIds }) => [resource, [...deviceIds]]));
  return Array.from({ length: count }, (_, slot) => {
    // One slot after the other gets a new pod; the pod's name contains the generation.
    const generation = count === 0 ? 0 : Math.floor((changes + count - 1 - slot) / count);
    const workload = workloads[slot % workloads.length] ?? WITHOUT_DEVICES;
    const devices = workload.wants.flatMap(([prefix, amount]) => take(free, prefix, amount));
    const idleIds = workload.unused === undefined ? [] : devices.flatMap(({ deviceIds }) => deviceIds).slice(-workload.unused);
    return {
      namespace: workload.namespace,
      name: `${workload.name}-${Math.floor(slot / workloads.length)}-${generation}`,
      container: workload.container,
      devices,
      ...(idleIds.length === 0 ? {} : { idleIds }),
    };
  });
}

function take(free: Map<string, string[]>, prefix: string, amount: number): { resource: string; deviceIds: string[] }[] {
  for (const [resource, ids] of free) {
    if (resource.startsWith(prefix) && ids.length >= amount) return [{ resource, deviceIds: ids.splice(0, amount) }];
  }
  return [];
}
