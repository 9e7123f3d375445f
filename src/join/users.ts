import type { Allocation } from '../model/allocation.ts';
import type { DeviceProcess } from '../model/collection.ts';
import { defined } from '../model/defined.ts';
import type { DelegationRules, DeviceUser } from '../model/device-use.ts';
import { matchesAny } from '../model/excluded.ts';
import { type PodFactsByName, podName } from '../model/pod-resources.ts';
import { addTo } from './name-conflicts.ts';
import { type CheckpointUids, podOf } from './processes.ts';

/**
 * The pods whose processes use a device that the kubelet does not name for them, by UID. A pod that may be one of the holders is left out.
 */
export function usersOf(
  processes: readonly DeviceProcess[],
  holders: readonly Allocation[],
  inCheckpoint: CheckpointUids,
  pods: PodFactsByName = new Map(),
): readonly DeviceUser[] {
  const byUid = new Map<string, DeviceProcess[]>();
  for (const process of processes) {
    const uid = process.podUid ?? podOf(process, pods)?.uid;
    if (uid !== undefined) addTo(byUid, uid, process);
  }
  return [...byUid].flatMap(([uid, own]): DeviceUser[] => {
    const facts = podOf({ podUid: uid }, pods);
    const mayHold = (holder: Allocation): boolean => {
      const known = pods.get(podName(holder))?.uid;
      if (known !== undefined) return known === uid;
      if (facts !== undefined) return podName(facts) === podName(holder);
      const uids = inCheckpoint(holder);
      return uids.size === 0 || uids.has(uid);
    };
    if (holders.some(mayHold)) return [];
    return [{ uid, ...defined({ namespace: facts?.namespace, pod: facts?.pod }), processes: own }];
  });
}

/** Whether the pod holds the device for others. Its labels come from the Pods API. */
export function isDelegating({ holders }: Pick<DelegationRules, 'holders'>, holder: Allocation, pods?: PodFactsByName): boolean {
  const labels = Object.entries(pods?.get(podName(holder))?.labels ?? {}).map(([name, value]) => `${name}=${value}`);
  return [`${holder.namespace}/${holder.pod}`, ...labels].some((name) => matchesAny(holders, name));
}

/** Whether the id does not tell which device its container uses. */
export const isDelegatedId = (ids: readonly string[], { resource, deviceId, claim }: Allocation): boolean =>
  claim === undefined && ids.some((one) => matchesAny([one.includes(':') ? one : `${one}:*`], `${resource}:${deviceId}`));
