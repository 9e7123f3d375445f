import { type Remedy, remedyNow } from './health.ts';

/**
 * Qualifies a condition: `pending` does not count yet, `recovering` ended but still counts, `unverified` is kept from earlier readings
 * because its status is unknown now.
 */
export type ConditionPhase = 'pending' | 'recovering' | 'unverified';

/** Facts that give the phase of a condition. Its times are numbers within the agent and text in its answers. */
interface Phased {
  readonly countsAtMs?: number;
  readonly countsAt?: string;
  readonly recovering?: object;
  readonly unverifiedSinceMs?: number;
  readonly unverifiedSince?: string;
}

interface Named {
  readonly type: string;
  readonly instance?: string | undefined;
}

/** A condition as every text shows it. */
export interface PhasedCondition extends Named, Phased {
  readonly reason: string;
  readonly message: string;
  readonly remedy: Remedy;
}

/** Empty for a condition that counts and that the latest reading found. */
export function phasesOf({ countsAtMs, countsAt, recovering, unverifiedSinceMs, unverifiedSince }: Phased): readonly ConditionPhase[] {
  return [
    ...((countsAtMs ?? countsAt) === undefined ? [] : (['pending'] as const)),
    ...(recovering === undefined ? [] : (['recovering'] as const)),
    ...((unverifiedSinceMs ?? unverifiedSince) === undefined ? [] : (['unverified'] as const)),
  ];
}

/** `PortDown/1`: as the configuration and the commands take it. */
export const conditionName = ({ type, instance }: Named): string => (instance === undefined ? type : `${type}/${instance}`);

/** `PortDown/1 pending, unverified`. */
export const nameWithPhase = (condition: Named & Phased): string => withPhase(conditionName(condition), condition);

/** `PortDown/1 (LinkPolling) recovering`. It has no value that changes while the condition holds. */
export const conditionHead = (condition: Named & Phased & { readonly reason: string }): string =>
  withPhase(`${conditionName(condition)} (${condition.reason})`, condition);

/** All of a condition in one line. The message of one that ended describes the past, and nothing is to be done. */
export function conditionLine(condition: PhasedCondition): string {
  const { message, recovering } = condition;
  if (recovering !== undefined) return `${conditionHead(condition)}: it was '${message}'`;
  const remedy = remedyNow(condition);
  return `${conditionHead(condition)}: ${message}${remedy === 'none' ? '' : `; remedy: ${remedy}`}`;
}

const withPhase = (text: string, condition: Phased): string =>
  [text, phasesOf(condition).join(', ')].filter((part) => part !== '').join(' ');
