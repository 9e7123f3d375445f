import type { Allocation } from '../model/allocation.ts';
import type { DeviceProcess } from '../model/collection.ts';
import type { CheckpointEntry } from '../model/pod-resources.ts';

/**
 * Device memory that each holder's processes use, in bytes. A process knows its pod's UID (cgroup), the kubelet's checkpoint
 * ties the UID to a container and its device ids, and an allocation gives the names. Processes that this chain does not lead
 * to exactly one holder are left out rather than guessed.
 */
export function memoryByHolder(
  holders: readonly Allocation[],
  processes: readonly DeviceProcess[],
  checkpoint: readonly CheckpointEntry[],
): ReadonlyMap<Allocation, number> {
  const used = new Map<Allocation, number>();
  for (const process of processes) {
    if (process.podUid === undefined || process.memoryUsedBytes === undefined) continue;
    const entries = checkpoint.filter((entry) => entry.podUid === process.podUid);
    const owners = holders.filter((holder) =>
      entries.some(
        (entry) => entry.container === holder.container && entry.resource === holder.resource && entry.deviceIds.includes(holder.deviceId),
      ),
    );
    const containers = new Set(owners.map((owner) => owner.container));
    const owner = owners[0];
    if (owner === undefined || containers.size > 1) continue;
    used.set(owner, (used.get(owner) ?? 0) + process.memoryUsedBytes);
  }
  return used;
}
