import type { Allocation } from '../model/allocation.ts';
import type { MetricSpec, Reading } from '../model/metric.ts';
import type { CheckpointEntry } from '../model/pod-resources.ts';
import { shared } from '../model/shared-metrics.ts';
import type { ContainerReading, DeviceState } from '../model/snapshot.ts';
import type { ContainerCounters, HolderCounter, HolderCounters, Told } from './container-counters.ts';
import { useByHolder } from './processes.ts';

/**
 * What each container sees of its devices. A device held by one container gives that container its readings; of a device
 * shared by several only what can be told apart: memory and utilization of their processes. A number is never given to two owners, so
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
    if (containers.length === 1) append(result, ownReadings(state, containers[0] as Allocation, specs, counters));
    else if (containers.length > 1) append(result, sharedReadings(state, checkpoint));
  }
  counters.sweep();
  return result;
}

/** A container may hold a device by several ids (replicas) or resources: one of them names it, the same at each refresh. */
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

/** What was told before, where the readings are still the same objects: between two refreshes most are. */
function ownReadings(
  state: DeviceState,
  holder: Allocation,
  specs: ReadonlyMap<string, MetricSpec>,
  counters: ContainerCounters,
): readonly ContainerReading[] {
  const own = counters.of(holder, state.key);
  const before = own.told?.holder === holder ? own.told : undefined;
  if (before?.readings === state.readings) return before.result;
  const result = before && changed(before, state);
  own.told = before && result ? { ...before, readings: state.readings, result } : toldAnew(state, holder, specs, own);
  return own.told.result;
}

/** What was told before with the readings that changed; undefined when it is not the same series any more. Unchanged ones are not even looked into. */
function changed({ holder, readings, places, counters, result }: Told, state: DeviceState): readonly ContainerReading[] | undefined {
  if (readings.length !== state.readings.length) return undefined;
  let copy: ContainerReading[] | undefined;
  for (let at = 0; at < readings.length; at += 1) {
    const [before, now] = [readings[at] as Reading, state.readings[at] as Reading];
    if (before === now) continue;
    if (before.metric !== now.metric || before.labels !== now.labels) return undefined;
    const place = places[at] as number;
    if (place < 0) continue;
    copy ??= result.slice();
    copy[place] = told(state, holder, now, counters[at]);
  }
  return copy ?? result;
}

function toldAnew(state: DeviceState, holder: Allocation, specs: ReadonlyMap<string, MetricSpec>, own: HolderCounters): Told {
  const result: ContainerReading[] = [];
  const counters: (HolderCounter | undefined)[] = [];
  const places = state.readings.map((reading, at) => {
    const spec = specs.get(reading.metric);
    if (spec?.container !== true) return -1;
    const counter = spec.type === 'counter' ? own.counter(seriesOf(reading), reading.value) : undefined;
    counters[at] = counter;
    return result.push(told(state, holder, reading, counter)) - 1;
  });
  return { holder, readings: state.readings, result, places, counters };
}

function told(state: DeviceState, holder: Allocation, reading: Reading, counter: HolderCounter | undefined): ContainerReading {
  if (counter === undefined) return owned(holder, state, reading);
  const { metric, labels } = reading;
  const value = counter.sinceFirstSeen(reading.value);
  return owned(holder, state, labels === undefined ? { metric, value } : { metric, labels, value });
}

function seriesOf({ metric, labels }: Reading): string {
  return labels === undefined ? metric : `${metric}${JSON.stringify(labels)}`;
}

function sharedReadings(state: DeviceState, checkpoint: readonly CheckpointEntry[]): readonly ContainerReading[] {
  return [...useByHolder(state.holders, state.processes, checkpoint)].flatMap(([holder, { memoryUsedBytes, utilization }]) => [
    ...(memoryUsedBytes === undefined ? [] : [owned(holder, state, { metric: shared.memoryUsed.name, value: memoryUsedBytes })]),
    ...[...utilization].map(([engine, value]) => owned(holder, state, { metric: shared.utilization.name, labels: { engine }, value })),
  ]);
}

function owned(holder: Allocation, state: DeviceState, reading: Reading): ContainerReading {
  const { namespace, pod, container, resource } = holder;
  return { namespace, pod, container, resource, device: state.device.id, reading };
}

function append<T>(list: T[], more: readonly T[]): void {
  for (const item of more) list.push(item);
}
