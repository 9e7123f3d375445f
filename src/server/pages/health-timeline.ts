import { nameWithInstance } from '../../board/condition-text.ts';
import { type ConditionView, type DeviceView, type DisplayState, sinceOf, stateOf } from '../../board/device-view.ts';
import { type Html, html } from '../../board/html.ts';
import { podLink, podsOf } from '../../board/row-html.ts';
import { clock, mark } from '../../board/state-html.ts';
import { countedText } from '../../board/summary.ts';
import { timeAxis } from '../../board/time-axis.ts';
import { isGap, TREND_MS, usualSpacing } from '../../board/trend.ts';
import { timeText } from '../../board/units.ts';
import { STATE_NAMES } from '../../board/words.ts';
import { defined } from '../../model/defined.ts';
import { durationText } from '../../model/duration.ts';
import type { EventHolder, HealthEvent } from '../../model/events.ts';
import type { ObservedSpans, TimeSpan } from '../../model/observed-spans.ts';
import { table } from './page-parts.ts';

const MOST_EVENTS = 20;
const HEIGHT = 14;

/** The states of a device over half an hour at most as a strip, from the first known one on. It is empty for times without a reading. */
export function timeline(past: HealthPast): Html {
  const all = statesIn(past, past.nowMs - TREND_MS);
  const first = all.findIndex(({ state }) => state !== undefined);
  const spans = first < 0 ? all : all.slice(first);
  const fromMs = Math.min(spans[0]?.fromMs ?? 0, past.nowMs - 10_000);
  const whole = Math.max(1, past.nowMs - fromMs);
  const x = (ms: number): string => `${Math.round(((ms - fromMs) / whole) * 10_000) / 100}%`;
  const words = spans.map(({ state, fromMs: from, untilMs }) => `${state ?? 'not known'} for ${durationText(untilMs - from)}`);
  const known = spans.filter((span) => span.state !== undefined);
  return html`<div class="body"><svg class="strip" height="${HEIGHT}" data-from="${Math.round(fromMs)}" data-until="${past.nowMs}" role="img" aria-label="Verdict: ${words.join(', ')}">${known.map(
    (span) =>
      html`<rect class="${span.state}" x="${x(span.fromMs)}" width="${Math.max(0.3, Math.round(((span.untilMs - span.fromMs) / whole) * 10_000) / 100)}%" height="${HEIGHT}"/>`,
  )}</svg>${timeAxis(fromMs, past.nowMs)}${spans.length === known.length ? undefined : html`<p class="soft">The strip is empty for times in which the state of the device was not known.</p>`}</div>`;
}

/** What happened to the device, and who held it then. */
export function eventList(events: readonly HealthEvent[], { health }: Pick<DeviceView, 'health'>, nowMs: number): Html {
  if (events.length === 0)
    return html`<p class="body soft">No event is known. Events begin when the agent first reads the device, and end with a reboot.</p>`;
  const rows = events
    .slice(0, MOST_EVENTS)
    .map(
      (event) =>
        html`<td>${clock(timeText(event.timeMs), nowMs)}</td><td>${what(event)}${waited(event, health.conditions)}<br><small>${event.message}</small></td><td>${holders(event.holders)}</td>`,
    );
  const left = events.length - MOST_EVENTS;
  return html`${table(['Time, UTC', 'What', 'Held then by'], rows)}${left > 0 ? html`<p class="body soft">${left} earlier events are not shown.</p>` : undefined}`;
}

function what({ transition, condition, instance, reason, from, to, severity, ignored }: HealthEvent): Html {
  const name = condition === undefined ? reason : nameWithInstance({ type: condition, ...defined({ instance }) });
  if (transition === 'state' && to !== undefined)
    return html`${from === undefined ? undefined : `${STATE_NAMES[from]} → `}${mark(to)} ${name}`;
  return html`<b>${name}</b> ${[transition, severity, ignored === true ? 'ignored' : undefined].filter((word) => word !== undefined).join(', ')}`;
}

/** How long the condition lasted before it counted, if it still holds. */
function waited({ transition, condition, instance, timeMs }: HealthEvent, conditions: readonly ConditionView[]): string | undefined {
  if (transition !== 'raised') return undefined;
  const since = conditions.find((one) => one.type === condition && one.instance === instance)?.since;
  const counted = countedText(since, timeText(timeMs));
  return counted && `, ${counted}`;
}

function holders(list: readonly EventHolder[]): Html {
  const pods = podsOf(list);
  if (pods.length === 0) return html`<span class="soft">no container</span>`;
  return html`${pods.slice(0, 4).map((one, at) => html`${at === 0 ? undefined : ', '}${podLink(one)}`)}${pods.length > 4 ? ` and ${pods.length - 4} more` : undefined}`;
}

/** What is known of the past of a device. */
export interface HealthPast {
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
interface PastState extends TimeSpan {
  readonly state?: DisplayState;
}

/**
 * The states of a device from a time until now, oldest first and without holes. A state is a claim about time in which somebody looked:
 * before the device was first judged, while no agent ran, and while the device was not read, it has none. A known fault stays while the
 * device is not read, as its verdict does. Pure.
 */
export function statesIn(past: HealthPast, fromMs: number): readonly PastState[] {
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
function verdictsIn({ device, events, nowMs }: HealthPast): readonly PastState[] {
  const spans: PastState[] = [];
  let untilMs = nowMs;
  let state: DisplayState | undefined = stateOf(device);
  for (const { timeMs, transition, from } of events) {
    if (transition !== 'state' || timeMs > untilMs) continue;
    spans.push({ fromMs: timeMs, untilMs, ...defined({ state }) });
    untilMs = timeMs;
    state = from;
  }
  const since = sinceOf(device);
  const firstMs = since === undefined ? nowMs : Date.parse(since);
  const sinceMs = spans.length === 0 ? firstMs : Number.NEGATIVE_INFINITY;
  return [...spans, { fromMs: sinceMs, untilMs, ...defined({ state }) }];
}

/** Times in which no agent judged the device. */
function unwatched({ device, watched, nowMs }: HealthPast, fromMs: number): readonly TimeSpan[] {
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
