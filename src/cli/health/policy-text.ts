import { explainPolicy, type PolicyRow } from '../../health/policy/explain-policy.ts';
import type { HealthPolicy } from '../../health/policy/policy.ts';
import { formatDuration, millis } from '../../model/duration.ts';
import { visible } from '../../model/one-line.ts';

/** Formats the effective health policy as comment lines of a YAML file, which have no effect when the file is read. */
export function policyComment(policy: HealthPolicy): string {
  const lines = [...generalRows(policy), ...conditionRows(policy)].map(([name, value]) => visible(`#   ${name}: ${value}`));
  return `# The effective health policy, including defaults:\n${lines.join('\n')}\n`;
}

/** Returns rows of name, value and origin. */
export function policyTable(policy: HealthPolicy): (readonly [string, string, string])[] {
  return [...generalRows(policy), ...conditionRows(policy)];
}

/** Returns the policy as a JSON value. */
export function policyJson(policy: HealthPolicy): object {
  return { ...Object.fromEntries(generalRows(policy).map(([name, value]) => [name, value])), conditions: explainPolicy(policy) };
}

function generalRows({
  unknown,
  staleAfterMs,
  missingRetentionMs,
  flapping,
  probation,
}: HealthPolicy): (readonly [string, string, string])[] {
  const duration = (ms: number): string => formatDuration(millis(ms));
  return [
    ['health.unknown', `the kubelet sees a device with unknown health as ${unknown}`, ''],
    ['health.stale-after', `health is unknown when the last reading is ${duration(staleAfterMs)} old`, ''],
    ['device.missing-retention', `a missing device is listed for ${duration(missingRetentionMs)}`, ''],
    [
      'health.flapping',
      `a condition flaps if it begins ${flapping.count} times within ${duration(flapping.windowMs)}, until it is quiet for ${duration(flapping.quietMs)}`,
      '',
    ],
    [
      'health.probation',
      `a device that a reset or a reboot returned is on probation until it was busy for ${duration(probation.busyMs)} without a fault; the kubelet sees it as ${probation.kubelet}`,
      '',
    ],
  ];
}

function conditionRows(policy: HealthPolicy): (readonly [string, string, string])[] {
  return explainPolicy(policy).map((row) => [`health.conditions.${keyOf(row)}`, summaryOf(row), originOf(row)]);
}

const keyOf = ({ family, condition }: PolicyRow): string => `${family}.${condition}`;

function summaryOf(row: PolicyRow): string {
  if (!row.enabled) return 'does not count';
  const threshold = row.threshold === undefined ? '' : `, growth ${row.threshold}`;
  return `${row.severity}, ${row.class}${threshold}, for ${row.for}, recovery ${row.recovery}, remedy ${row.remedy}`;
}

function originOf({ configured }: PolicyRow): string {
  return configured.length === 0 ? 'default' : `${configured.join(', ')} from the file, otherwise default`;
}
