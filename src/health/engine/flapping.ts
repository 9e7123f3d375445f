import { formatDuration, millis } from '../../model/duration.ts';
import type { ConditionClass, Severity } from '../../model/health.ts';
import { DEVICE_NOT_READ, FLAPPING } from '../policy/own-conditions.ts';
import type { ConditionPolicy, FlappingPolicy } from '../policy/policy.ts';
import { type ConditionsStep, type Evidence, evidenceFor, type StepTime, stepConditions } from './conditions.ts';
import { type ConditionState, conditionKey, conditionName, type DeviceMemory } from './memory.ts';
import { effectiveSeverity } from './verdict.ts';

/** When each condition began to count, keyed by condition. */
type Activations = DeviceMemory['activations'];
type States = Readonly<Record<string, ConditionState>>;

/**
 * Takes what flaps of one device a step further, after its other conditions. `readAtMs`: wall clock of the look that read the device;
 * undefined when the latest look did not read it, so that no quiet time passes.
 */
export function stepFlapping(
  previous: Pick<DeviceMemory, 'conditions' | 'activations'> | undefined,
  step: ConditionsStep,
  readAtMs: number | undefined,
  policyOf: (name: { readonly type: string; readonly instance?: string | undefined }) => ConditionPolicy,
  policy: FlappingPolicy,
  time: StepTime,
): ConditionsStep & { readonly activations: Activations } {
  const flaps = (state: ConditionState): boolean => canFlap(state.type, policyOf(state).class);
  const raised = step.changes.filter(({ change, state }) => change === 'raised' && flaps(state)).map(({ state }) => conditionKey(state));
  const activations = nextActivations(previous?.activations ?? {}, raised, policy, time.nowMs);
  const before = Object.fromEntries(Object.entries(previous?.conditions ?? {}).filter(([, { type }]) => type === FLAPPING));
  const counting = Object.values(step.states).filter((state) => state.phase !== 'pending' && flaps(state));
  const told = flappingEvidence(counting.map(conditionKey), activations, before, policy, time.nowMs);
  const repeated = new Set(told.map(conditionKey));
  const quiet = Object.entries(before).filter(([key]) => readAtMs !== undefined && !repeated.has(key));
  const evidence = [...told, ...quiet.map(([, state]) => evidenceFor(state, false, readAtMs as number))];
  const whatFlaps = ({ instance = '' }: { readonly instance?: string | undefined }): ConditionPolicy => policyOf(conditionName(instance));
  const stepped = stepConditions(before, evidence, (name) => flappingPolicy(policyOf(name), whatFlaps(name), policy), time);
  // That of the condition while it lasts; between two spells the one with which it flaps.
  const severityOf = (state: ConditionState): Severity => effectiveSeverity(step.states[state.instance ?? ''] ?? state, whatFlaps(state));
  const withSeverity = (state: ConditionState): ConditionState => ({ ...state, severity: severityOf(state) });
  return {
    ...stepped,
    states: Object.fromEntries(Object.entries(stepped.states).map(([key, state]) => [key, withSeverity(state)])),
    changes: stepped.changes.map(({ change, state }) => ({ change, state: withSeverity(state) })),
    activations,
  };
}

/** Whether a condition that comes and goes says something about the hardware. */
function canFlap(type: string, conditionClass: ConditionClass): boolean {
  return type !== FLAPPING && type !== DEVICE_NOT_READ && conditionClass !== 'no-data' && conditionClass !== 'in-progress';
}

/** Who disables a condition does not want to hear that it flapped either. Withdrawn when it was quiet for so long since it last counted. */
function flappingPolicy(flapping: ConditionPolicy, what: ConditionPolicy, { quietMs }: FlappingPolicy): ConditionPolicy {
  return { ...flapping, enabled: flapping.enabled && what.enabled, recoveryMs: Math.max(flapping.recoveryMs, quietMs) };
}

/** Adds what began now and forgets what can no longer matter; at most as many as the policy counts. */
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
 * One finding per condition that counts now and began to often enough. One that is flapping goes on while it counts, however long:
 * what is down is not quiet.
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
      const span = formatDuration(millis(Math.max(1, Math.ceil(spanMs / 1000)) * 1000));
      return [{ ...base, message: `${key} began ${times.length} times within ${span}` }];
    }
    const known = before[conditionKey(base)];
    return known === undefined ? [] : [{ ...base, message: known.message }];
  });
}
