import { policyTable } from '../../src/cli/config.ts';
import { explainPolicy } from '../../src/health/policy/explain-policy.ts';
import type { HealthPolicy } from '../../src/health/policy/policy.ts';
import { cell } from './markdown.ts';

/** Renders the general settings of the default policy as a list. */
export function policyReference(policy: HealthPolicy): string {
  return policyTable(policy)
    .filter(([name]) => !name.startsWith('health.conditions.'))
    .map(([name, value]) => `- \`${name}\`: ${value}\n`)
    .join('');
}

/** Renders the defaults of the conditions of a family as a table. The family `*` means every family. */
export function conditionReference(policy: HealthPolicy, family: string): string {
  const rows = explainPolicy(policy)
    .filter((row) => row.family === family)
    .map((row) => {
      const cells = [row.class, row.severity, row.for, row.recovery, row.threshold ?? '', row.remedy];
      return `| \`${family}.${row.condition}\` | ${cells.map(cell).join(' | ')} |\n`;
    });
  return `| Condition | Class | Severity | For | Recovery | Threshold | Remedy |\n|---|---|---|---|---|---|---|\n${rows.join('')}`;
}
