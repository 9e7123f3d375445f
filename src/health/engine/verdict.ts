import { defined } from '../../model/defined.ts';
import type { Device } from '../../model/device.ts';
import type { ActiveCondition, HealthState, IgnoredCondition, PendingCondition, Severity, Verdict } from '../../model/health.ts';
import { matchingIgnore } from '../policy/ignore.ts';
import { FLAPPING } from '../policy/own-conditions.ts';
import { type ConditionPolicy, conditionPolicy, type HealthPolicy } from '../policy/policy.ts';
import type { ConditionState } from './memory.ts';

export interface VerdictInput {
  readonly device: Device;
  readonly states: readonly ConditionState[];
  /** The device is missing, or its last read is older than the stale age. Without a known fault its state is then unknown. */
  readonly isBlind: boolean;
  /** The latest collection read the device. */
  readonly isRead: boolean;
  /** A read told its state before. */
  readonly wasRead: boolean;
  /** Keys of the fatal conditions that no read could judge so far. */
  readonly unchecked: readonly string[];
  readonly previous?: { readonly state: HealthState; readonly sinceMs: number };
  readonly policy: HealthPolicy;
  readonly nowMs: number;
}

export interface VerdictOutput {
  readonly verdict: Verdict;
  /** A read told its state, now or before. Until then its state is unknown. */
  readonly wasRead: boolean;
  /** Earliest end of an ignore rule that applies now. */
  readonly dueMs?: number;
}

const WEIGHT: Readonly<Record<Severity, number>> = { fatal: 0, degraded: 1, info: 2 };

/** Builds the verdict of one device: the conditions that count, worst first, and the resulting state. */
export function judgeVerdict(input: VerdictInput): VerdictOutput {
  const counting: ActiveCondition[] = [];
  const ignored: IgnoredCondition[] = [];
  const pending: PendingCondition[] = [];
  let { isBlind } = input;
  let isSilent = !input.isRead;
  for (const state of input.states) {
    const policy = conditionPolicy(input.policy, input.device.family, state.type, state.instance);
    const recoveryMs = state.type === FLAPPING ? input.policy.flapping.quietMs : policy.recoveryMs;
    const active = activeCondition(state, policy, recoveryMs);
    const rule = matchingIgnore(input.policy.ignore, input.device, state.type, state.instance, input.nowMs);
    if (rule === undefined && policy.class === 'no-data' && active.severity === 'fatal') {
      isBlind ||= state.phase !== 'pending';
      isSilent ||= state.phase !== 'recovering';
    }
    if (state.phase === 'pending') {
      if (rule === undefined) pending.push({ ...active, countsAtMs: state.countsFromMs + policy.forMs });
      continue;
    }
    if (rule !== undefined) ignored.push({ ...active, ignoreReason: rule.reason, ignoredUntilMs: rule.untilMs });
    else counting.push(active);
  }
  const wasRead = input.wasRead || !isSilent;
  const state = stateOf(counting, isBlind || !wasRead, input);
  const sinceMs = input.previous?.state === state ? input.previous.sinceMs : input.nowMs;
  const waiting = pending.length === 0 ? {} : { pending: pending.sort((a, b) => a.countsAtMs - b.countsAtMs || worstFirst(a, b)) };
  const conditions = withCauses(counting.sort(worstFirst), ({ type, instance }) =>
    conditionPolicy(input.policy, input.device.family, type, instance),
  );
  const unchecked = input.unchecked.length === 0 ? {} : { unchecked: input.unchecked };
  const verdict = { state, sinceMs, conditions, ...waiting, ...unchecked };
  if (ignored.length === 0) return { verdict, wasRead };
  return {
    verdict: { ...verdict, ignored: ignored.sort(worstFirst) },
    wasRead,
    dueMs: Math.min(...ignored.map((item) => item.ignoredUntilMs)),
  };
}

/**
 * A known fatal fault outranks missing data: a device that was broken at its last read stays unhealthy. A fatal condition of class
 * `no-data` means that the device cannot be judged, not that it is broken.
 */
function stateOf(counting: readonly ActiveCondition[], isBlind: boolean, { policy, device }: VerdictInput): HealthState {
  const isFault = (condition: ActiveCondition): boolean =>
    conditionPolicy(policy, device.family, condition.type, condition.instance).class !== 'no-data';
  if (counting.some((condition) => condition.severity === 'fatal' && isFault(condition))) return 'unhealthy';
  if (isBlind) return 'unknown';
  return counting.some((condition) => condition.severity === 'degraded') ? 'degraded' : 'healthy';
}

/**
 * Names the cause of each condition that is the consequence of another one. A cause is never less severe than its consequence, and comes
 * before it, although the log may report the consequence first.
 */
function withCauses(
  conditions: readonly ActiveCondition[],
  policyOf: (condition: ActiveCondition) => ConditionPolicy,
): readonly ActiveCondition[] {
  if (conditions.length < 2) return conditions;
  const named = conditions.map((condition): ActiveCondition => {
    const names = [condition.type, `${condition.type}/${condition.instance}`];
    const cause = conditions.find(
      (other) => WEIGHT[other.severity] <= WEIGHT[condition.severity] && policyOf(other).consequences.some((name) => names.includes(name)),
    );
    return cause === undefined ? condition : { ...condition, cause: cause.type };
  });
  const isLater = ({ cause }: ActiveCondition): number => (cause === undefined ? 0 : 1);
  return named.sort((a, b) => WEIGHT[a.severity] - WEIGHT[b.severity] || isLater(a) - isLater(b));
}

/** Precedence: configured severity, then the finding's, then the declared one. */
export function effectiveSeverity(state: { readonly severity?: Severity }, policy: ConditionPolicy): Severity {
  return policy.severityConfigured ? policy.severity : (state.severity ?? policy.severity);
}

function activeCondition(state: ConditionState, policy: ConditionPolicy, recoveryMs: number): ActiveCondition {
  const { type, instance, reason, message, sinceMs } = state;
  return {
    type,
    ...defined({ instance }),
    class: policy.class,
    severity: effectiveSeverity(state, policy),
    reason,
    message,
    remedy: state.remedy ?? policy.remedy,
    ...defined({ causedBy: state.causedBy }),
    sinceMs,
    ...defined({ unverifiedSinceMs: state.unverifiedSinceMs }),
    ...(state.phase === 'recovering' ? { recovering: { sinceMs: state.countsFromMs, untilMs: state.countsFromMs + recoveryMs } } : {}),
  };
}

function worstFirst(a: ActiveCondition, b: ActiveCondition): number {
  return (
    WEIGHT[a.severity] - WEIGHT[b.severity] ||
    a.sinceMs - b.sinceMs ||
    compare(a.type, b.type) ||
    compare(a.instance ?? '', b.instance ?? '')
  );
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
