import { parseDuration } from '../../model/duration.ts';
import type { ConditionSpec, Severity } from '../../model/health.ts';
import type { ConditionOverride, HealthConfig } from './policy-config.ts';

/** Condition declarations, keyed by family and then by type. */
export type SpecMaps = ReadonlyMap<string, ReadonlyMap<string, ConditionSpec>>;

/** Overrides keyed as in the configuration. */
export type Overrides = ReadonlyMap<string, Override>;

/** Parsed override of one condition. */
export interface Override {
  readonly severity?: Severity;
  readonly forMs?: number;
  readonly recoveryMs?: number;
  readonly growth?: number;
  readonly windowMs?: number;
  readonly enabled?: boolean;
}

const KEY = /^(\*|[^.]+)\.([^/]+)(?:\/.+)?$/;

/** Parses the overrides of the configuration. `common`: the conditions that every device can have. An unknown condition or a bad duration is reported in `problems` and left out. */
export function overridesOf(config: HealthConfig, specs: SpecMaps, common: readonly ConditionSpec[], problems: string[]): Overrides {
  const overrides = new Map<string, Override>();
  for (const [key, entry] of Object.entries(config.conditions ?? {})) {
    const [, family = '', type = ''] = KEY.exec(key) ?? [];
    const families = family === '*' ? [...specs.values()] : [specs.get(family)];
    const own = family === '*' ? common.filter((spec) => spec.type === type) : [];
    const known = [...families.map((types) => types?.get(type)), ...own].filter((spec) => spec !== undefined);
    if (known.length === 0) problems.push(`health.conditions: no enabled family has a condition '${key}'`);
    else overrides.set(key, parseOverride(key, entry, problems));
    if (entry.threshold !== undefined && known.length > 0 && !known.some((spec) => spec.class === 'rate'))
      problems.push(`health.conditions: '${key}' is not judged by growth, so its threshold has no effect`);
  }
  return overrides;
}

function parseOverride(key: string, entry: ConditionOverride, problems: string[]): Override {
  const duration = (text: string | undefined, field: string): number | undefined => {
    const parsed = text === undefined ? undefined : parseDuration(text);
    if (text !== undefined && parsed === undefined) {
      problems.push(`health.conditions: '${text}' as ${field} of '${key}' is not a duration such as 30s or 1m30s`);
    }
    return parsed;
  };
  const windowMs = duration(entry.threshold?.window, 'threshold.window');
  if (windowMs === 0) problems.push(`health.conditions: threshold.window of '${key}' must be longer than 0s`);
  return {
    ...optional('severity', entry.severity),
    ...optional('forMs', duration(entry.for, 'for')),
    ...optional('recoveryMs', duration(entry.recovery, 'recovery')),
    ...optional('growth', entry.threshold?.growth),
    ...optional('windowMs', windowMs === 0 ? undefined : windowMs),
    ...optional('enabled', entry.enabled),
  };
}

function optional<K extends string, V>(key: K, value: V | undefined): { readonly [P in K]?: V } {
  return value === undefined ? {} : ({ [key]: value } as { readonly [P in K]?: V });
}

/** Merges the overrides that apply to one condition. The narrower key wins, field by field. */
export function overrideFor(overrides: Overrides, family: string, type: string, instance?: string | undefined): Override {
  if (overrides.size === 0) return {};
  const keys = [`*.${type}`, `${family}.${type}`];
  if (instance !== undefined) keys.splice(1, 0, `*.${type}/${instance}`);
  if (instance !== undefined) keys.push(`${family}.${type}/${instance}`);
  return Object.assign({}, ...keys.map((key) => overrides.get(key)));
}
