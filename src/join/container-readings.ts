import type { Allocation } from '../model/allocation.ts';
import type { DeviceProcess } from '../model/collection.ts';
import { defined } from '../model/defined.ts';
import type { HeldRecord } from '../model/device-record.ts';
import { type ContainerName, containerNameOf } from '../model/device-use.ts';
import type { MetricSpec } from '../model/metric.ts';
import { type CheckpointEntry, type PodFacts, type PodFactsByName, podName } from '../model/pod-resources.ts';
import { chooser, memoizedBy, Readings } from '../model/readings.ts';
import { shared } from '../model/shared-metrics.ts';
import type { ContainerReadings } from '../model/snapshot.ts';
import { addTo } from './name-conflicts.ts';
import { podOf } from './processes.ts';

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
  readonly pods?: PodFactsByName | undefined;
}

/**
 * Sums the use of a shared device by holder. The cgroup of a process gives its pod's UID and its container's id. The Pods API maps these to
 * names; without it the kubelet's checkpoint maps the UID to containers and their device ids, but has no claims. A process that does not
 * match exactly one holder is left out, and so is a holder that matches the processes of several pods.
 */
export function useByHolder(
  holders: readonly Allocation[],
  processes: readonly DeviceProcess[],
  sources: PodSources,
): ReadonlyMap<Allocation, ProcessUse> {
  const own = new Map<Allocation, DeviceProcess[]>();
  for (const process of processes) {
    const owner = ownerOf(process, holders, sources);
    if (owner !== undefined) addTo(own, owner, process);
  }
  const isOfOnePod = (of: readonly DeviceProcess[]): boolean =>
    new Set(of.map((one) => podOf(one, sources.pods)?.uid ?? one.podUid)).size === 1;
  return new Map([...own].flatMap(([owner, of]) => (isOfOnePod(of) ? [[owner, useOf(of)] as const] : [])));
}

const useOf = (processes: readonly DeviceProcess[]): ProcessUse => processes.reduce<ProcessUse | undefined>(sumOf, undefined) as ProcessUse;

function ownerOf(process: DeviceProcess, holders: readonly Allocation[], { checkpoint, pods }: PodSources): Allocation | undefined {
  const pod = podOf(process, pods);
  const owners = pod === undefined ? ownersInCheckpoint(process, holders, checkpoint) : ownersInPod(process, holders, pod);
  const containers = new Set(owners.map((owner) => `${podName(owner)}\u0000${owner.container}`));
  return containers.size > 1 ? undefined : owners[0];
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
  return { utilization: isHidden ? undefined : engines, ...defined({ memoryUsedBytes: memory }) };
}

type ReadDevice = Pick<HeldRecord, 'device' | 'holders' | 'readings' | 'processes' | 'strangers' | 'users'>;

/**
 * Assigns gauges to containers. A container that alone holds a device gets the device's gauges. Containers that share a device, also with
 * what is left of a pod that ended, get only the values of their own processes: memory and utilization. So do users, as one container without a
 * name for each pod. No value is assigned twice, so sums over containers are correct. Counters of containers are in their accounts.
 */
export function containerReadings(
  devices: readonly ReadDevice[],
  specs: ReadonlyMap<string, MetricSpec>,
  sources: PodSources,
): readonly ContainerReadings[] {
  const gauges = gaugesOf(specs);
  return devices
    .flatMap((state): readonly ContainerReadings[] => {
      const { strangers = [], users = [] } = state;
      const [holder, ...others] = oneAllocationPerContainer(state.holders);
      if (others.length + strangers.length + users.length > 0) return sharedReadings(state, sources);
      if (holder === undefined) return [];
      return [owned(holder, state, gauges(state.readings))];
    })
    .filter(({ readings }) => readings.length > 0);
}

const gaugesOf = memoizedBy((specs: ReadonlyMap<string, MetricSpec>) =>
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

function sharedReadings(state: ReadDevice, sources: PodSources): readonly ContainerReadings[] {
  const byUsers = (state.users ?? []).map((user) => [containerNameOf(user), useOf(user.processes)] as const);
  return [...useByHolder(state.holders, state.processes, sources), ...byUsers].map(([holder, { memoryUsedBytes, utilization }]) =>
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

function owned(holder: ContainerName, state: ReadDevice, readings: ContainerReadings['readings']): ContainerReadings {
  const { namespace, pod, container, resource } = holder;
  return { namespace, pod, container, resource, device: state.device.id, readings };
}
