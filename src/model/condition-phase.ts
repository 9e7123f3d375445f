import type { ActiveCondition, PendingCondition, Remedy } from './health.ts';

/**
 * Qualifies a condition: `pending` does not count yet, `recovering` ended but still counts, `unverified` is kept from earlier readings
 * because its status is unknown now.
 */
export type ConditionPhase = 'pending' | 'recovering' | 'unverified';

/** Empty for a condition that counts and that the latest reading found. */
export function phasesOf(condition: ActiveCondition | PendingCondition): readonly ConditionPhase[] {
  return [
    ...('countsAtMs' in condition ? (['pending'] as const) : []),
    ...('recovering' in condition ? (['recovering'] as const) : []),
    ...(condition.unverifiedSinceMs === undefined ? [] : (['unverified'] as const)),
  ];
}

/** Remedy that applies now: `none` for a condition that ended. */
export function remedyNow({ remedy, recovering }: Pick<ActiveCondition, 'remedy' | 'recovering'>): Remedy {
  return recovering === undefined ? remedy : 'none';
}

/** Pending conditions that will change the state of the device. A condition with severity `info` never does. */
export function pendingTrouble<C extends Pick<PendingCondition, 'severity'>>({
  pending = [],
}: {
  readonly pending?: readonly C[];
}): readonly C[] {
  return pending.filter(({ severity }) => severity !== 'info');
}
