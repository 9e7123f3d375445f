import type { MetricSpec } from '../../model/metric.ts';
import { Readings } from '../../model/readings.ts';
import type { ContainerUsage, DeviceUsage, Usage } from '../../model/usage.ts';
import { joinLabels, type LabelText, labelText } from '../page/labels.ts';
import type { Page } from '../page/page.ts';
import type { Steps } from '../page/steps.ts';
import type { HolderText } from './container-metrics.ts';
import { addReadings, CONTAINER_LABELS, type WrittenMetrics } from './reading-metrics.ts';

const ACCOUNT = 'Account of the agent, kept over its restarts.';

/** Totals of one container on one device. The label lists are complete: no `device` is added. */
export const containerUsageMetrics = {
  allocated: total(
    'container_device_allocated_seconds_total',
    'Time for which a container held a device, or a pod used it without holding it.',
    ACCOUNT,
  ),
  share: total(
    'container_device_share_seconds_total',
    'Time for which a container held a device, times its share of the device.',
    `${ACCOUNT} The sum over the containers of a device is the time for which the device was held.`,
  ),
  delegated: total(
    'container_device_delegated_seconds_total',
    'Time for which a container held a device for the pods that used it.',
    `${ACCOUNT} The share of this time is theirs.`,
  ),
  busy: total('container_device_busy_seconds_total', 'Time for which an engine worked while a container held the device.', ACCOUNT, [
    'engine',
  ]),
  idle: total('container_device_idle_seconds_total', 'Time for which a container held a device that did nothing.', ACCOUNT),
  unobserved: total(
    'container_device_unobserved_seconds_total',
    'Time for which a container held a device and no reading shows what the device did.',
    ACCOUNT,
  ),
  energyEstimated: total(
    'container_device_energy_estimated_joules_total',
    'Estimated energy: a part of that of a shared device, or power times time where the driver counts no energy.',
    `${ACCOUNT} The growth of the counter of the device, divided by the load of each container, or by share when none worked.`,
  ),
  memory: total('container_device_memory_byte_seconds_total', 'Integral of the device memory in use.', ACCOUNT),
  lastActive: gauge('container_device_last_active_timestamp_seconds', 'When a read last showed work of the container.', ACCOUNT),
  ended: gauge(
    'container_device_ended_timestamp_seconds',
    'When a container was last seen with a device. Only for a container that ended.',
    `${ACCOUNT} The totals of a container are exported for three minutes after its end, and for three refreshes at least.`,
  ),
} as const satisfies Readonly<Record<string, MetricSpec>>;

/** Totals of one device. */
export const deviceUsageMetrics = {
  allocated: deviceTotal(
    'device_allocated_seconds_total',
    'Time for which at least one container held the device, or a pod used it without holding it.',
  ),
  unallocated: deviceTotal('device_unallocated_seconds_total', 'Time for which no container held the device and no pod used it.'),
  unhealthy: deviceTotal('device_unhealthy_seconds_total', 'Time for which the verdict was unhealthy, with or without a holder.'),
  unobserved: deviceTotal('device_unobserved_seconds_total', 'Time for which the holder of the device was unknown.'),
} as const satisfies Readonly<Record<string, MetricSpec>>;

/** Adds the totals of all containers and devices, with the counters of containers. `hasZeros`: also those that are 0. */
export function* addUsage(
  page: Page,
  { containers, devices }: Usage,
  counters: WrittenMetrics,
  holderText: HolderText,
  hasZeros = true,
): Steps<void> {
  for (const [labels, one] of bySeries(containers, holderText)) {
    page.block(`account ${labels}`, [], () => addContainer(page, one, labels));
    const own = one.counters ?? [];
    addReadings(page, counters, labels, Readings.of(hasZeros ? own : own.filter(({ value }) => Number(value) !== 0)));
    if (page.takesStep()) yield;
  }
  for (const one of devices) addDevice(page, one);
}

/** Of several accounts with the same labels, the one that goes on, or else the one that ended last. */
function bySeries(containers: readonly ContainerUsage[], holderText: HolderText): ReadonlyMap<LabelText, ContainerUsage> {
  const found = new Map<LabelText, ContainerUsage>();
  for (const one of containers) {
    const labels = labelsOf(one, holderText);
    if (found.get(labels)?.endedAtMs !== undefined || !found.has(labels)) found.set(labels, one);
  }
  // In the order of the page.
  return new Map([...found].sort(([a], [b]) => (a < b ? -1 : 1)));
}

function labelsOf(one: ContainerUsage, holderText: HolderText): LabelText {
  return joinLabels(holderText(one), labelText({ resource: one.resource, device: idOf(one.device) }));
}

const idOf = (key: string): string => key.slice(key.indexOf('/') + 1);

function addContainer(page: Page, one: ContainerUsage, labels: LabelText): void {
  // Prometheus sees the growth of a counter only from its first sample on, so that sample has to be 0.
  const add = (spec: MetricSpec, value: number | undefined, last?: LabelText): void => {
    if (value !== undefined) page.add(spec, labels, one.isNew === true ? 0 : value, last);
  };
  const { allocated, share, delegated, busy, idle, unobserved, energyEstimated, memory, lastActive, ended } = containerUsageMetrics;
  add(allocated, one.allocatedSeconds);
  add(share, one.shareSeconds);
  add(delegated, one.delegatedSeconds);
  for (const engine in one.busySeconds) add(busy, one.busySeconds[engine], labelText({ engine }));
  add(idle, one.idleSeconds);
  add(unobserved, one.unobservedSeconds);
  add(energyEstimated, one.energyEstimatedJoules);
  add(memory, one.memoryByteSeconds);
  if (one.lastActiveMs !== undefined) page.add(lastActive, labels, one.lastActiveMs / 1_000);
  if (one.endedAtMs !== undefined) page.add(ended, labels, one.endedAtMs / 1_000);
}

function addDevice(page: Page, { device, ...one }: DeviceUsage): void {
  const label = labelText({ device: idOf(device) });
  page.add(deviceUsageMetrics.allocated, label, one.allocatedSeconds);
  page.add(deviceUsageMetrics.unallocated, label, one.unallocatedSeconds);
  page.add(deviceUsageMetrics.unhealthy, label, one.unhealthySeconds);
  page.add(deviceUsageMetrics.unobserved, label, one.unobservedSeconds);
}

function total(name: string, help: string, source: string, labels: readonly string[] = []): MetricSpec {
  return { name, type: 'counter', help: `${help} 0 during the first minute.`, labels: [...CONTAINER_LABELS, ...labels], source };
}

function gauge(name: string, help: string, source: string): MetricSpec {
  return { name, type: 'gauge', help, labels: CONTAINER_LABELS, source };
}

function deviceTotal(name: string, help: string): MetricSpec {
  return { name, type: 'counter', help, labels: [], source: 'Count of the agent since its start.' };
}
