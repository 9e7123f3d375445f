import type { Remedy, Severity } from '../model/health.ts';
import { type ConditionState, conditionKey } from './memory.ts';
import type { ConditionPolicy } from './policy.ts';

/** What is known of one condition at one judgement. */
export interface Evidence {
  readonly type: string;
  readonly instance?: string;
  readonly status: boolean | 'unknown';
  readonly reason: string;
  readonly message: string;
  readonly severity?: Severity;
  readonly remedy?: Remedy;
  /** When the status will change by time alone. */
  readonly changesAtMs?: number;
  /** Nobody said so: it follows from silence. */
  readonly silent?: true;
}

export interface ConditionStep {
  /** Undefined when the condition rests. */
  readonly state?: ConditionState;
  readonly change?: 'raised' | 'cleared';
  /** When the state will change if the evidence stays as it is. */
  readonly dueMs?: number;
}

export interface StepTime {
  readonly nowMs: number;
  /** Time since the last judgement: does not count for a condition of which nothing is known. */
  readonly elapsedMs: number;
}

/**
 * One condition, one step: rest → pending (holds, but not for `for` yet) → active → recovering (quiet, but not for
 * `recovery` yet) → rest. The five classes differ in their evidence and in what they mean to the verdict, not here.
 */
function stepCondition(
  previous: ConditionState | undefined,
  evidence: Evidence,
  policy: Pick<ConditionPolicy, 'forMs' | 'recoveryMs'>,
  time: StepTime,
): ConditionStep {
  if (evidence.status === 'unknown') return stepUnknown(previous, time);
  return evidence.status ? stepTrue(previous, evidence, policy, time) : stepFalse(previous, policy, time);
}

function stepUnknown(previous: ConditionState | undefined, time: StepTime): ConditionStep {
  if (previous === undefined) return {};
  if (previous.phase === 'active') return { state: previous };
  return { state: { ...previous, countsFromMs: Math.min(time.nowMs, previous.countsFromMs + time.elapsedMs) } };
}

function stepTrue(
  previous: ConditionState | undefined,
  evidence: Evidence,
  policy: Pick<ConditionPolicy, 'forMs'>,
  { nowMs }: StepTime,
): ConditionStep {
  const counts = previous !== undefined && previous.phase !== 'pending';
  const countsFromMs = previous?.phase === 'pending' || previous?.phase === 'active' ? previous.countsFromMs : nowMs;
  const due = countsFromMs + policy.forMs;
  const active = counts || nowMs >= due;
  const state = describe(evidence, active ? 'active' : 'pending', previous?.sinceMs ?? nowMs, countsFromMs);
  if (!active) return { state, dueMs: due };
  return counts ? { state } : { state, change: 'raised' };
}

function stepFalse(previous: ConditionState | undefined, policy: Pick<ConditionPolicy, 'recoveryMs'>, { nowMs }: StepTime): ConditionStep {
  if (previous === undefined || previous.phase === 'pending') return {};
  const { carried: _, ...seen } = previous;
  const countsFromMs = previous.phase === 'recovering' ? previous.countsFromMs : nowMs;
  const due = countsFromMs + policy.recoveryMs;
  if (nowMs >= due) return { change: 'cleared' };
  return { state: { ...seen, phase: 'recovering', countsFromMs }, dueMs: due };
}

function describe(evidence: Evidence, phase: ConditionState['phase'], sinceMs: number, countsFromMs: number): ConditionState {
  const { type, instance, reason, message, severity, remedy } = evidence;
  return {
    type,
    ...(instance === undefined ? {} : { instance }),
    phase,
    sinceMs,
    countsFromMs,
    reason,
    message,
    ...(severity === undefined ? {} : { severity }),
    ...(remedy === undefined ? {} : { remedy }),
  };
}

export interface ConditionsStep {
  readonly states: Readonly<Record<string, ConditionState>>;
  /** State before a change, or after it when it began. */
  readonly changes: readonly { readonly change: 'raised' | 'cleared'; readonly state: ConditionState }[];
  readonly dueMs?: number;
}

/**
 * Takes every condition of one device a step further. A remembered condition without evidence is one that nobody reports
 * any more: false. A disabled condition rests.
 */
export function stepConditions(
  previous: Readonly<Record<string, ConditionState>>,
  evidence: readonly Evidence[],
  policyOf: (condition: { readonly type: string; readonly instance?: string }) => ConditionPolicy,
  time: StepTime,
): ConditionsStep {
  const states: Record<string, ConditionState> = {};
  const changes: { change: 'raised' | 'cleared'; state: ConditionState }[] = [];
  const dues: number[] = [];
  for (const item of withSilent(previous, evidence)) {
    const key = conditionKey(item);
    const before = Object.hasOwn(previous, key) ? previous[key] : undefined;
    const policy = policyOf(item);
    const step = policy.enabled ? stepCondition(before, item, policy, time) : stepFalse(before, { recoveryMs: 0 }, time);
    if (step.state !== undefined) states[key] = step.state;
    const changed = step.state ?? before;
    if (step.change !== undefined && changed !== undefined) changes.push({ change: step.change, state: changed });
    for (const due of [step.dueMs, policy.enabled ? item.changesAtMs : undefined]) if (due !== undefined) dues.push(due);
  }
  return { states, changes, ...(dues.length === 0 ? {} : { dueMs: Math.min(...dues) }) };
}

function withSilent(previous: Readonly<Record<string, ConditionState>>, evidence: readonly Evidence[]): readonly Evidence[] {
  const told = new Set(evidence.map(conditionKey));
  const silent = Object.entries(previous).filter(([key]) => !told.has(key));
  return [...evidence, ...silent.map(([, state]): Evidence => silence(state, false))];
}

/** Evidence for a condition of which the present reading says nothing. */
export function silence(state: ConditionState, status: false | 'unknown'): Evidence {
  const { type, instance, reason, message } = state;
  return { type, ...(instance === undefined ? {} : { instance }), status, reason, message, silent: true };
}
