import { formatDuration, hours, millis, minutes, parseDuration } from '../../model/duration.ts';
import type { ConditionClass, ConditionSpec, Remedy, Severity } from '../../model/health.ts';
import { type IgnoreRule, ignoreRule } from './ignore.ts';
import { type Overrides, overrideFor, overridesOf, type SpecMaps } from './overrides.ts';
import { OWN_CONDITIONS } from './own-conditions.ts';
import type { HealthConfig } from './policy-config.ts';
import { USE_CONDITIONS, type UseDurations, useConditions } from './use-conditions.ts';

/** Declared conditions, keyed by family. */
export type SpecsByFamily = Readonly<Record<string, readonly ConditionSpec[]>>;

export interface RateThreshold {
  readonly growth: number;
  readonly windowMs: number;
}

/** Policy of one condition of one family after all overrides. */
export interface ConditionPolicy {
  readonly class: ConditionClass;
  readonly severity: Severity;
  /** The configuration sets the severity, which then outranks the severity of a finding. */
  readonly severityConfigured: boolean;
  readonly forMs: number;
  readonly recoveryMs: number;
  readonly threshold: RateThreshold;
  readonly enabled: boolean;
  readonly remedy: Remedy;
  /** Conditions that the same fault raises too, as `Type` or `Type/instance`. */
  readonly consequences: readonly string[];
  /** Findings on the condition come from another source than the device. */
  readonly isOutOfBand: boolean;
  /** Findings on the condition come from the comparison of use and holders. */
  readonly isUse: boolean;
  /** Findings come from the faults that were counted. */
  readonly isOfFaults: boolean;
  /** The condition ends when the pods that held the device then hold it no longer. */
  readonly isOfHolder: boolean;
}

export interface FlappingPolicy {
  readonly count: number;
  readonly windowMs: number;
  readonly quietMs: number;
}

/** All rules of the engine. Immutable. */
export interface HealthPolicy {
  /** Health value that the kubelet gets for a device in state unknown. */
  readonly unknown: 'healthy' | 'unhealthy';
  /** Health value that the kubelet gets for a device of which a fatal condition was never checked. */
  readonly unchecked: 'healthy' | 'unhealthy';
  /** Age of the last reading at which the state becomes unknown. */
  readonly staleAfterMs: number;
  /** How long a missing device is remembered. */
  readonly missingRetentionMs: number;
  readonly flapping: FlappingPolicy;
  readonly ignore: readonly IgnoreRule[];
  /** Declarations, keyed by family and then by type. Each family also has the conditions that every device can have. */
  readonly specs: SpecMaps;
  /** Declarations of the conditions that every device can have. */
  readonly common: readonly ConditionSpec[];
  /** Policies of the declarations, before any override. */
  readonly declared: ReadonlyMap<string, ReadonlyMap<string, ConditionPolicy>>;
  /** Keyed as in the configuration. */
  readonly overrides: Overrides;
}

/**
 * Unknown means unhealthy by default: a driver that has not answered for a minute will not serve a new pod either, and
 * the kubelet leaves running containers alone. Unchecked means healthy by default: many kernels and drivers do not show all that a family
 * looks for.
 */
export const POLICY_DEFAULTS = {
  unknown: 'unhealthy',
  unchecked: 'healthy',
  staleAfterMs: minutes(1),
  missingRetentionMs: hours(24),
  flapping: { count: 3, windowMs: hours(12), quietMs: hours(1) },
  threshold: { growth: 0, windowMs: hours(1) },
} as const;

export interface PolicyInput {
  readonly specs: SpecsByFamily;
  readonly config?: HealthConfig;
  /** Age of a reading at which the state becomes unknown, where the configuration has no other. */
  readonly staleAfterMs?: number;
  readonly missingRetentionMs?: number;
  /** Times of the conditions of use. Default: those of the options. */
  readonly use?: UseDurations;
  /** Time between two readings. */
  readonly readEveryMs?: number;
}

/** Builds the policy. Invalid values and unknown conditions are left out and reported in `problems`, one sentence each. */
export function createPolicy(input: PolicyInput): { readonly policy: HealthPolicy; readonly problems: readonly string[] } {
  const config = input.config ?? {};
  const problems: string[] = [];
  const length = (text: string | undefined, fallback: number, where: string): number => {
    const parsed = text === undefined ? fallback : parseDuration(text);
    if (parsed === undefined) problems.push(`health.${where}: '${text}' is not a duration such as 30s or 1m30s`);
    return parsed ?? fallback;
  };
  const common = [...OWN_CONDITIONS, ...useConditions(input.use)];
  const specs = specMaps(input.specs, common);
  const flapping = {
    count: config.flapping?.count ?? POLICY_DEFAULTS.flapping.count,
    windowMs: length(config.flapping?.window, POLICY_DEFAULTS.flapping.windowMs, 'flapping.window'),
    quietMs: length(config.flapping?.quiet, POLICY_DEFAULTS.flapping.quietMs, 'flapping.quiet'),
  };
  const staleAfterMs = length(config['stale-after'], input.staleAfterMs ?? POLICY_DEFAULTS.staleAfterMs, 'stale-after');
  if (staleAfterMs === 0) problems.push('health.stale-after: must be longer than 0s');
  const policy: HealthPolicy = {
    unknown: config.unknown ?? POLICY_DEFAULTS.unknown,
    unchecked: config.unchecked ?? POLICY_DEFAULTS.unchecked,
    staleAfterMs: staleAfterMs === 0 ? POLICY_DEFAULTS.staleAfterMs : staleAfterMs,
    missingRetentionMs: input.missingRetentionMs ?? POLICY_DEFAULTS.missingRetentionMs,
    flapping,
    ignore: ignoreRules(config, specs, common, problems),
    specs,
    common,
    declared: new Map(
      [...specs].map(([family, types]) => [family, new Map([...types].map(([type, spec]) => [type, declaredPolicy(spec)]))]),
    ),
    overrides: overridesOf(config, specs, common, problems),
  };
  const { readEveryMs = 0 } = input;
  if (policy.staleAfterMs <= readEveryMs) {
    const [age, interval] = [policy.staleAfterMs, readEveryMs].map((ms) => formatDuration(millis(ms)));
    problems.push(
      `health.stale-after: ${age} is not longer than refresh.interval, ${interval}: every device is unknown between two readings`,
    );
  }
  return { policy, problems };
}

function specMaps(specs: SpecsByFamily, common: readonly ConditionSpec[]): SpecMaps {
  const byType = (list: readonly ConditionSpec[]): ReadonlyMap<string, ConditionSpec> =>
    new Map([...common, ...list].map((spec) => [spec.type, spec]));
  return new Map(Object.entries(specs).map(([family, list]) => [family, byType(list)]));
}

function ignoreRules(config: HealthConfig, specs: SpecMaps, common: readonly ConditionSpec[], problems: string[]): readonly IgnoreRule[] {
  const rules: IgnoreRule[] = [];
  for (const [index, entry] of (config.ignore ?? []).entries()) {
    const rule = ignoreRule(entry);
    if (rule === undefined) problems.push(`health.ignore[${index}].until: '${entry.until}' is not a date such as 2030-01-31`);
    else rules.push(rule);
    if (rule !== undefined && !isConditionOf(specs, common, entry.condition)) {
      const bare = entry.condition.slice(entry.condition.indexOf('.') + 1);
      const hint = isConditionOf(specs, common, bare) ? `; write '${bare}'` : '';
      problems.push(`health.ignore[${index}].condition: no enabled family has a condition '${entry.condition}'${hint}`);
    }
  }
  return rules;
}

/** Whether an ignore rule names a known condition: `*`, `Type` or `Type/instance`. Does not check the instance. */
function isConditionOf(specs: SpecMaps, common: readonly ConditionSpec[], condition: string): boolean {
  const [type = ''] = condition.split('/');
  return condition === '*' || [new Map(common.map((own) => [own.type, own])), ...specs.values()].some((types) => types.has(type));
}

/** The effective policy of one condition. */
export function conditionPolicy(policy: HealthPolicy, family: string, type: string, instance?: string | undefined): ConditionPolicy {
  const declared = policy.declared.get(family)?.get(type) ?? fallbackPolicy(type);
  if (policy.overrides.size === 0) return declared;
  const { severity, forMs, recoveryMs, growth, windowMs, enabled } = overrideFor(policy.overrides, family, type, instance);
  return {
    ...declared,
    severity: severity ?? declared.severity,
    severityConfigured: severity !== undefined,
    forMs: forMs ?? declared.forMs,
    recoveryMs: recoveryMs ?? declared.recoveryMs,
    threshold: { growth: growth ?? declared.threshold.growth, windowMs: windowMs ?? declared.threshold.windowMs },
    enabled: enabled ?? declared.enabled,
  };
}

function declaredPolicy(spec: ConditionSpec): ConditionPolicy {
  return {
    class: spec.class,
    severity: spec.severity,
    severityConfigured: false,
    forMs: spec.forMs ?? 0,
    recoveryMs: spec.recoveryMs ?? 0,
    threshold: spec.threshold ?? POLICY_DEFAULTS.threshold,
    enabled: spec.isOffByDefault !== true,
    remedy: spec.remedy,
    consequences: spec.consequences ?? [],
    isOutOfBand: spec.outOfBand ?? false,
    isUse: spec.use ?? false,
    isOfFaults: spec.ofFaults ?? false,
    isOfHolder: spec.ofHolder ?? false,
  };
}

/** A type that no family declared is a bug of that family. It is recorded but takes no device out of service. */
const UNDECLARED: ConditionSpec = {
  type: '',
  class: 'self-clearing',
  severity: 'info',
  reasons: [],
  meaning: '',
  remedy: 'inspect',
  source: '',
};

function fallbackPolicy(type: string): ConditionPolicy {
  return declaredPolicy([...OWN_CONDITIONS, ...USE_CONDITIONS].find((own) => own.type === type) ?? UNDECLARED);
}
