import type { Allocation } from '../model/allocation.ts';
import type { DeviceProcess } from '../model/collection.ts';
import type { CheckpointEntry, PodFacts, PodFactsByName } from '../model/pod-resources.ts';

/** Use of a device by the processes of one holder. A value that no process reports is absent. */
export interface ProcessUse {
  readonly memoryUsedBytes?: number;
  /** Keyed by engine. Undefined when one of the processes is a client of an MPS server whose share nobody tells. */
  readonly utilization: ReadonlyMap<string, number> | undefined;
}

/** The data that identifies the pod of a process. */
export interface PodSources {
  readonly checkpoint: readonly CheckpointEntry[];
  /** Pods that hold devices, where the kubelet's Pods API lists them. */
  readonly pods?: PodFactsByName;
}

/**
 * Sums the use of a shared device by holder. The cgroup of a process gives its pod's UID and its container's id. The Pods API maps these to
 * names; without it the kubelet's checkpoint maps the UID to containers and their device ids, but has no claims. A process that does not
 * match exactly one holder is left out.
 */
export function useByHolder(
  holders: readonly Allocation[],
  processes: readonly DeviceProcess[],
  sources: PodSources,
): ReadonlyMap<Allocation, ProcessUse> {
  const used = new Map<Allocation, ProcessUse>();
  for (const process of processes) {
    const owner = ownerOf(process, holders, sources);
    if (owner !== undefined) used.set(owner, sumOf(used.get(owner), process));
  }
  return used;
}

function ownerOf(process: DeviceProcess, holders: readonly Allocation[], { checkpoint, pods }: PodSources): Allocation | undefined {
  const pod = podOf(process, pods);
  const owners = pod === undefined ? ownersInCheckpoint(process, holders, checkpoint) : ownersInPod(process, holders, pod);
  const containers = new Set(owners.map((owner) => owner.container));
  return containers.size > 1 ? undefined : owners[0];
}

/**
 * The processes of pods that do not hold the device: their pod ended and they live on, or they use it without a right. What they use
 * belongs to no holder. Only what is certain counts, so there are none while the UID of a holder is not known.
 */
export function strangersAmong(
  processes: readonly DeviceProcess[],
  holders: readonly Allocation[],
  uidOf: (holder: Allocation) => string | undefined,
): readonly DeviceProcess[] {
  if (holders.length === 0 || processes.length === 0) return NONE;
  const uids = new Set(holders.map(uidOf));
  return uids.has(undefined) ? NONE : processes.filter(({ podUid }) => podUid !== undefined && !uids.has(podUid));
}

const NONE: readonly DeviceProcess[] = [];

/** An agent in a cgroup namespace of its own may see only the id of the container. */
function podOf({ podUid, containerId }: DeviceProcess, pods: PodFactsByName = new Map()): PodFacts | undefined {
  for (const pod of pods.values()) {
    if (podUid === undefined ? pod.containers.some(({ id }) => id === containerId) : pod.uid === podUid) return pod;
  }
  return undefined;
}

function ownersInPod(
  { containerId }: DeviceProcess,
  holders: readonly Allocation[],
  { namespace, pod, containers }: PodFacts,
): Allocation[] {
  const container = containers.find(({ id }) => id === containerId)?.name;
  const isOwner = (holder: Allocation): boolean => container === undefined || holder.container === container;
  return holders.filter((holder) => holder.namespace === namespace && holder.pod === pod && isOwner(holder));
}

function ownersInCheckpoint(
  { podUid }: DeviceProcess,
  holders: readonly Allocation[],
  checkpoint: readonly CheckpointEntry[],
): Allocation[] {
  if (podUid === undefined) return [];
  const entries = checkpoint.filter((entry) => entry.podUid === podUid);
  return holders.filter((holder) =>
    entries.some(
      (entry) => entry.container === holder.container && entry.resource === holder.resource && entry.deviceIds.includes(holder.deviceId),
    ),
  );
}

function sumOf(before: ProcessUse | undefined, { memoryUsedBytes, utilization, isMpsClient }: DeviceProcess): ProcessUse {
  const engines = new Map(before?.utilization);
  for (const [engine, share] of Object.entries(utilization ?? {})) engines.set(engine, (engines.get(engine) ?? 0) + share);
  const memory = memoryUsedBytes === undefined ? before?.memoryUsedBytes : (before?.memoryUsedBytes ?? 0) + memoryUsedBytes;
  const isHidden = (isMpsClient === true && utilization === undefined) || (before !== undefined && before.utilization === undefined);
  return { utilization: isHidden ? undefined : engines, ...(memory === undefined ? {} : { memoryUsedBytes: memory }) };
}
