import { formatDuration, millis } from '../model/duration.ts';
import type { ConditionClass, Severity } from '../model/health.ts';
import type { Evidence } from './conditions.ts';
import { DEVICE_NOT_READ, FLAPPING } from './own-conditions.ts';
import type { ConditionPolicy, FlappingPolicy } from './policy.ts';

/** When each condition began to count, keyed by condition. */
export type Activations = Readonly<Record<string, readonly number[]>>;

/** Whether a condition that comes and goes says something about the hardware. */
export function canFlap(type: string, conditionClass: ConditionClass): boolean {
  return type !== FLAPPING && type !== DEVICE_NOT_READ && conditionClass !== 'no-data' && conditionClass !== 'in-progress';
}

/** Who disables a condition does not want to hear that it flapped either. */
export function flappingPolicy(flapping: ConditionPolicy, what: ConditionPolicy): ConditionPolicy {
  return { ...flapping, enabled: flapping.enabled && what.enabled };
}

/** Adds what began now and forgets what can no longer matter; at most as many as the policy counts. */
export function nextActivations(previous: Activations, raised: readonly string[], policy: FlappingPolicy, nowMs: number): Activations {
  const next: Record<string, readonly number[]> = {};
  for (const key of new Set([...Object.keys(previous), ...raised])) {
    const before = Object.hasOwn(previous, key) ? (previous[key] as readonly number[]) : [];
    const times = raised.includes(key) ? [...before, nowMs] : before;
    const kept = times.filter((time) => nowMs - time < policy.windowMs + policy.quietMs).slice(-policy.count);
    if (kept.length > 0) next[key] = kept;
  }
  return next;
}

/** One finding per condition that began to count often enough and has not been quiet since. */
export function flappingEvidence(
  activations: Activations,
  severityOf: (key: string) => Severity,
  policy: FlappingPolicy,
  nowMs: number,
): readonly Evidence[] {
  const found: Evidence[] = [];
  for (const [key, times] of Object.entries(activations)) {
    const last = times.at(-1) ?? 0;
    const spanMs = last - (times[0] ?? 0);
    const quietAt = last + policy.quietMs;
    if (times.length < policy.count || spanMs >= policy.windowMs || nowMs >= quietAt) continue;
    const span = formatDuration(millis(Math.max(1, Math.ceil(spanMs / 1000)) * 1000));
    found.push({
      type: FLAPPING,
      instance: key,
      status: true,
      reason: 'Repeated',
      message: `${key} began ${times.length} times within ${span}`,
      severity: severityOf(key),
      changesAtMs: quietAt,
    });
  }
  return found;
}
