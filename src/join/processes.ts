import type { Allocation } from '../model/allocation.ts';
import type { DeviceProcess } from '../model/collection.ts';
import type { CheckpointEntry } from '../model/pod-resources.ts';

/** Use of a device by the processes of one holder. A value that no process reports is absent. */
export interface ProcessUse {
  readonly memoryUsedBytes?: number;
  /** Keyed by engine. */
  readonly utilization: ReadonlyMap<string, number>;
}

/**
 * Sums the use of a shared device by holder. The cgroup of a process gives its pod's UID, the kubelet's checkpoint maps the UID to
 * containers and their device ids, and an allocation gives the names. A process that does not match exactly one holder is left out.
 */
export function useByHolder(
  holders: readonly Allocation[],
  processes: readonly DeviceProcess[],
  checkpoint: readonly CheckpointEntry[],
): ReadonlyMap<Allocation, ProcessUse> {
  const used = new Map<Allocation, ProcessUse>();
  for (const process of processes) {
    const owner = ownerOf(process, holders, checkpoint);
    if (owner !== undefined) used.set(owner, sumOf(used.get(owner), process));
  }
  return used;
}

function ownerOf(
  { podUid }: DeviceProcess,
  holders: readonly Allocation[],
  checkpoint: readonly CheckpointEntry[],
): Allocation | undefined {
  if (podUid === undefined) return undefined;
  const entries = checkpoint.filter((entry) => entry.podUid === podUid);
  const owners = holders.filter((holder) =>
    entries.some(
      (entry) => entry.container === holder.container && entry.resource === holder.resource && entry.deviceIds.includes(holder.deviceId),
    ),
  );
  const containers = new Set(owners.map((owner) => owner.container));
  return containers.size > 1 ? undefined : owners[0];
}

function sumOf(before: ProcessUse | undefined, { memoryUsedBytes, utilization }: DeviceProcess): ProcessUse {
  const engines = new Map(before?.utilization);
  for (const [engine, share] of Object.entries(utilization ?? {})) engines.set(engine, (engines.get(engine) ?? 0) + share);
  const memory = memoryUsedBytes === undefined ? before?.memoryUsedBytes : (before?.memoryUsedBytes ?? 0) + memoryUsedBytes;
  return { utilization: engines, ...(memory === undefined ? {} : { memoryUsedBytes: memory }) };
}
