import type { Allocation } from '../model/allocation.ts';
import type { MetricSpec, SeriesId, Value } from '../model/metric.ts';
import type { CheckpointEntry } from '../model/pod-resources.ts';
import { Readings } from '../model/readings.ts';
import { shared } from '../model/shared-metrics.ts';
import type { ContainerReadings, DeviceState } from '../model/snapshot.ts';
import type { ContainerCounters, HolderCounters, Told } from './container-counters.ts';
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
): readonly ContainerReadings[] {
  const result: ContainerReadings[] = [];
  for (const state of devices) {
    const containers = oneAllocationPerContainer(state.holders);
    if (containers.length === 1) add(result, ownReadings(state, containers[0] as Allocation, specs, counters));
    else if (containers.length > 1) for (const shared of sharedReadings(state, checkpoint)) add(result, shared);
  }
  counters.sweep();
  return result;
}

function add(result: ContainerReadings[], one: ContainerReadings): void {
  if (one.readings.length > 0) result.push(one);
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

/** What was told before, where the readings are still the same object. */
function ownReadings(
  state: DeviceState,
  holder: Allocation,
  specs: ReadonlyMap<string, MetricSpec>,
  counters: ContainerCounters,
): ContainerReadings {
  const own = counters.of(holder, state.key);
  own.countAt(state.device);
  const before = own.told?.holder === holder ? own.told : undefined;
  if (before?.readings === state.readings) return before.result;
  const isSame = before?.readings.series === state.readings.series;
  own.told = isSame ? toldAgain(before as Told, state.readings) : toldAnew(state, holder, specs, own);
  return own.told.result;
}

/** What was told before with the values that changed. */
function toldAgain({ holder, readings, result, places, counters }: Told, now: Readings): Told {
  const [before, after] = [readings.values, now.values];
  let copy: Value[] | undefined;
  for (let at = 0; at < places.length; at += 1) {
    const value = after[places[at] as number] as Value;
    if (value === before[places[at] as number]) continue;
    copy ??= result.readings.values.slice();
    const counter = counters[at];
    copy[at] = counter === undefined ? value : counter.sinceFirstSeen(value);
  }
  return { holder, readings: now, result: copy === undefined ? result : withValues(result, copy), places, counters };
}

function withValues(
  { namespace, pod, container, resource, device, readings }: ContainerReadings,
  values: readonly Value[],
): ContainerReadings {
  return { namespace, pod, container, resource, device, readings: new Readings(readings.series, values) };
}

function toldAnew(state: DeviceState, holder: Allocation, specs: ReadonlyMap<string, MetricSpec>, own: HolderCounters): Told {
  const { readings } = state;
  const places = readings.series.flatMap(({ metric }, at) => (specs.get(metric)?.container === true ? [at] : []));
  const series = places.map((at) => readings.series[at] as SeriesId);
  const given = places.map((at) => readings.values[at] as Value);
  const counters = series.map((id, at) =>
    specs.get(id.metric)?.type === 'counter' ? own.counter(seriesText(id), given[at] as Value) : undefined,
  );
  const values = given.map((value, at) => counters[at]?.sinceFirstSeen(value) ?? value);
  return { holder, readings, result: owned(holder, state, new Readings(series, values)), places, counters };
}

function seriesText({ metric, labels }: SeriesId): string {
  return labels === undefined ? metric : `${metric}${JSON.stringify(labels)}`;
}

function sharedReadings(state: DeviceState, checkpoint: readonly CheckpointEntry[]): readonly ContainerReadings[] {
  return [...useByHolder(state.holders, state.processes, checkpoint)].map(([holder, { memoryUsedBytes, utilization }]) =>
    owned(
      holder,
      state,
      Readings.of([
        ...(memoryUsedBytes === undefined ? [] : [{ metric: shared.memoryUsed.name, value: memoryUsedBytes }]),
        ...[...utilization].map(([engine, value]) => ({ metric: shared.utilization.name, labels: { engine }, value })),
      ]),
    ),
  );
}

function owned(holder: Allocation, state: DeviceState, readings: Readings): ContainerReadings {
  const { namespace, pod, container, resource } = holder;
  return { namespace, pod, container, resource, device: state.device.id, readings };
}
