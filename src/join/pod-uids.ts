import type { Allocation } from '../model/allocation.ts';
import { podName } from '../model/pod-facts.ts';
import type { PodSources } from './processes.ts';

/** UID of the pod that has an allocation. Undefined while no source tells exactly one. */
export type UidOf = (allocation: Allocation) => string | undefined;

/**
 * The kubelet's checkpoint tells the UID for each device id, and may still list a pod that ended. Its Pods API tells the UID for each name,
 * also for claims, and decides between several.
 */
export function podUids({ checkpoint, pods }: PodSources): UidOf {
  const uids = new Map<string, Set<string>>();
  for (const { podUid, container, resource, deviceIds } of checkpoint) {
    for (const id of deviceIds) {
      const slot = slotOf(container, resource, id);
      const known = uids.get(slot);
      if (known === undefined) uids.set(slot, new Set([podUid]));
      else known.add(podUid);
    }
  }
  return (allocation) => {
    const { container, resource, deviceId } = allocation;
    const found = uids.get(slotOf(container, resource, deviceId));
    if (found?.size === 1) return found.values().next().value;
    return pods?.get(podName(allocation))?.uid;
  };
}

const slotOf = (container: string, resource: string, deviceId: string): string => `${container}\u0000${resource}\u0000${deviceId}`;
