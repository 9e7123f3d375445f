import type { Allocation } from '../model/allocation.ts';
import type { HeldRecord } from '../model/device-record.ts';
import type { MetricSpec } from '../model/metric.ts';
import { chooser, keptBy } from '../model/readings.ts';
import { shared } from '../model/shared-metrics.ts';
import type { ContainerReadings } from '../model/snapshot.ts';
import { type PodSources, useByHolder } from './processes.ts';

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
    owned(holder, state, [
      ...(memoryUsedBytes === undefined ? [] : [{ metric: shared.memoryUsed.name, value: memoryUsedBytes }]),
      ...[...(utilization ?? [])].map(([engine, value]) => ({ metric: shared.utilization.name, labels: { engine }, value })),
    ]),
  );
}

function owned(holder: Allocation, state: SeenDevice, readings: ContainerReadings['readings']): ContainerReadings {
  const { namespace, pod, container, resource } = holder;
  return { namespace, pod, container, resource, device: state.device.id, readings };
}
