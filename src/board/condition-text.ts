import type { ActiveCondition, PendingCondition, Verdict } from '../model/health.ts';
import { durationText } from './units.ts';

type Told = Pick<ActiveCondition, 'message' | 'unverifiedSinceMs' | 'recovering'> & Partial<Pick<PendingCondition, 'countsAtMs'>>;

/** Returns sentences with the message and the status of a condition. The message was written while the condition held. */
export function conditionSentences({ message, unverifiedSinceMs, recovering, countsAtMs }: Told, nowMs: number): readonly string[] {
  const unverified = (question: string): string =>
    `Since ${clockText(unverifiedSinceMs ?? nowMs, nowMs)} no reading shows whether it ${question}.`;
  const isUnverified = unverifiedSinceMs !== undefined;
  if (countsAtMs !== undefined) {
    const countsFrom = `If it continues, it counts from ${clockText(countsAtMs, nowMs)}.`;
    const unknown = `${unverified('still holds')} Until a reading shows that it does, it does not count.`;
    return [message, isUnverified ? unknown : `It does not count yet. ${countsFrom}`];
  }
  if (recovering === undefined) return isUnverified ? [message, unverified('still holds')] : [message];
  const withdrawn = `If it does not return, the first reading after ${clockText(recovering.untilMs, nowMs)} withdraws it.`;
  return [
    `It ended ${durationText(nowMs - recovering.sinceMs)} ago. Its last message was '${message}'.`,
    isUnverified ? `${unverified('returned')} Until a reading shows that it did not, it counts.` : `${withdrawn} No action is needed.`,
  ];
}

export function probationText({ condition, busyMs, neededMs }: NonNullable<Verdict['probation']>): string {
  const after = condition === undefined ? '' : ` after ${condition}`;
  const need = `${durationText(neededMs)} of work without a fault`;
  const sofar = busyMs === undefined ? 'no read has shown whether it works' : `it worked ${durationText(busyMs)} so far`;
  return `On probation${after}: it needs ${need}; ${sofar}.`;
}

/** The latest time that has four digits for the year. */
const LATEST_MS = Date.parse('9999-12-31T23:59:59.999Z');

/** Formats a time as `12:03:20 UTC`, with the date if it is not today. */
export function clockText(ms: number, nowMs: number): string {
  const [day, time] = isoText(ms).split('T');
  const clock = `${time?.slice(0, 8)} UTC`;
  return day === isoText(nowMs).split('T')[0] ? clock : `${day} ${clock}`;
}

const isoText = (ms: number): string => new Date(Math.min(ms, LATEST_MS)).toISOString();
