import type { Device } from '../model/device.ts';
import { type ActiveCondition, HEALTH_STATES, type Verdict } from '../model/health.ts';
import type { MetricSpec } from '../model/metric.ts';
import type { DeviceState } from '../model/snapshot.ts';
import { known, type LabelText, labelText } from './labels.ts';
import type { SeriesPage } from './series-page.ts';

const CONDITION_LABELS = ['condition', 'part', 'reason', 'severity', 'remedy'];

/** What every device has, whatever its family. */
export const deviceMetrics = {
  info: gauge(
    'device_info',
    'Identity of a device; always 1.',
    ['family', 'kind', 'parent', 'model', 'vendor', 'uuid', 'serial', 'pci_address', 'numa_node', 'driver', 'firmware'],
    'Probe. A label is left out where the device does not tell it.',
  ),
  present: gauge(
    'device_present',
    '1 while the device is there, 0 while it is missing.',
    [],
    'Probe. Absent while the probe cannot look; a missing device is listed until the configured retention ends.',
  ),
  healthy: gauge(
    'device_healthy',
    '1 while the device is healthy or degraded, 0 while it is unhealthy.',
    [],
    'Verdict. Absent while it is unknown.',
  ),
  health: gauge('device_health', 'Verdict on the device: 1 for the state that holds, 0 for the others.', ['state'], 'Verdict.'),
  healthSince: gauge('device_health_since_timestamp_seconds', 'When the verdict took its present state.', [], 'Verdict.'),
  condition: gauge(
    'device_health_condition',
    '1 while a condition holds.',
    CONDITION_LABELS,
    'Verdict. `part` names the port, link or error code concerned, where a device can have the condition several times.',
  ),
  ignored: gauge(
    'device_health_condition_ignored',
    '1 while a condition holds that the configuration tells not to count on this device.',
    CONDITION_LABELS,
    'Verdict.',
  ),
  transitions: {
    name: 'device_health_transitions_total',
    type: 'counter',
    help: 'How often the verdict took a state since the machine booted.',
    labels: ['state'],
    source: 'Verdict.',
  },
  lastRead: gauge(
    'device_last_read_timestamp_seconds',
    'When the device was last read.',
    [],
    'Probe. Age of the readings: `time()` minus this.',
  ),
} as const satisfies Readonly<Record<string, MetricSpec>>;

const STATE_LABELS = HEALTH_STATES.map((state) => [state, labelText({ state })] as const);

/** What the series of {@link addDevice} are made of, besides the labels. */
export type DeviceStanding = Pick<DeviceState, 'missingSinceMs' | 'stale' | 'verdict'>;

/** Series of one device that come from its identity, whose labels are given, and its verdict, not from its readings. */
export function addDevice(page: SeriesPage, state: DeviceStanding, label: LabelText, identity: LabelText): void {
  page.add(deviceMetrics.info, label, 1, identity);
  if (state.missingSinceMs !== undefined) page.add(deviceMetrics.present, label, 0);
  else if (!state.stale) page.add(deviceMetrics.present, label, 1);
  addVerdict(page, state.verdict, label);
}

/** Apart from the others, since it differs each time. */
export function addLastRead(page: SeriesPage, { readAtMs }: Pick<DeviceState, 'readAtMs'>, label: LabelText): void {
  page.add(deviceMetrics.lastRead, label, readAtMs / 1_000);
}

function addVerdict(page: SeriesPage, verdict: Verdict, label: LabelText): void {
  if (verdict.state !== 'unknown') page.add(deviceMetrics.healthy, label, verdict.state === 'unhealthy' ? 0 : 1);
  for (const [state, own] of STATE_LABELS) page.add(deviceMetrics.health, label, state === verdict.state ? 1 : 0, own);
  if (verdict.sinceMs > 0) page.add(deviceMetrics.healthSince, label, verdict.sinceMs / 1_000);
  // From 0 on: of a counter that comes into being at 1 nobody can see that it grew.
  const { transitions } = verdict;
  if (transitions !== undefined)
    for (const [state, own] of STATE_LABELS) page.add(deviceMetrics.transitions, label, transitions[state] ?? 0, own);
  for (const condition of verdict.conditions) page.add(deviceMetrics.condition, label, 1, conditionLabels(condition));
  for (const condition of verdict.ignored ?? []) page.add(deviceMetrics.ignored, label, 1, conditionLabels(condition));
}

function conditionLabels({ type, instance, reason, severity, remedy }: ActiveCondition): LabelText {
  return labelText({ condition: type, part: known(instance), reason, severity, remedy });
}

export function identityLabels(device: Device): LabelText {
  return labelText({
    family: device.family,
    kind: device.kind,
    parent: known(device.parent),
    model: known(device.model),
    vendor: known(device.vendor),
    uuid: known(device.uuid),
    serial: known(device.serial),
    pci_address: known(device.pciAddress),
    numa_node: device.numaNode,
    driver: known(device.driver),
    firmware: known(device.firmware),
  });
}

function gauge(name: string, help: string, labels: readonly string[], source: string): MetricSpec {
  return { name, type: 'gauge', help, labels, source };
}
