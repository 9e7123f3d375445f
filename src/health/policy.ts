import { hours, minutes, parseDuration } from '../model/duration.ts';
import type { ConditionClass, ConditionSpec, Remedy, Severity } from '../model/health.ts';
import { type IgnoreRule, ignoreRule } from './ignore.ts';
import { OWN_CONDITIONS } from './own-conditions.ts';
import type { ConditionOverride, HealthConfig } from './policy-config.ts';

/** Declared conditions of each family. */
export type SpecsByFamily = Readonly<Record<string, readonly ConditionSpec[]>>;

export interface RateThreshold {
  readonly growth: number;
  readonly windowMs: number;
}

/** What holds for one condition of one family after all overrides. */
export interface ConditionPolicy {
  readonly class: ConditionClass;
  readonly severity: Severity;
  /** The configuration names the severity, which then outranks a finding's own. */
  readonly severityConfigured: boolean;
  readonly forMs: number;
  readonly recoveryMs: number;
  readonly threshold: RateThreshold;
  readonly enabled: boolean;
  readonly remedy: Remedy;
  readonly toldOnce: boolean;
}

export interface FlappingPolicy {
  readonly count: number;
  readonly windowMs: number;
  readonly quietMs: number;
}

interface Override {
  readonly severity?: Severity;
  readonly forMs?: number;
  readonly recoveryMs?: number;
  readonly growth?: number;
  readonly windowMs?: number;
  readonly enabled?: boolean;
}

/** Everything the engine decides by. Immutable. */
export interface HealthPolicy {
  /** What the kubelet is told of a device whose state is unknown. */
  readonly unknown: 'healthy' | 'unhealthy';
  /** Age of the last reading from which a device is unknown. */
  readonly staleAfterMs: number;
  /** How long a device that nobody reports any more is remembered. */
  readonly missingRetentionMs: number;
  readonly flapping: FlappingPolicy;
  readonly ignore: readonly IgnoreRule[];
  /** Declarations by family, then type; the conditions every device can have are under each family. */
  readonly specs: ReadonlyMap<string, ReadonlyMap<string, ConditionSpec>>;
  /** Keyed as in the configuration. */
  readonly overrides: ReadonlyMap<string, Override>;
}

/**
 * Unknown means unhealthy by default: a driver that has not answered for a minute will not serve a new pod either, and
 * the kubelet leaves running containers alone.
 */
export const POLICY_DEFAULTS = {
  unknown: 'unhealthy',
  staleAfterMs: minutes(1),
  missingRetentionMs: hours(24),
  flapping: { count: 3, windowMs: hours(12), quietMs: hours(1) },
  threshold: { growth: 0, windowMs: hours(1) },
} as const;

export interface PolicyInput {
  readonly specs: SpecsByFamily;
  readonly config?: HealthConfig;
  readonly missingRetentionMs?: number;
}

/** Builds the policy. What cannot be understood or names no condition is left out and told in `problems`, one sentence each. */
export function createPolicy(input: PolicyInput): { readonly policy: HealthPolicy; readonly problems: readonly string[] } {
  const config = input.config ?? {};
  const problems: string[] = [];
  const length = (text: string | undefined, fallback: number, where: string): number => {
    const parsed = text === undefined ? fallback : parseDuration(text);
    if (parsed === undefined) problems.push(`health.${where}: '${text}' is not a duration such as 30s or 1m30s`);
    return parsed ?? fallback;
  };
  const specs = specMaps(input.specs);
  const flapping = {
    count: config.flapping?.count ?? POLICY_DEFAULTS.flapping.count,
    windowMs: length(config.flapping?.window, POLICY_DEFAULTS.flapping.windowMs, 'flapping.window'),
    quietMs: length(config.flapping?.quiet, POLICY_DEFAULTS.flapping.quietMs, 'flapping.quiet'),
  };
  const policy: HealthPolicy = {
    unknown: config.unknown ?? POLICY_DEFAULTS.unknown,
    staleAfterMs: length(config['stale-after'], POLICY_DEFAULTS.staleAfterMs, 'stale-after'),
    missingRetentionMs: input.missingRetentionMs ?? POLICY_DEFAULTS.missingRetentionMs,
    flapping,
    ignore: ignoreRules(config, problems),
    specs,
    overrides: overridesOf(config, specs, problems),
  };
  return { policy, problems };
}

function specMaps(specs: SpecsByFamily): ReadonlyMap<string, ReadonlyMap<string, ConditionSpec>> {
  const byType = (list: readonly ConditionSpec[]): ReadonlyMap<string, ConditionSpec> =>
    new Map([...OWN_CONDITIONS, ...list].map((spec) => [spec.type, spec]));
  return new Map(Object.entries(specs).map(([family, list]) => [family, byType(list)]));
}

function ignoreRules(config: HealthConfig, problems: string[]): readonly IgnoreRule[] {
  const rules: IgnoreRule[] = [];
  for (const [index, entry] of (config.ignore ?? []).entries()) {
    const rule = ignoreRule(entry);
    if (rule === undefined) problems.push(`health.ignore[${index}].until: '${entry.until}' is not a date such as 2030-01-31`);
    else rules.push(rule);
  }
  return rules;
}

const KEY = /^(\*|[^.]+)\.([^/]+)(?:\/.+)?$/;

function overridesOf(config: HealthConfig, specs: HealthPolicy['specs'], problems: string[]): ReadonlyMap<string, Override> {
  const overrides = new Map<string, Override>();
  for (const [key, entry] of Object.entries(config.conditions ?? {})) {
    const [, family = '', type = ''] = KEY.exec(key) ?? [];
    const families = family === '*' ? [...specs.values()] : [specs.get(family)];
    const known = families.some((types) => types?.has(type)) || (family === '*' && OWN_CONDITIONS.some((spec) => spec.type === type));
    if (!known) problems.push(`health.conditions: no family has a condition '${key}'`);
    else overrides.set(key, parseOverride(key, entry, problems));
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
  return {
    ...optional('severity', entry.severity),
    ...optional('forMs', duration(entry.for, 'for')),
    ...optional('recoveryMs', duration(entry.recovery, 'recovery')),
    ...optional('growth', entry.threshold?.growth),
    ...optional('windowMs', duration(entry.threshold?.window, 'threshold.window')),
    ...optional('enabled', entry.enabled),
  };
}

function optional<K extends string, V>(key: K, value: V | undefined): { readonly [P in K]?: V } {
  return value === undefined ? {} : ({ [key]: value } as { readonly [P in K]?: V });
}

/** What the configuration changes for one condition; the narrower key wins, field by field. */
export function overrideFor(policy: HealthPolicy, family: string, type: string, instance?: string): Override {
  if (policy.overrides.size === 0) return {};
  const keys = [`*.${type}`, `${family}.${type}`];
  if (instance !== undefined) keys.splice(1, 0, `*.${type}/${instance}`);
  if (instance !== undefined) keys.push(`${family}.${type}/${instance}`);
  return Object.assign({}, ...keys.map((key) => policy.overrides.get(key)));
}

/** A type that no family declared is a bug of that family: it is recorded and takes nothing out. */
const UNDECLARED: ConditionSpec = {
  type: '',
  class: 'self-clearing',
  severity: 'info',
  reasons: [],
  meaning: '',
  remedy: 'inspect',
  source: '',
};

/** The effective policy of one condition. */
export function conditionPolicy(policy: HealthPolicy, family: string, type: string, instance?: string): ConditionPolicy {
  const spec = policy.specs.get(family)?.get(type) ?? OWN_CONDITIONS.find((own) => own.type === type) ?? UNDECLARED;
  const override = overrideFor(policy, family, type, instance);
  const threshold = spec.threshold ?? POLICY_DEFAULTS.threshold;
  return {
    class: spec.class,
    severity: override.severity ?? spec.severity,
    severityConfigured: override.severity !== undefined,
    forMs: override.forMs ?? spec.forMs ?? 0,
    recoveryMs: override.recoveryMs ?? spec.recoveryMs ?? 0,
    threshold: { growth: override.growth ?? threshold.growth, windowMs: override.windowMs ?? threshold.windowMs },
    enabled: override.enabled ?? true,
    remedy: spec.remedy,
    toldOnce: spec.toldOnce ?? false,
  };
}
