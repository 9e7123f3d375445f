import type { Allocation } from '../model/allocation.ts';
import type { DeviceProcess } from '../model/collection.ts';
import type { HeldRecord } from '../model/device-record.ts';
import type { DeviceUser, HoldingPod, OwnedProcess } from '../model/device-use.ts';
import type { MetricSpec } from '../model/metric.ts';
import { type CheckpointEntry, type PodFacts, type PodFactsByName, podName } from '../model/pod-resources.ts';
import { chooser, keptBy, Readings } from '../model/readings.ts';
import { shared } from '../model/shared-metrics.ts';
import type { ContainerReadings } from '../model/snapshot.ts';

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

/**
 * The pods of allocations, each once, sorted by name, with the UID where exactly one is known. A pod that ended with the same devices may
 * still be in the checkpoint. Two UIDs for one holder are therefore none.
 */
export function holdingPods(
  holders: readonly Allocation[],
  inCheckpoint: CheckpointUids,
  pods: PodFactsByName | undefined,
): readonly HoldingPod[] {
  if (holders.length === 0) return NO_PODS;
  const byName = new Map<string, Allocation[]>();
  for (const holder of holders) {
    const name = podName(holder);
    const own = byName.get(name);
    if (own === undefined) byName.set(name, [holder]);
    else own.push(holder);
  }
  return [...byName]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, own]): HoldingPod => {
      const { namespace, pod } = own[0] as Allocation;
      const known = pods?.get(name)?.uid;
      const uids = known === undefined ? [...new Set(own.flatMap((holder) => [...inCheckpoint(holder)]))] : [known];
      return uids.length === 1 ? { namespace, pod, uid: uids[0] as string } : { namespace, pod };
    });
}

const NO_PODS: readonly HoldingPod[] = [];

/** The pods that a process may belong to, and that matter for its device. */
export interface DevicePods {
  /** They hold the device, its parts or its parent. */
  readonly held: readonly HoldingPod[];
  /** They hold something that leads to no known device, so they may hold this one. */
  readonly possible: readonly HoldingPod[];
  readonly user?: DeviceUser | undefined;
  /** All pods of the node that the kubelet's Pods API lists. */
  readonly pods?: PodFactsByName | undefined;
}

/**
 * Compares the pod of each process with the holders of its device. A process without a name was not visible below `/proc`, so nothing is
 * known of it.
 */
export function processOwners(processes: readonly DeviceProcess[], related: DevicePods): readonly OwnedProcess[] {
  return processes.map((process) => ({ ...process, ...podKindOf(process, related) }));
}

type Owner = Pick<OwnedProcess, 'owner' | 'podName'>;

function podKindOf({ name, podUid, containerId }: DeviceProcess, { held, possible, user, pods = new Map() }: DevicePods): Owner {
  if (podUid === undefined && containerId === undefined) return { owner: name === undefined ? 'unknown' : 'outside' };
  const facts = [...pods.values()].find((pod) => (podUid === undefined ? hasContainer(pod, containerId) : pod.uid === podUid));
  const uid = podUid ?? facts?.uid;
  if (uid === undefined) return { owner: areContainersKnown([...held, ...possible], pods) ? 'outside' : 'unknown' };
  const holder = held.find((pod) => pod.uid === uid);
  if (holder !== undefined) return { owner: 'holder', podName: nameOf(holder) };
  const podText = facts === undefined ? `with UID ${uid}` : nameOf(facts);
  const mayBe = (pod: HoldingPod): boolean => pod.uid === undefined && (facts === undefined || podName(pod) === podName(facts));
  if (held.some(mayBe) || possible.some((pod) => pod.uid === uid || mayBe(pod))) return { owner: 'unknown', podName: podText };
  const former = user?.endedAtMs === undefined ? undefined : user.pods.find((pod) => pod.uid === uid);
  return former === undefined ? { owner: 'pod', podName: podText } : { owner: 'former', podName: nameOf(former) };
}

/**
 * An agent in a cgroup namespace of its own may see a container of a pod without the pod. A container without a pod is therefore outside
 * of these pods only when the containers of each of them are known.
 */
function areContainersKnown(related: readonly HoldingPod[], pods: PodFactsByName): boolean {
  return related.every((pod) => (pods.get(podName(pod))?.containers.length ?? 0) > 0);
}

const hasContainer = ({ containers }: PodFacts, containerId: string | undefined): boolean =>
  containers.some(({ id }) => id === containerId);

const nameOf = ({ namespace, pod }: Pick<HoldingPod, 'namespace' | 'pod'>): string => `${namespace}/${pod}`;

/** UIDs of the pods to which the kubelet's checkpoint assigns the device id. A pod that ended may still be among them. */
export type CheckpointUids = (allocation: Allocation) => ReadonlySet<string>;

/** UID of the pod that has an allocation. Undefined while no source gives exactly one. */
export type UidOf = (allocation: Allocation) => string | undefined;

const NO_UIDS: ReadonlySet<string> = new Set();

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
  return ({ container, resource, deviceId }) => uids.get(slotOf(container, resource, deviceId)) ?? NO_UIDS;
}

/** The checkpoint comes first. The kubelet's Pods API gives the UID for each name, also for claims, and decides between several. */
export function podUids(inCheckpoint: CheckpointUids, pods?: PodFactsByName): UidOf {
  return (allocation) => {
    const found = inCheckpoint(allocation);
    return found.size === 1 ? found.values().next().value : pods?.get(podName(allocation))?.uid;
  };
}

const slotOf = (container: string, resource: string, deviceId: string): string => `${container}\u0000${resource}\u0000${deviceId}`;

type SeenDevice = Pick<HeldRecord, 'device' | 'holders' | 'readings' | 'processes' | 'strangers'>;

/**
 * Assigns gauges to containers. A container that alone holds a device gets the device's gauges. Containers that share a device, also with
 * what is left of a pod that ended, get only the values of their own processes: memory and utilization. No value is assigned twice, so sums over containers are correct. Counters of
 * containers are in their accounts.
 */
export function containerReadings(
  devices: readonly SeenDevice[],
  specs: ReadonlyMap<string, MetricSpec>,
  sources: PodSources,
): readonly ContainerReadings[] {
  const gauges = gaugesOf(specs);
  return devices
    .flatMap((state): readonly ContainerReadings[] => {
      const [holder, ...others] = oneAllocationPerContainer(state.holders);
      if (holder === undefined) return [];
      if (others.length > 0 || (state.strangers ?? []).length > 0) return sharedReadings(state, sources);
      return [owned(holder, state, gauges(state.readings))];
    })
    .filter(({ readings }) => readings.length > 0);
}

const gaugesOf = keptBy((specs: ReadonlyMap<string, MetricSpec>) =>
  chooser((metric) => {
    const spec = specs.get(metric);
    return spec?.container === true && spec.type === 'gauge';
  }),
);

/** A container may hold a device by several ids (replicas) or resources. Keeps one of them, the same at each refresh. */
function oneAllocationPerContainer(holders: readonly Allocation[]): readonly Allocation[] {
  if (holders.length < 2) return holders;
  const byContainer = new Map<string, Allocation>();
  for (const holder of holders) {
    const key = `${holder.namespace}/${holder.pod}/${holder.container}`;
    const present = byContainer.get(key);
    if (present === undefined || order(holder) < order(present)) byContainer.set(key, holder);
  }
  return [...byContainer.values()];
}

const order = (allocation: Allocation): string => `${allocation.resource}\u0000${allocation.deviceId}`;

function sharedReadings(state: SeenDevice, sources: PodSources): readonly ContainerReadings[] {
  return [...useByHolder(state.holders, state.processes, sources)].map(([holder, { memoryUsedBytes, utilization }]) =>
    owned(
      holder,
      state,
      Readings.of([
        ...(memoryUsedBytes === undefined ? [] : [{ metric: shared.memoryUsed.name, value: memoryUsedBytes }]),
        ...[...(utilization ?? [])].map(([engine, value]) => ({ metric: shared.utilization.name, labels: { engine }, value })),
      ]),
    ),
  );
}

function owned(holder: Allocation, state: SeenDevice, readings: ContainerReadings['readings']): ContainerReadings {
  const { namespace, pod, container, resource } = holder;
  return { namespace, pod, container, resource, device: state.device.id, readings };
}
