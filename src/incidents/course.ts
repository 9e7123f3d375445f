import { conditionName } from '../model/condition-text.ts';
import { defined } from '../model/defined.ts';
import type { HealthEvent } from '../model/events.ts';
import type { HealthState } from '../model/health.ts';
import type { IncidentSummary } from './record.ts';

/** How an incident went. Without `endMs`, the time of its end is not known. */
export type Course =
  | { readonly is: 'open' }
  | { readonly is: 'ended'; readonly endMs?: number }
  /** The device got no better until the next incident. */
  | { readonly is: 'went on'; readonly next: IncidentSummary }
  /** The device is not listed any more, so nothing shows whether it ended. */
  | { readonly is: 'unknown' };

/** The present state of the device of an incident. */
export interface PresentDevice {
  readonly state: HealthState;
  readonly sinceMs?: number | undefined;
  /** As `Type` or `Type/instance`. */
  readonly conditions: readonly string[];
}

/**
 * Follows an incident to its end. `next`: the one after it of the same device; `events`: of its hardware, the oldest first. Only what is
 * remembered counts: an end that no event tells is an end without a time.
 */
export function courseOf(
  incident: IncidentSummary,
  next: IncidentSummary | undefined,
  events: readonly HealthEvent[],
  now: PresentDevice | undefined,
): Course {
  const { time, states, conditions } = incident;
  const fromMs = Date.parse(time);
  const untilMs = next === undefined ? Number.POSITIVE_INFINITY : Date.parse(next.time);
  // A container that waits has a record, too, and the verdict stays.
  const isOfVerdict = states.slice(1).some((state) => state !== 'healthy');
  const end = events.find(
    (event) =>
      event.timeMs >= fromMs &&
      event.timeMs <= untilMs &&
      (isOfVerdict ? event.transition === 'state' && event.to === 'healthy' : endsOneOf(conditions, event)),
  );
  if (end !== undefined) return { is: 'ended', endMs: end.timeMs };
  if (!isOfVerdict) {
    if (now === undefined) return { is: 'unknown' };
    return { is: now.conditions.some((name) => conditions.includes(name)) ? 'open' : 'ended' };
  }
  if (states.at(-1) === 'healthy') return { is: 'ended' };
  if (next !== undefined) return next.states[0] === 'healthy' ? { is: 'ended' } : { is: 'went on', next };
  if (now === undefined) return { is: 'unknown' };
  if (now.state !== 'healthy') return { is: 'open' };
  return defined({ is: 'ended' as const, endMs: now.sinceMs !== undefined && now.sinceMs >= fromMs ? now.sinceMs : undefined });
}

const endsOneOf = (conditions: readonly string[], { transition, condition: type, instance }: HealthEvent): boolean =>
  transition === 'cleared' && type !== undefined && conditions.includes(conditionName({ type, instance }));
