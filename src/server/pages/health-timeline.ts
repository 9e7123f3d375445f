import { type Html, html } from '../../board/html.ts';
import { podPath } from '../../board/paths.ts';
import { TREND_MS } from '../../board/trend.ts';
import { STATE_NAMES } from '../../board/words.ts';
import { conditionName } from '../../model/condition-text.ts';
import type { EventHolder, HealthEvent } from '../../model/events.ts';
import type { TimeSpan } from '../../model/observed-spans.ts';
import { type KnownPast, statesIn } from './known-past.ts';

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
