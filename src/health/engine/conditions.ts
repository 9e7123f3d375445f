import type { Remedy, Severity } from '../../model/health.ts';
import type { ConditionPolicy } from '../policy/policy.ts';
import { type ConditionState, conditionKey } from './memory.ts';

/** What is known of one condition at one judgement. */
export interface Evidence {
  readonly type: string;
  readonly instance?: string | undefined;
  readonly status: boolean | 'unknown';
  /** Wall clock of the look that told it. */
  readonly atMs: number;
  readonly reason: string;
  readonly message: string;
  readonly severity?: Severity | undefined;
  readonly remedy?: Remedy | undefined;
}

export interface ConditionStep {
  /** Undefined when the condition rests. */
  readonly state?: ConditionState;
  readonly change?: 'raised' | 'cleared';
  /** When the state changes by time alone. */
  readonly dueMs?: number;
}

export interface StepTime {
  readonly nowMs: number;
  /** Time since the last judgement. It does not count for a condition of which nothing is known. */
  readonly elapsedMs: number;
}

/**
 * One condition, one step: rest → pending (holds, but not for `for` yet) → active → recovering (quiet, but not for `recovery` yet) →
 * rest. The five classes differ in their evidence and in what they mean to the verdict, not here.
 *
 * A condition may begin to count by time alone, since what holds goes on until a look says otherwise. It is withdrawn only by a look
 * that comes after the quiet time.
 */
function stepCondition(
  previous: ConditionState | undefined,
  evidence: Evidence,
  policy: Pick<ConditionPolicy, 'forMs' | 'recoveryMs'>,
  time: StepTime,
): ConditionStep {
  if (evidence.status === 'unknown') return stepUnknown(previous, time);
  return evidence.status ? stepTrue(previous, evidence, policy, time) : stepFalse(previous, evidence, policy);
}

/** Nothing gets better by not looking, and nothing begins to count either. */
function stepUnknown(previous: ConditionState | undefined, { nowMs, elapsedMs }: StepTime): ConditionStep {
  if (previous === undefined) return {};
  const unverifiedSinceMs = previous.unverifiedSinceMs ?? nowMs;
  if (previous.phase === 'active') return { state: { ...previous, unverifiedSinceMs } };
  return { state: { ...previous, unverifiedSinceMs, countsFromMs: Math.min(nowMs, previous.countsFromMs + elapsedMs) } };
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

function stepFalse(previous: ConditionState | undefined, { atMs }: Evidence, policy: Pick<ConditionPolicy, 'recoveryMs'>): ConditionStep {
  if (previous === undefined || previous.phase === 'pending') return {};
  const { unverifiedSinceMs: _, ...verified } = previous;
  const countsFromMs = previous.phase === 'recovering' ? previous.countsFromMs : atMs;
  if (atMs >= countsFromMs + policy.recoveryMs) return { change: 'cleared' };
  return { state: { ...verified, phase: 'recovering', countsFromMs } };
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

/** Takes every condition of one device a step further. One without evidence is not known. One that is disabled rests. */
export function stepConditions(
  previous: Readonly<Record<string, ConditionState>>,
  evidence: readonly Evidence[],
  policyOf: (condition: Pick<Evidence, 'type' | 'instance'>) => ConditionPolicy,
  time: StepTime,
): ConditionsStep {
  const states: Record<string, ConditionState> = {};
  const changes: { change: 'raised' | 'cleared'; state: ConditionState }[] = [];
  const dues: number[] = [];
  for (const item of withUnknown(previous, evidence, time.nowMs)) {
    const key = conditionKey(item);
    const before = Object.hasOwn(previous, key) ? previous[key] : undefined;
    const policy = policyOf(item);
    const step = policy.enabled ? stepCondition(before, item, policy, time) : stepFalse(before, item, { recoveryMs: 0 });
    if (step.state !== undefined) states[key] = step.state;
    const changed = step.state ?? before;
    if (step.change !== undefined && changed !== undefined) changes.push({ change: step.change, state: changed });
    if (step.dueMs !== undefined) dues.push(step.dueMs);
  }
  return { states, changes, ...(dues.length === 0 ? {} : { dueMs: Math.min(...dues) }) };
}

function withUnknown(
  previous: Readonly<Record<string, ConditionState>>,
  evidence: readonly Evidence[],
  nowMs: number,
): readonly Evidence[] {
  const told = new Set(evidence.map(conditionKey));
  const untold = Object.entries(previous).filter(([key]) => !told.has(key));
  return [...evidence, ...untold.map(([, state]) => evidenceFor(state, 'unknown', nowMs))];
}

/** Evidence on a condition in the words that were last told of it. */
export function evidenceFor(state: ConditionState, status: Evidence['status'], atMs: number): Evidence {
  const { type, instance, reason, message } = state;
  return { type, ...(instance === undefined ? {} : { instance }), status, atMs, reason, message };
}
