import { seconds } from '../../model/duration.ts';
import type { HealthEvent } from '../../model/events.ts';
import { type ConditionState, conditionKey, type IncidentTally } from './memory.ts';

/** A device that reaches a state again within this time is in the same incident. */
const SAME_MS = seconds(10);

type Tallies = readonly IncidentTally[] | undefined;

/**
 * Counts the change of the verdict among the events of one judgement. A change counts once for each state that it reaches. It does not count
 * when the condition that leads already led to this state in its present occurrence, as after a time in which the device was not read.
 */
export function talliedIncidents(
  before: Tallies,
  events: readonly Omit<HealthEvent, 'id'>[],
  conditions: Readonly<Record<string, ConditionState>>,
): Tallies {
  const change = events.find(({ transition }) => transition === 'state');
  if (change?.to === undefined || change.to === 'healthy') return before;
  const { to: state, condition, instance, timeMs } = change;
  const tallies = before ?? [];
  if (tallies.some((tally) => tally.state === state && timeMs - tally.lastMs <= SAME_MS)) return before;
  const known = tallies.find((tally) => tally.state === state && tally.condition === condition);
  const since = condition === undefined ? undefined : conditions[conditionKey({ type: condition, instance })]?.sinceMs;
  if (known !== undefined && since !== undefined && since <= known.lastMs) return before;
  const counted = { state, ...(condition === undefined ? {} : { condition }), count: (known?.count ?? 0) + 1, lastMs: timeMs };
  return [...tallies.filter((tally) => tally !== known), counted];
}
