import { type DeviceView, type ShownState, sinceOf, stateOf } from '../../board/device-view.ts';
import { isGap, usualSpacing } from '../../board/trend.ts';
import type { HealthEvent } from '../../model/events.ts';
import type { ObservedSpans, TimeSpan } from '../../model/observed-spans.ts';

/** What is known of the past of a device. */
export interface KnownPast {
  readonly device: Pick<DeviceView, 'key' | 'health' | 'missingSince'>;
  /** Events of the device, the newest first. */
  readonly events: readonly HealthEvent[];
  /** When absent, all time since the first known state counts. */
  readonly watched: ObservedSpans | undefined;
  /** When this run of the agent read the device; ascending. */
  readonly readTimes: readonly number[];
  readonly nowMs: number;
}

/** A time with its state; without `state` it is unknown. */
export interface PastState extends TimeSpan {
  readonly state?: ShownState;
}

/**
 * The states of a device from a time until now, oldest first and without holes. A state is a claim about time in which somebody looked:
 * before the device was first judged, while no agent ran, and while the device was not read, it has none. A known fault stays while the
 * device is not read, as its verdict does. Pure.
 */
export function statesIn(past: KnownPast, fromMs: number): readonly PastState[] {
  const { nowMs, readTimes } = past;
  const blind = unwatched(past, fromMs);
  const unread = gapsOf(readTimes, nowMs);
  const cuts = [fromMs, nowMs, ...[...blind, ...unread].flatMap((gap) => [gap.fromMs, gap.untilMs])];
  const verdicts = verdictsIn(past);
  const times = [...new Set([...cuts, ...verdicts.map((one) => one.fromMs)])]
    .filter((time) => time >= fromMs && time <= nowMs)
    .sort((a, b) => a - b);
  const pieces = times.slice(0, -1).map((from, at): PastState => {
    const span = { fromMs: from, untilMs: times[at + 1] as number };
    const state = verdicts.find((one) => isIn(span, one))?.state;
    const isFault = state === 'unhealthy' || state === 'missing';
    const isUnknown = blind.some((gap) => isIn(span, gap)) || (!isFault && unread.some((gap) => isIn(span, gap)));
    return isUnknown || state === undefined || state === 'unknown' ? span : { ...span, state };
  });
  return joined(pieces);
}

const isIn = (span: TimeSpan, whole: TimeSpan): boolean => span.fromMs >= whole.fromMs && span.untilMs <= whole.untilMs;

/** What the verdict was, as far as the events reach. */
function verdictsIn({ device, events, nowMs }: KnownPast): readonly PastState[] {
  const spans: PastState[] = [];
  let untilMs = nowMs;
  let state: ShownState | undefined = stateOf(device);
  for (const { timeMs, transition, from } of events) {
    if (transition !== 'state' || timeMs > untilMs) continue;
    spans.push({ fromMs: timeMs, untilMs, ...(state === undefined ? {} : { state }) });
    untilMs = timeMs;
    state = from;
  }
  const since = sinceOf(device);
  const firstMs = since === undefined ? nowMs : Date.parse(since);
  const sinceMs = spans.length === 0 ? firstMs : Number.NEGATIVE_INFINITY;
  return [...spans, { fromMs: sinceMs, untilMs, ...(state === undefined ? {} : { state }) }];
}

/** Times in which no agent judged the device. */
function unwatched({ device, watched, nowMs }: KnownPast, fromMs: number): readonly TimeSpan[] {
  if (watched === undefined) return [];
  const sinceMs = watched.since[device.key] ?? nowMs;
  const seen = watched.spans.filter(({ untilMs }) => untilMs > fromMs && untilMs >= sinceMs);
  const edges = [fromMs, ...seen.flatMap((span) => [Math.max(span.fromMs, sinceMs), span.untilMs])];
  // Each second edge ends a gap. After the last one the agent runs: it makes this page.
  return edges.flatMap((from, at) => (at % 2 === 0 && at + 1 < edges.length ? [{ fromMs: from, untilMs: edges[at + 1] as number }] : []));
}

/** Times between reads that are much longer than usual. */
function gapsOf(times: readonly number[], nowMs: number): readonly TimeSpan[] {
  const spacing = usualSpacing(times);
  return [...times, nowMs].flatMap((untilMs, at): TimeSpan[] => {
    const fromMs = times[at - 1];
    return fromMs !== undefined && isGap(fromMs, untilMs, spacing) ? [{ fromMs, untilMs }] : [];
  });
}

function joined(pieces: readonly PastState[]): readonly PastState[] {
  const spans: PastState[] = [];
  for (const piece of pieces) {
    const last = spans.at(-1);
    if (last !== undefined && last.state === piece.state) spans[spans.length - 1] = { ...last, untilMs: piece.untilMs };
    else spans.push(piece);
  }
  return spans;
}
