import { type Html, html } from '../../board/html.ts';
import { podPath } from '../../board/paths.ts';
import type { BoardRow } from '../../board/row.ts';
import { TREND_MS } from '../../board/trend.ts';
import { STATE_NAMES } from '../../board/words.ts';
import type { EventHolder, HealthEvent } from '../../model/events.ts';

const MOST_EVENTS = 20;
const WIDTH = 1_800;

/** The states of a device over half an hour as a strip. `events`: the newest first. Time before the first known state stays empty. */
export function timeline(row: BoardRow, events: readonly HealthEvent[], nowMs: number): Html {
  const fromMs = nowMs - TREND_MS;
  const spans: { readonly state: string; readonly fromMs: number; readonly untilMs: number }[] = [];
  let untilMs = nowMs;
  let state: string = row.state;
  for (const { timeMs, from, to } of events.filter(({ transition }) => transition === 'state')) {
    if (to === undefined || untilMs <= fromMs) break;
    spans.push({ state, fromMs: Math.max(timeMs, fromMs), untilMs });
    untilMs = Math.min(untilMs, timeMs);
    state = from ?? 'none';
  }
  const sinceMs = spans.length === 0 ? (row.sinceMs ?? nowMs) : fromMs;
  if (untilMs > fromMs && state !== 'none') spans.push({ state, fromMs: Math.max(fromMs, Math.min(sinceMs, untilMs)), untilMs });
  const x = (ms: number): number => Math.round(((ms - fromMs) / TREND_MS) * WIDTH);
  const words = spans.toReversed().map((span) => `${span.state} for ${Math.round((span.untilMs - span.fromMs) / 60_000)} minutes`);
  return html`<svg class="strip" viewBox="0 0 ${WIDTH} 14" preserveAspectRatio="none" role="img" aria-label="Health over the last 30 minutes: ${words.join(', ')}">${spans.map(
    (span) =>
      html`<rect class="${span.state}" x="${x(span.fromMs)}" width="${Math.max(4, x(span.untilMs) - x(span.fromMs))}" height="14"/>`,
  )}</svg>`;
}

/** What happened to the device, and who held it then. */
export function eventList(events: readonly HealthEvent[]): Html {
  if (events.length === 0) return html`<p class="soft">Nothing happened since the machine booted.</p>`;
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
  const name = condition === undefined ? reason : instance === undefined ? condition : `${condition} (${instance})`;
  if (transition === 'state' && to !== undefined)
    return html`${from === undefined ? undefined : `${STATE_NAMES[from]} → `}<span class="state ${to}">${STATE_NAMES[to]}</span> ${name}`;
  return html`<b>${name}</b> ${[transition, severity, ignored === true ? 'ignored' : undefined].filter((word) => word !== undefined).join(', ')}`;
}

function holders(list: readonly EventHolder[]): Html {
  if (list.length === 0) return html`<span class="soft">nobody</span>`;
  return html`<ul class="plain">${list
    .slice(0, 4)
    .map((one) => html`<li>${one.namespace}/<a href="${podPath(one)}"><b>${one.pod}</b></a> <small>${one.container}</small></li>`)}${
    list.length > 4 ? html`<li class="soft">and ${list.length - 4} more</li>` : undefined
  }</ul>`;
}
