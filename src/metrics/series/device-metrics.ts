import type { Device } from '../../model/device.ts';
import { type ActiveCondition, HEALTH_STATES, remedyNow, type Verdict } from '../../model/health.ts';
import type { MetricSpec } from '../../model/metric.ts';
import { memoizedBy } from '../../model/readings.ts';
import type { DeviceState } from '../../model/snapshot.ts';
import { joinLabels, type LabelText, labelText } from '../page/labels.ts';
import type { Page } from '../page/page.ts';

const CONDITION_LABELS = ['condition', 'class', 'part', 'reason', 'severity', 'remedy', 'cause'];

/** Metrics of every device, independent of its family. */
export const deviceMetrics = {
  info: gauge(
    'device_info',
    'Identity of a device; always 1.',
    [
      'family',
      'kind',
      'parent',
      'model',
      'product',
      'vendor',
      'uuid',
      'serial',
      'pci_address',
      'numa_node',
      'driver',
      'driver_version',
      'firmware',
    ],
    'Probe. A label is left out where the device does not report it.',
  ),
  present: gauge(
    'device_present',
    '1 while the device is there, 0 while it is missing.',
    [],
    'Probe. Absent while the probe cannot read; a missing device is listed until the configured retention ends.',
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
    'Verdict. `part` names the port, link or error code concerned, where a device can have the condition several times. `cause` names the condition of which this one is a consequence. `remedy` is `verify` while no reading shows whether the condition still holds, and else `none` while it recovers.',
  ),
  conditionSince: gauge(
    'device_health_condition_since_timestamp_seconds',
    'When a condition began.',
    ['condition', 'part'],
    'Verdict. A condition that counts only after a time began before the verdict changed.',
  ),
  ignored: gauge(
    'device_health_condition_ignored',
    '1 while a condition holds that the configuration ignores on this device.',
    CONDITION_LABELS,
    'Verdict.',
  ),
  unverifiedSince: gauge(
    'device_health_condition_unverified_since_timestamp_seconds',
    'Since when no reading shows whether a condition still holds.',
    ['condition', 'part'],
    'Verdict. Absent while readings show it.',
  ),
  unchecked: gauge(
    'device_health_unchecked',
    '1 while no read has checked a fatal condition of the device.',
    ['condition', 'part'],
    'Verdict. The family found that the device can have the condition, and could not read its source.',
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

const STATE_LABELS = HEALTH_STATES.toSorted().map((state) => [state, labelText({ state })] as const);

/** Adds the series of one device's identity and verdict, but not its readings. */
export function addDevice(page: Page, { key, device, missingSinceMs, stale, verdict, readAtMs }: DeviceState): void {
  const label = deviceLabel(device);
  page.block(`device ${key}`, [device, missingSinceMs, stale, verdict], () => {
    page.add(deviceMetrics.info, joinLabels(label, identityLabels(device)), 1);
    if (missingSinceMs !== undefined) page.add(deviceMetrics.present, label, 0);
    else if (!stale) page.add(deviceMetrics.present, label, 1);
    addVerdict(page, verdict, label);
  });
  page.add(deviceMetrics.lastRead, label, readAtMs / 1_000);
}

const deviceLabel = memoizedBy(({ id }: Device) => labelText({ device: id }));

function addVerdict(page: Page, verdict: Verdict, label: LabelText): void {
  const { state, sinceMs, transitions, conditions, ignored = [], unchecked = [] } = verdict;
  if (state !== 'unknown') page.add(deviceMetrics.healthy, label, state === 'unhealthy' ? 0 : 1);
  if (sinceMs > 0) page.add(deviceMetrics.healthSince, label, sinceMs / 1_000);
  for (const [one, labels] of STATE_LABELS) {
    page.add(deviceMetrics.health, label, one === state ? 1 : 0, labels);
    // Export 0 too: Prometheus cannot see an increase when a counter first appears with the value 1.
    if (transitions !== undefined) page.add(deviceMetrics.transitions, label, transitions[one] ?? 0, labels);
  }
  for (const condition of conditions) {
    const { type, instance, unverifiedSinceMs } = condition;
    page.add(deviceMetrics.condition, joinLabels(label, conditionLabels(condition)), 1);
    const name = joinLabels(label, labelText({ condition: type, part: instance }));
    page.add(deviceMetrics.conditionSince, name, condition.sinceMs / 1_000);
    if (unverifiedSinceMs !== undefined) page.add(deviceMetrics.unverifiedSince, name, unverifiedSinceMs / 1_000);
  }
  for (const key of unchecked) {
    const [condition, ...part] = key.split('/');
    page.add(deviceMetrics.unchecked, joinLabels(label, labelText({ condition, part: part.join('/') || undefined })), 1);
  }
  for (const condition of ignored) page.add(deviceMetrics.ignored, joinLabels(label, conditionLabels(condition)), 1);
}

/** Alerts select by the remedy: those of a condition that ended would otherwise begin after its end. */
function conditionLabels(condition: ActiveCondition): LabelText {
  const { type, class: conditionClass, instance, reason, severity, cause, unverifiedSinceMs } = condition;
  const now = remedyNow(condition);
  const remedy = now === 'none' || unverifiedSinceMs === undefined ? now : 'verify';
  return labelText({ condition: type, class: conditionClass, part: instance, reason, severity, remedy, cause });
}

const identityLabels = memoizedBy((device: Device) =>
  labelText({
    family: device.family,
    kind: device.kind,
    parent: device.parent,
    model: device.model,
    product: device.product,
    vendor: device.vendor,
    uuid: device.uuid,
    serial: device.serial,
    pci_address: device.pciAddress,
    numa_node: device.numaNode,
    driver: device.driver,
    driver_version: device.driverVersion,
    firmware: device.firmware,
  }),
);

function gauge(name: string, help: string, labels: readonly string[], source: string): MetricSpec {
  return { name, type: 'gauge', help, labels, source };
}
