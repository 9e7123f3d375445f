import type { Allocation } from '../model/allocation.ts';
import type { MetricSpec, Reading, Value } from '../model/metric.ts';
import { shared } from '../model/shared-metrics.ts';
import type { ContainerReadings, DeviceState } from '../model/snapshot.ts';
import type { ContainerCounters, HolderCounters } from './container-counters.ts';
import type { UidOf } from './pod-uids.ts';
import { type PodSources, useByHolder } from './processes.ts';

/** A device, with the begin of the read that gave its readings. */
export interface SeenDevice {
  readonly state: Omit<DeviceState, 'verdict'>;
  /** Monotonic clock; absent before the first read. */
  readonly readFromMs: number | undefined;
}

/**
 * Assigns readings to containers. A container that alone holds a device gets the device's readings. Containers that share a device get
 * only the values of their own processes: memory and utilization. No value is assigned twice, so sums over containers are correct.
 * `nowMs`: monotonic clock.
 */
export function containerReadings(
  devices: readonly SeenDevice[],
  specs: ReadonlyMap<string, MetricSpec>,
  sources: PodSources & { readonly uidOf?: UidOf },
  counters: ContainerCounters,
  nowMs: number,
): readonly ContainerReadings[] {
  const result: ContainerReadings[] = [];
  const awaited = new Map<string, number>();
  for (const { state, readFromMs } of devices) {
    const [holder, ...others] = oneAllocationPerContainer(state.holders);
    if (holder === undefined) continue;
    if (others.length > 0) {
      result.push(...sharedReadings(state, sources));
      continue;
    }
    const own = counters.of(holder, state.key, nowMs, sources.uidOf?.(holder));
    own.look(state.device, readFromMs);
    const { family } = state.device;
    if (!own.isCounting) awaited.set(family, Math.max(own.seenFromMs, awaited.get(family) ?? 0));
    result.push(owned(holder, state, ownReadings(state.readings, specs, own)));
  }
  counters.sweep(awaited);
  return result.filter(({ readings }) => readings.length > 0);
}

/** A counter starts when the container was first seen. Before it has a base, the container has no reading of it. */
function ownReadings(readings: readonly Reading[], specs: ReadonlyMap<string, MetricSpec>, own: HolderCounters): readonly Reading[] {
  const result: Reading[] = [];
  for (const reading of readings) {
    const spec = specs.get(reading.metric);
    if (spec?.container !== true) continue;
    if (spec.type !== 'counter') result.push(reading);
    else if (own.isCounting) result.push(withValue(reading, own.grownTo(seriesText(reading, spec), reading.value)));
  }
  return result;
}

const withValue = ({ metric, labels }: Reading, value: Value): Reading =>
  labels === undefined ? { metric, value } : { metric, labels, value };

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

function seriesText({ metric, labels }: Reading, spec: MetricSpec): string {
  return labels === undefined ? metric : `${metric}\u0000${spec.labels.map((name) => labels[name]).join('\u0000')}`;
}

function sharedReadings(state: SeenDevice['state'], sources: PodSources): readonly ContainerReadings[] {
  return [...useByHolder(state.holders, state.processes, sources)].map(([holder, { memoryUsedBytes, utilization }]) =>
    owned(holder, state, [
      ...(memoryUsedBytes === undefined ? [] : [{ metric: shared.memoryUsed.name, value: memoryUsedBytes }]),
      ...[...utilization].map(([engine, value]) => ({ metric: shared.utilization.name, labels: { engine }, value })),
    ]),
  );
}

function owned(holder: Allocation, state: SeenDevice['state'], readings: readonly Reading[]): ContainerReadings {
  const { namespace, pod, container, resource } = holder;
  return { namespace, pod, container, resource, device: state.device.id, readings };
}
