import { defined } from '../../model/defined.ts';
import type { EventHolder } from '../../model/events.ts';
import type { Remedy, Severity } from '../../model/health.ts';
import type { ConditionPolicy } from '../policy/policy.ts';
import { type ConditionState, conditionKey } from './memory.ts';

/** Evidence on one condition at one judgement. */
export interface Evidence {
  readonly type: string;
  readonly instance?: string | undefined;
  readonly status: boolean | 'unknown';
  /** Wall clock of the reading that gave it. */
  readonly atMs: number;
  readonly reason: string;
  readonly message: string;
  readonly severity?: Severity | undefined;
  readonly remedy?: Remedy | undefined;
  /** Id of the device of the same family whose fault is the source of this one. */
  readonly causedBy?: string | undefined;
  /** Whom it is about; only of a condition that ends with its holders. */
  readonly holders?: readonly EventHolder[] | undefined;
}

export interface ConditionStep {
  /** Undefined when the condition is inactive. */
  readonly state?: ConditionState;
  readonly change?: 'raised' | 'cleared';
  /** Wall clock at which the state can change by time alone. */
  readonly dueMs?: number;
}

export interface StepTime {
  readonly nowMs: number;
  /** Time since the last judgement. It does not count for a condition with unknown status. */
  readonly elapsedMs: number;
}

/**
 * One step of one condition: inactive → pending (holds, shorter than `for`) → active → recovering (quiet, shorter than `recovery`) →
 * inactive. The five classes differ in their evidence and in their effect on the verdict, but not here.
 *
 * A condition can become active by time alone, because it holds until a reading denies it. It is cleared only by a reading after the
 * quiet time.
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

/** Without a reading, no condition is cleared and no condition becomes active. */
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
  const wasActive = previous !== undefined && previous.phase !== 'pending';
  const countsFromMs = previous?.phase === 'pending' || previous?.phase === 'active' ? previous.countsFromMs : nowMs;
  const due = countsFromMs + policy.forMs;
  const active = wasActive || nowMs >= due;
  const state = describe(evidence, active ? 'active' : 'pending', previous?.sinceMs ?? nowMs, countsFromMs);
  if (!active) return { state, dueMs: due };
  return wasActive ? { state } : { state, change: 'raised' };
}

function stepFalse(previous: ConditionState | undefined, { atMs }: Evidence, policy: Pick<ConditionPolicy, 'recoveryMs'>): ConditionStep {
  if (previous === undefined || previous.phase === 'pending') return {};
  const { unverifiedSinceMs: _, ...verified } = previous;
  const countsFromMs = previous.phase === 'recovering' ? previous.countsFromMs : atMs;
  if (atMs >= countsFromMs + policy.recoveryMs) return { change: 'cleared' };
  return { state: { ...verified, phase: 'recovering', countsFromMs } };
}

function describe(evidence: Evidence, phase: ConditionState['phase'], sinceMs: number, countsFromMs: number): ConditionState {
  const { type, instance, reason, message, severity, remedy, causedBy, holders } = evidence;
  return {
    type,
    ...defined({ instance }),
    phase,
    sinceMs,
    countsFromMs,
    reason,
    message,
    ...defined({ severity, remedy, causedBy, holders }),
  };
}

export interface ConditionsStep {
  readonly states: Readonly<Record<string, ConditionState>>;
  /** State before a change, or after it when it began. */
  readonly changes: readonly { readonly change: 'raised' | 'cleared'; readonly state: ConditionState }[];
  readonly dueMs?: number;
}

/** Performs one step of every condition of a device. A condition without evidence is unknown; a disabled condition is inactive. */
export function stepConditions(
  previous: Readonly<Record<string, ConditionState>>,
  evidence: readonly Evidence[],
  policyOf: (condition: Pick<Evidence, 'type' | 'instance'>) => ConditionPolicy,
  time: StepTime,
): ConditionsStep {
  if (evidence.length === 0 && isEmpty(previous)) return NOTHING_CHANGES;
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

/** A device without conditions and without a fault. */
const NOTHING_CHANGES: ConditionsStep = { states: {}, changes: [] };

export function isEmpty(record: object | undefined): boolean {
  for (const _ in record) return false;
  return true;
}

function withUnknown(
  previous: Readonly<Record<string, ConditionState>>,
  evidence: readonly Evidence[],
  nowMs: number,
): readonly Evidence[] {
  const known = new Set(evidence.map(conditionKey));
  const unknown = Object.entries(previous).filter(([key]) => !known.has(key));
  return [...evidence, ...unknown.map(([, state]) => evidenceFor(state, 'unknown', nowMs))];
}

/** Evidence with the reason and the message that the condition had last. */
export function evidenceFor(state: ConditionState, status: Evidence['status'], atMs: number): Evidence {
  const { type, instance, reason, message } = state;
  return { type, ...defined({ instance }), status, atMs, reason, message };
}
