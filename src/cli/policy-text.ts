import { explainPolicy, type PolicyRow } from '../health/policy/explain-policy.ts';
import type { HealthPolicy } from '../health/policy/policy.ts';
import { formatDuration, millis } from '../model/duration.ts';

/** The health policy that holds as comment lines of a YAML file, which change nothing when they are read back. */
export function policyComment(policy: HealthPolicy): string {
  const lines = [...generalRows(policy), ...conditionRows(policy)].map(([name, value]) => `#   ${name}: ${value}`);
  return `# The health policy that holds, defaults included:\n${lines.join('\n')}\n`;
}

/** Rows of name, value and origin. */
export function policyTable(policy: HealthPolicy): (readonly [string, string, string])[] {
  return [...generalRows(policy), ...conditionRows(policy)];
}

/** For programs. */
export function policyJson(policy: HealthPolicy): object {
  return { ...Object.fromEntries(generalRows(policy).map(([name, value]) => [name, value])), conditions: explainPolicy(policy) };
}

/** Section of the reference page: the policy that holds without a configuration. */
export function policyReference(policy: HealthPolicy): string {
  const general = generalRows(policy).map(([name, value]) => `- \`${name}\`: ${value}`);
  const rows = explainPolicy(policy).map((row) => {
    const cells = [row.class, row.severity, row.for, row.recovery, row.threshold ?? '', row.remedy, row.source];
    return `| \`${keyOf(row)}\` | ${cells.map(cell).join(' | ')} |`;
  });
  return `## The policy without a configuration

${general.join('\n')}

Conditions by the key that \`health.conditions\` in the configuration file knows them by, family \`*\` being every family. A finding may
bring its own severity, as an Xid does; a severity in the configuration outranks it. It may bring its own remedy too, as a disabled port does.

| Condition | Class | Severity | For | Recovery | Threshold | Remedy | Source |
|---|---|---|---|---|---|---|---|
${rows.join('\n')}
`;
}

function generalRows({ unknown, staleAfterMs, missingRetentionMs, flapping }: HealthPolicy): (readonly [string, string, string])[] {
  const duration = (ms: number): string => formatDuration(millis(ms));
  return [
    ['health.unknown', `a device whose health is unknown is ${unknown} to the kubelet`, ''],
    ['health.stale-after', `unknown from a last reading ${duration(staleAfterMs)} old`, ''],
    ['device.missing-retention', `a device that is gone is listed for ${duration(missingRetentionMs)}`, ''],
    ['health.flapping', `${flapping.count} times within ${duration(flapping.windowMs)}, until ${duration(flapping.quietMs)} quiet`, ''],
  ];
}

function conditionRows(policy: HealthPolicy): (readonly [string, string, string])[] {
  return explainPolicy(policy).map((row) => [`health.conditions.${keyOf(row)}`, inWords(row), originOf(row)]);
}

const keyOf = ({ family, condition }: PolicyRow): string => `${family}.${condition}`;

function inWords(row: PolicyRow): string {
  if (!row.enabled) return 'does not count';
  const threshold = row.threshold === undefined ? '' : `, growth ${row.threshold}`;
  return `${row.severity}, ${row.class}${threshold}, for ${row.for}, recovery ${row.recovery}, remedy ${row.remedy}`;
}

function originOf({ configured }: PolicyRow): string {
  return configured.length === 0 ? 'default' : `${configured.join(', ')} from the file, else default`;
}

const cell = (text: string): string => text.replaceAll('<', '&lt;').replaceAll('|', '\\|').replaceAll('\n', ' ');
