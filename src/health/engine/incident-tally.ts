import { seconds } from '../../model/duration.ts';
import type { HealthEvent } from '../../model/events.ts';
import { type ConditionState, conditionKey, type HealthMemory, type IncidentTally, type PastDevice } from './memory.ts';

/** A device that reaches a state again within this time is in the same incident. */
const SAME_MS = seconds(10);
/** Hardware that is not listed and keeps its counts over a reboot. */
const MOST_PAST = 256;

type Event = Omit<HealthEvent, 'id'>;
type Tallies = readonly IncidentTally[] | undefined;

/**
 * Counts the change of the verdict among the events of one judgement. A change counts once for each state that it reaches. It does not count
 * when the condition that leads already led to this state in its present occurrence, as after a time in which the device was not read.
 */
export function talliedIncidents(before: Tallies, events: readonly Event[], conditions: Readonly<Record<string, ConditionState>>): Tallies {
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

/** The counts of the same hardware from before and from since it was listed. */
export function joined(before: Tallies, since: Tallies): Tallies {
  if (before === undefined || since === undefined) return before ?? since;
  const isSame = (a: IncidentTally, b: IncidentTally): boolean => a.state === b.state && a.condition === b.condition;
  const added = since.map((one) => ({ ...one, count: one.count + (before.find((other) => isSame(one, other))?.count ?? 0) }));
  return [...before.filter((one) => !since.some((other) => isSame(one, other))), ...added];
}

/** What the next boot needs of the memory: counts of incidents, those of the hardware that was listed last. */
export function pastOf({ devices, past = {} }: HealthMemory): Readonly<Record<string, PastDevice>> {
  const all: [string, PastDevice][] = Object.entries({ ...past, ...devices }).flatMap(([key, { device, listedAtMs, incidents = [] }]) =>
    incidents.length === 0 ? [] : [[key, { device, listedAtMs, incidents: incidents.map(ended) }]],
  );
  return Object.fromEntries(all.sort(([, a], [, b]) => b.listedAtMs - a.listedAtMs).slice(0, MOST_PAST));
}

/** No condition goes on over a reboot, so its time must not keep an incident of the next boot from being counted. */
const ended = (tally: IncidentTally): IncidentTally => ({ ...tally, lastMs: 0 });
