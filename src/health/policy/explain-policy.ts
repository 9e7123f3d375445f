import { formatDuration, millis } from '../../model/duration.ts';
import type { ConditionClass, ConditionSpec, Remedy, Severity } from '../../model/health.ts';
import { overrideFor } from './overrides.ts';
import { conditionPolicy, type HealthPolicy } from './policy.ts';

/** One condition as the reference page and `config print` show it. Durations are text. */
export interface PolicyRow {
  readonly family: string;
  /** `Type`, or `Type/instance` where the configuration names an instance. */
  readonly condition: string;
  readonly class: ConditionClass;
  readonly severity: Severity;
  readonly for: string;
  readonly recovery: string;
  /** Growth per window above which the condition holds; only for counters. */
  readonly threshold?: string;
  readonly enabled: boolean;
  readonly remedy: Remedy;
  readonly reasons: readonly string[];
  readonly meaning: string;
  readonly source: string;
  /** Fields that the configuration set. */
  readonly configured: readonly string[];
}

/**
 * Returns the whole policy table: first the conditions of every device, as family `*`; then each family's own conditions in the order
 * of declaration. Configured instances follow their type.
 */
export function explainPolicy(policy: HealthPolicy): readonly PolicyRow[] {
  const rows = policy.common.flatMap((spec) => rowsOf(policy, '*', spec));
  for (const [family, specs] of policy.specs) {
    for (const spec of specs.values()) {
      const isShared =
        policy.common.includes(spec) && ![...policy.overrides.keys()].some((key) => key.startsWith(`${family}.${spec.type}`));
      if (!isShared) rows.push(...rowsOf(policy, family, spec));
    }
  }
  return rows;
}

function rowsOf(policy: HealthPolicy, family: string, spec: ConditionSpec): readonly PolicyRow[] {
  const instances = configuredInstances(policy, family, spec.type);
  return [row(policy, family, spec), ...instances.map((instance) => row(policy, family, spec, instance))];
}

function configuredInstances(policy: HealthPolicy, family: string, type: string): readonly string[] {
  const found = new Set<string>();
  for (const key of policy.overrides.keys()) {
    for (const prefix of [`${family}.${type}/`, `*.${type}/`]) if (key.startsWith(prefix)) found.add(key.slice(prefix.length));
  }
  return [...found].sort();
}

function row(policy: HealthPolicy, family: string, spec: ConditionSpec, instance?: string): PolicyRow {
  const effective = conditionPolicy(policy, family, spec.type, instance);
  const { growth, windowMs } = effective.threshold;
  const configured = Object.keys(overrideFor(policy.overrides, family, spec.type, instance)).map((name) => FIELD_NAMES[name] ?? name);
  return {
    family,
    condition: instance === undefined ? spec.type : `${spec.type}/${instance}`,
    class: spec.class,
    severity: effective.severity,
    for: formatDuration(millis(effective.forMs)),
    recovery: formatDuration(millis(effective.recoveryMs)),
    ...(spec.class === 'rate' ? { threshold: `> ${growth} per ${formatDuration(millis(windowMs))}` } : {}),
    enabled: effective.enabled,
    remedy: spec.remedy,
    reasons: spec.reasons,
    meaning: spec.meaning,
    source: spec.source,
    configured: [...new Set(configured)],
  };
}

const FIELD_NAMES: Readonly<Record<string, string>> = {
  forMs: 'for',
  recoveryMs: 'recovery',
  growth: 'threshold',
  windowMs: 'threshold',
};
