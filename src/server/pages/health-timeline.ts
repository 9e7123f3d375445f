import { type DeviceView, type ShownState, sinceOf, stateOf } from '../../board/device-view.ts';
import { type Html, html } from '../../board/html.ts';
import { podPath } from '../../board/paths.ts';
import { isGap, TREND_MS, usualSpacing } from '../../board/trend.ts';
import { STATE_NAMES } from '../../board/words.ts';
import { conditionName } from '../../model/condition-text.ts';
import type { EventHolder, HealthEvent } from '../../model/events.ts';
import type { ObservedSpans, TimeSpan } from '../../model/observed-spans.ts';

const MOST_EVENTS = 20;
const WIDTH = 1_800;

/** The states of a device over half an hour as a strip. It is empty for times without a reading. */
export function timeline(past: KnownPast): Html {
  const fromMs = past.nowMs - TREND_MS;
  const spans = statesIn(past, fromMs);
  const x = (ms: number): number => Math.round(((ms - fromMs) / TREND_MS) * WIDTH);
  const minutes = ({ fromMs: from, untilMs }: TimeSpan): string => `${Math.round((untilMs - from) / 60_000)} minutes`;
  const words = spans.map((span) => `${span.state ?? 'not known'} for ${minutes(span)}`);
  const known = spans.filter((span) => span.state !== undefined);
  const left =
    spans.length === known.length ? undefined : html`<p class="soft">The strip is empty for times in which the device was not read.</p>`;
  return html`<svg class="strip" viewBox="0 0 ${WIDTH} 14" preserveAspectRatio="none" role="img" aria-label="Health over the last 30 minutes: ${words.join(', ')}">${known.map(
    (span) =>
      html`<rect class="${span.state}" x="${x(span.fromMs)}" width="${Math.max(4, x(span.untilMs) - x(span.fromMs))}" height="14"/>`,
  )}</svg>${left}`;
}

/** What happened to the device, and who held it then. */
export function eventList(events: readonly HealthEvent[]): Html {
  if (events.length === 0)
    return html`<p class="soft">No event is known. Events begin when the agent first reads the device, and end with a reboot.</p>`;
  return html`<div class="scroll"><table><thead><tr><th scope="col">Time</th><th scope="col">What</th><th scope="col">Held then by</th></tr></thead><tbody>
${events
  .slice(0, MOST_EVENTS)
  .map(
    (event) =>
      html`<tr><th scope="row"><time datetime="${iso(event.timeMs)}">${iso(event.timeMs).slice(0, 19).replace('T', ' ')} UTC</time></th><td>${what(event)}<br><small>${event.message}</small></td><td>${holders(event.holders)}</td></tr>\n`,
  )}</tbody></table></div>${events.length > MOST_EVENTS ? html`<p class="soft">${events.length - MOST_EVENTS} earlier events are not shown.</p>` : undefined}`;
}

const iso = (ms: number): string => new Date(ms).toISOString();

function what({ transition, condition, instance, reason, from, to, severity, ignored }: HealthEvent): Html {
  const name = condition === undefined ? reason : conditionName({ type: condition, instance });
  if (transition === 'state' && to !== undefined)
    return html`${from === undefined ? undefined : `${STATE_NAMES[from]} → `}<span class="state ${to}">${STATE_NAMES[to]}</span> ${name}`;
  return html`<b>${name}</b> ${[transition, severity, ignored === true ? 'ignored' : undefined].filter((word) => word !== undefined).join(', ')}`;
}

function holders(list: readonly EventHolder[]): Html {
  if (list.length === 0) return html`<span class="soft">no container</span>`;
  return html`<ul class="plain">${list
    .slice(0, 4)
    .map((one) => html`<li>${one.namespace}/<a href="${podPath(one)}"><b>${one.pod}</b></a> <small>${one.container}</small></li>`)}${
    list.length > 4 ? html`<li class="soft">and ${list.length - 4} more</li>` : undefined
  }</ul>`;
}

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
interface PastState extends TimeSpan {
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
