import type { HealthState, Verdict } from '../../model/health.ts';
import type { ConditionPolicy, HealthPolicy } from '../policy/policy.ts';
import type { ConditionsStep } from './conditions.ts';
import type { ConditionState, ProbationMemory } from './memory.ts';
import { effectiveSeverity } from './verdict.ts';

export interface ProbationInput {
  readonly wasOut: boolean;
  readonly before: ProbationMemory | undefined;
  readonly changes: ConditionsStep['changes'];
  readonly state: HealthState;
  /** Wall clock of the read of this judgement; undefined when it has none. */
  readonly readAtMs: number | undefined;
  /** What this read shows of the time since the read before it; undefined when it shows nothing. */
  readonly isIdle: boolean | 'unknown' | undefined;
  readonly nowMs: number;
}

export function begunProbation(condition: string | undefined, sinceMs: number): ProbationMemory {
  return { ...(condition === undefined ? {} : { condition }), sinceMs };
}

/**
 * Performs one step of the probation of a device. It begins when a fatal latched condition is cleared, because such a condition ends by a
 * reset. It ends after enough busy time. Idle time does not count, nor time between reads of two runs of the agent, nor time for which no
 * read showed the use. An unhealthy device begins again.
 */
export function stepProbation(
  { wasOut, before: known, changes, state, readAtMs, isIdle, nowMs }: ProbationInput,
  { probation: { busyMs: neededMs }, staleAfterMs }: Pick<HealthPolicy, 'probation' | 'staleAfterMs'>,
  policyOf: (condition: ConditionState) => ConditionPolicy,
): ProbationMemory | undefined {
  if (known === undefined && !wasOut) return undefined;
  const isFatal = (condition: ConditionState): boolean => {
    const policy = policyOf(condition);
    return policy.enabled && policy.class === 'latched' && effectiveSeverity(condition, policy) === 'fatal';
  };
  const ended = wasOut ? changes.find((one) => one.change === 'cleared' && isFatal(one.state)) : undefined;
  const before = ended === undefined ? known : begunProbation(ended.state.type, nowMs);
  if (before === undefined) return undefined;
  // The clock of the machine may have been ahead in the boot before.
  const begun = begunProbation(before.condition, Math.min(before.sinceMs, nowMs));
  if (state === 'unhealthy') return begun;
  const { readAtMs: lastMs, busyMs: beforeMs } = before;
  const gapMs = lastMs === undefined || readAtMs === undefined ? 0 : readAtMs - lastMs;
  const counts = isIdle === false && state === 'healthy' && gapMs > 0 && gapMs < staleAfterMs;
  const busyMs = isIdle === undefined || isIdle === 'unknown' ? beforeMs : (beforeMs ?? 0) + (counts ? gapMs : 0);
  if (busyMs !== undefined && busyMs >= neededMs) return undefined;
  return { ...begun, ...(busyMs === undefined ? {} : { busyMs }), ...(readAtMs === undefined ? {} : { readAtMs }) };
}

/** The probation as the verdict has it. */
export function shownProbation(
  memory: ProbationMemory | undefined,
  state: HealthState,
  { probation: { busyMs: neededMs } }: Pick<HealthPolicy, 'probation'>,
): Pick<Verdict, 'probation'> {
  if (memory === undefined || state === 'unhealthy') return {};
  const { readAtMs: _, ...shown } = memory;
  return { probation: { ...shown, neededMs } };
}
