import type { Allocation } from '../model/allocation.ts';
import type { MetricSpec, Reading } from '../model/metric.ts';
import type { CheckpointEntry } from '../model/pod-resources.ts';
import { shared } from '../model/shared-metrics.ts';
import type { ContainerReading, DeviceState } from '../model/snapshot.ts';
import type { ContainerCounters, HolderCounters, ToldPlace } from './container-counters.ts';
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

/** Made of what was told before wherever the reading is still the same object: between two refreshes most are. */
function ownReadings(
  state: DeviceState,
  holder: Allocation,
  specs: ReadonlyMap<string, MetricSpec>,
  counters: ContainerCounters,
): readonly ContainerReading[] {
  const own = counters.of(`${holder.namespace}/${holder.pod}/${holder.container}/${state.key}`);
  const before = own.told?.holder === holder ? own.told : undefined;
  const { readings } = state;
  if (before?.readings === readings) return before.result;
  const result: ContainerReading[] = [];
  const places = readings.map((reading, at) => {
    const place = placeOf(reading, before?.places[at], { state, holder, specs, own });
    if (place.told !== undefined) result.push(place.told);
    return place;
  });
  own.told = { holder, readings, places, result };
  return result;
}

interface Ownership {
  readonly state: DeviceState;
  readonly holder: Allocation;
  readonly specs: ReadonlyMap<string, MetricSpec>;
  readonly own: HolderCounters;
}

function placeOf(reading: Reading, before: ToldPlace | undefined, { state, holder, specs, own }: Ownership): ToldPlace {
  if (before?.reading === reading) return before;
  const isSameSeries = before !== undefined && before.reading.metric === reading.metric && before.reading.labels === reading.labels;
  if (isSameSeries && before.told === undefined) return { reading };
  if (!isSameSeries && specs.get(reading.metric)?.container !== true) return { reading };
  const isCounter = isSameSeries ? before.counter !== undefined : specs.get(reading.metric)?.type === 'counter';
  if (!isCounter) return { reading, told: owned(holder, state, reading) };
  const { metric, labels, value } = reading;
  const counter = (isSameSeries ? before.counter : undefined) ?? own.counter(seriesOf(reading), value);
  const since = counter.sinceFirstSeen(value);
  return {
    reading,
    counter,
    told: owned(holder, state, labels === undefined ? { metric, value: since } : { metric, labels, value: since }),
  };
}

function seriesOf({ metric, labels }: Reading): string {
  return labels === undefined ? metric : `${metric}${JSON.stringify(labels)}`;
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

function append<T>(list: T[], more: readonly T[]): void {
  for (const item of more) list.push(item);
}
