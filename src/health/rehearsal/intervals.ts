import type { EventHolder } from '../../model/events.ts';
import type { HealthState } from '../../model/health.ts';
import type { ReplayedState } from './replay.ts';

/** A span of steady time, `toMs` not included. */
export interface Span {
  readonly fromMs: number;
  readonly toMs: number;
}

/** A span in which the outcome of one device was the same. */
export interface Interval extends Span {
  readonly state: HealthState;
  /** The kubelet gets `Unhealthy`. */
  readonly isOut: boolean;
  /** Conditions that led the verdict, the first one first: `Type` or `Type/instance`. */
  readonly conditions: readonly string[];
  /** All that held the device in the span. */
  readonly holders: readonly EventHolder[];
  /** The state went on at the end of the record. */
  readonly isOpen?: true;
}

/** The outcomes of one device within a span, without the gaps in which no agent looked. */
export function intervalsOf(states: readonly ReplayedState[], within: Span, gaps: readonly Span[]): readonly Interval[] {
  const intervals: Interval[] = [];
  for (const [index, state] of states.entries()) {
    if (state.state === undefined) continue;
    const toMs = Math.min(states[index + 1]?.fromMs ?? within.toMs, within.toMs);
    const span = { fromMs: Math.max(state.fromMs, within.fromMs), toMs };
    // What began with the last judgement has no length yet.
    const isNew = span.fromMs === within.toMs;
    for (const part of isNew ? [span] : without(span, gaps)) {
      add(intervals, { ...part, state: state.state, isOut: state.isOut, conditions: namesOf(state), holders: state.holders });
    }
  }
  return intervals.map((interval) => (interval.toMs === within.toMs ? { ...interval, isOpen: true as const } : interval));
}

function namesOf({ leader }: ReplayedState): readonly string[] {
  if (leader === undefined) return [];
  return [leader.instance === undefined ? leader.type : `${leader.type}/${leader.instance}`];
}

function add(intervals: Interval[], next: Interval): void {
  const last = intervals.at(-1);
  const isSame = last !== undefined && last.toMs === next.fromMs && last.state === next.state && last.isOut === next.isOut;
  if (!isSame) {
    intervals.push(next);
    return;
  }
  const conditions = [...new Set([...last.conditions, ...next.conditions])];
  intervals[intervals.length - 1] = { ...last, toMs: next.toMs, conditions, holders: union(last.holders, next.holders) };
}

function union(a: readonly EventHolder[], b: readonly EventHolder[]): readonly EventHolder[] {
  if (a === b) return a;
  const byName = new Map([...a, ...b].map((holder) => [JSON.stringify(holder), holder]));
  return byName.size === a.length ? a : [...byName.values()];
}

/** The parts of a span that are in none of the gaps. */
function without(span: Span, gaps: readonly Span[]): readonly Span[] {
  let rest = span;
  const parts: Span[] = [];
  for (const gap of gaps) {
    if (gap.toMs <= rest.fromMs || gap.fromMs >= rest.toMs) continue;
    if (gap.fromMs > rest.fromMs) parts.push({ fromMs: rest.fromMs, toMs: gap.fromMs });
    rest = { fromMs: Math.min(gap.toMs, rest.toMs), toMs: rest.toMs };
  }
  return rest.fromMs < rest.toMs ? [...parts, rest] : parts;
}

/** Whether the state or the health for the kubelet differs at any time. */
export function areDifferent(a: readonly Interval[], b: readonly Interval[]): boolean {
  const isSame = (x: Interval, y: Interval | undefined): boolean =>
    y !== undefined && x.fromMs === y.fromMs && x.toMs === y.toMs && x.state === y.state && x.isOut === y.isOut;
  return a.length !== b.length || !a.every((interval, index) => isSame(interval, b[index]));
}

/** Milliseconds for which the kubelet had `Unhealthy`. */
export function outMs(intervals: readonly Interval[]): number {
  return intervals.reduce((sum, { isOut, fromMs, toMs }) => sum + (isOut ? toMs - fromMs : 0), 0);
}
