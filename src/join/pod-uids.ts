import type { Allocation } from '../model/allocation.ts';
import { type PodFactsByName, podName } from '../model/pod-resources.ts';
import type { PodSources } from './processes.ts';

/** UIDs of the pods to which the kubelet's checkpoint assigns the device id. A pod that ended may still be among them. */
export type CheckpointUids = (allocation: Allocation) => ReadonlySet<string>;

/** UID of the pod that has an allocation. Undefined while no source gives exactly one. */
export type UidOf = (allocation: Allocation) => string | undefined;

const NONE: ReadonlySet<string> = new Set();

export function checkpointUids(checkpoint: PodSources['checkpoint']): CheckpointUids {
  const uids = new Map<string, Set<string>>();
  for (const { podUid, container, resource, deviceIds } of checkpoint) {
    for (const id of deviceIds) {
      const slot = slotOf(container, resource, id);
      const known = uids.get(slot);
      if (known === undefined) uids.set(slot, new Set([podUid]));
      else known.add(podUid);
    }
  }
  return ({ container, resource, deviceId }) => uids.get(slotOf(container, resource, deviceId)) ?? NONE;
}

/** The checkpoint comes first. The kubelet's Pods API gives the UID for each name, also for claims, and decides between several. */
export function podUids(inCheckpoint: CheckpointUids, pods?: PodFactsByName): UidOf {
  return (allocation) => {
    const found = inCheckpoint(allocation);
    return found.size === 1 ? found.values().next().value : pods?.get(podName(allocation))?.uid;
  };
}

const slotOf = (container: string, resource: string, deviceId: string): string => `${container}\u0000${resource}\u0000${deviceId}`;
