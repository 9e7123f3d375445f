import type { ActiveCondition, PendingCondition, Remedy } from './health.ts';

/**
 * What a condition is besides found: `pending` does not count yet, `recovering` ended and still counts, `unverified` holds by what
 * was known before, since no look can tell now.
 */
export type Standing = 'pending' | 'recovering' | 'unverified';

/** Empty for a condition that counts and that the latest look found. */
export function standingOf(condition: ActiveCondition | PendingCondition): readonly Standing[] {
  return [
    ...('countsAtMs' in condition ? (['pending'] as const) : []),
    ...('recovering' in condition ? (['recovering'] as const) : []),
    ...(condition.unverifiedSinceMs === undefined ? [] : (['unverified'] as const)),
  ];
}

/** What a person should do now. Against a condition that ended there is nothing to do, as long as it does not come back. */
export function remedyNow({ remedy, recovering }: Pick<ActiveCondition, 'remedy' | 'recovering'>): Remedy {
  return recovering === undefined ? remedy : 'none';
}

/** Those that change what becomes of the device when they count. One for the record never does. */
export function pendingTrouble<C extends Pick<PendingCondition, 'severity'>>({
  pending = [],
}: {
  readonly pending?: readonly C[];
}): readonly C[] {
  return pending.filter(({ severity }) => severity !== 'info');
}
