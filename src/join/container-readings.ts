import type { Allocation } from '../model/allocation.ts';
import type { MetricSpec, Reading } from '../model/metric.ts';
import type { CheckpointEntry } from '../model/pod-resources.ts';
import { shared } from '../model/shared-metrics.ts';
import type { ContainerReading, DeviceState } from '../model/snapshot.ts';
import type { ContainerCounters, HolderCounters } from './container-counters.ts';
import { memoryByHolder } from './processes.ts';

/**
 * What each container sees of its devices. A device held by one container gives that container its readings; of a device
 * shared by several only what can be told apart: the memory of their processes. A number is never given to two owners, so
 * sums over containers stay true.
 */
export function containerReadings(
  devices: readonly DeviceState[],
  specs: ReadonlyMap<string, MetricSpec>,
  checkpoint: readonly CheckpointEntry[],
  counters: ContainerCounters,
): readonly ContainerReading[] {
  const result: ContainerReading[] = [];
  for (const state of devices) {
    const containers = oneAllocationPerContainer(state.holders);
    if (containers.length === 1) result.push(...ownReadings(state, containers[0] as Allocation, specs, counters));
    else if (containers.length > 1) result.push(...sharedReadings(state, checkpoint));
  }
  counters.sweep();
  return result;
}

/** A container may hold a device by several ids (replicas) or resources: one of them names it, the same at each refresh. */
function oneAllocationPerContainer(holders: readonly Allocation[]): readonly Allocation[] {
  const byContainer = new Map<string, Allocation>();
  for (const holder of holders) {
    const key = `${holder.namespace}/${holder.pod}/${holder.container}`;
    const present = byContainer.get(key);
    if (present === undefined || order(holder) < order(present)) byContainer.set(key, holder);
  }
  return [...byContainer.values()];
}

const order = (allocation: Allocation): string => `${allocation.resource}\u0000${allocation.deviceId}`;

function ownReadings(
  state: DeviceState,
  holder: Allocation,
  specs: ReadonlyMap<string, MetricSpec>,
  counters: ContainerCounters,
): readonly ContainerReading[] {
  const own = counters.of(`${holder.namespace}/${holder.pod}/${holder.container}/${state.key}`);
  const result: ContainerReading[] = [];
  for (const reading of state.readings) {
    const spec = specs.get(reading.metric);
    if (spec?.container !== true) continue;
    result.push(owned(holder, state, spec.type === 'counter' ? sinceFirstSeen(reading, own) : reading));
  }
  return result;
}

function sinceFirstSeen(reading: Reading, counters: HolderCounters): Reading {
  const series = reading.labels === undefined ? reading.metric : `${reading.metric}${JSON.stringify(reading.labels)}`;
  return { ...reading, value: counters.sinceFirstSeen(series, reading.value) };
}

function sharedReadings(state: DeviceState, checkpoint: readonly CheckpointEntry[]): readonly ContainerReading[] {
  return [...memoryByHolder(state.holders, state.processes, checkpoint)].map(([holder, bytes]) =>
    owned(holder, state, { metric: shared.memoryUsed.name, value: bytes }),
  );
}

function owned(holder: Allocation, state: DeviceState, reading: Reading): ContainerReading {
  const { namespace, pod, container, resource } = holder;
  return { namespace, pod, container, resource, device: state.device.id, reading };
}
