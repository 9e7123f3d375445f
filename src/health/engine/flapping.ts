import { exactDurationText } from '../../model/duration.ts';
import type { ConditionClass, Severity } from '../../model/health.ts';
import { DEVICE_NOT_READ, FLAPPING } from '../policy/own-conditions.ts';
import type { ConditionPolicy, FlappingPolicy } from '../policy/policy.ts';
import { type ConditionsStep, type Evidence, evidenceFor, isEmpty, type StepTime, stepConditions } from './conditions.ts';
import { type ConditionState, conditionKey, conditionOf, type DeviceMemory } from './memory.ts';
import { effectiveSeverity } from './verdict.ts';

/** Times at which each condition became active, keyed by condition. */
type Activations = DeviceMemory['activations'];
type States = Readonly<Record<string, ConditionState>>;

/**
 * Performs one step of the flapping conditions of a device, after its other conditions. `evidence`: on the other conditions. Quiet time passes
 * only while it shows that the condition which flaps does not hold.
 */
export function stepFlapping(
  previous: Pick<DeviceMemory, 'conditions' | 'activations'> | undefined,
  step: ConditionsStep,
  evidence: readonly Evidence[],
  policyOf: (name: { readonly type: string; readonly instance?: string | undefined }) => ConditionPolicy,
  policy: FlappingPolicy,
  time: StepTime,
): ConditionsStep & { readonly activations: Activations } {
  if (isEmpty(previous?.conditions) && isEmpty(previous?.activations) && isEmpty(step.states)) return NEVER_FLAPPED;
  const flaps = (state: ConditionState): boolean => canFlap(state.type, policyOf(state).class);
  const raised = step.changes.filter(({ change, state }) => change === 'raised' && flaps(state)).map(({ state }) => conditionKey(state));
  const activations = nextActivations(previous?.activations ?? {}, raised, policy, time.nowMs);
  const before = Object.fromEntries(Object.entries(previous?.conditions ?? {}).filter(([, { type }]) => type === FLAPPING));
  const counting = Object.values(step.states).filter((state) => state.phase !== 'pending' && flaps(state));
  const flapping = flappingEvidence(counting.map(conditionKey), activations, before, policy, time.nowMs);
  const repeated = new Set(flapping.map(conditionKey));
  const quiet = Object.entries(before).flatMap(([key, state]) => {
    const original = evidence.find((item) => conditionKey(item) === state.instance);
    return repeated.has(key) || original?.status !== false ? [] : [evidenceFor(state, false, original.atMs)];
  });
  const originalPolicy = ({ instance = '' }: { readonly instance?: string | undefined }): ConditionPolicy =>
    policyOf(conditionOf(instance));
  const stepped = stepConditions(
    before,
    [...flapping, ...quiet],
    (name) => flappingPolicy(policyOf(name), originalPolicy(name), policy),
    time,
  );
  // While the original condition counts, its severity applies. Otherwise the flapping condition keeps its last severity.
  const severityOf = (state: ConditionState): Severity =>
    effectiveSeverity(step.states[state.instance ?? ''] ?? state, originalPolicy(state));
  const withSeverity = (state: ConditionState): ConditionState => ({ ...state, severity: severityOf(state) });
  return {
    ...stepped,
    states: Object.fromEntries(Object.entries(stepped.states).map(([key, state]) => [key, withSeverity(state)])),
    changes: stepped.changes.map(({ change, state }) => ({ change, state: withSeverity(state) })),
    activations,
  };
}

/** The conditions with those that flap, so that findings on these are evidence also while they do not hold. */
export function withOriginals(states: States): States {
  const flapping = Object.values(states).filter(({ type }) => type === FLAPPING);
  if (flapping.length === 0) return states;
  const originals = flapping.map(({ instance: key = '', ...state }) => [key, { ...state, ...conditionOf(key) }] as const);
  return { ...Object.fromEntries(originals), ...states };
}

/** A device without conditions, now and before, has nothing that repeats. */
const NEVER_FLAPPED = { states: {}, changes: [], activations: {} };

/** Whether repeated changes of a condition indicate a hardware problem. */
function canFlap(type: string, conditionClass: ConditionClass): boolean {
  return type !== FLAPPING && type !== DEVICE_NOT_READ && conditionClass !== 'no-data' && conditionClass !== 'in-progress';
}

/** Flapping of a disabled condition is disabled too. Flapping is cleared after the condition was quiet for `quietMs`. */
function flappingPolicy(flapping: ConditionPolicy, original: ConditionPolicy, { quietMs }: FlappingPolicy): ConditionPolicy {
  return { ...flapping, enabled: flapping.enabled && original.enabled, recoveryMs: Math.max(flapping.recoveryMs, quietMs) };
}

/** Adds the conditions raised now and drops the times outside the window. Keeps at most `count` times per condition. */
function nextActivations(previous: Activations, raised: readonly string[], policy: FlappingPolicy, nowMs: number): Activations {
  const next: Record<string, readonly number[]> = {};
  for (const key of new Set([...Object.keys(previous), ...raised])) {
    const before = Object.hasOwn(previous, key) ? (previous[key] as readonly number[]) : [];
    const times = raised.includes(key) ? [...before, nowMs] : before;
    const kept = times.filter((time) => nowMs - time < policy.windowMs).slice(-policy.count);
    if (kept.length > 0) next[key] = kept;
  }
  return next;
}

/**
 * One evidence per active condition that became active often enough. A condition that is flapping stays so while it is active, because
 * an active condition is not quiet.
 */
function flappingEvidence(
  counting: readonly string[],
  activations: Activations,
  before: States,
  policy: FlappingPolicy,
  atMs: number,
): readonly Evidence[] {
  return counting.flatMap((key): Evidence[] => {
    const base = { type: FLAPPING, instance: key, status: true, atMs, reason: 'Repeated' };
    const times = (Object.hasOwn(activations, key) ? activations[key] : undefined) ?? [];
    const spanMs = (times.at(-1) ?? 0) - (times[0] ?? 0);
    if (times.length >= policy.count) {
      const span = exactDurationText(Math.max(1, Math.ceil(spanMs / 1_000)) * 1_000);
      return [{ ...base, message: `${key} began ${times.length} times within ${span}` }];
    }
    const known = before[conditionKey(base)];
    return known === undefined ? [] : [{ ...base, message: known.message }];
  });
}
