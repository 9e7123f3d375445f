import { conditionSentences } from '../../board/condition-text.ts';
import { durationText } from '../../board/units.ts';
import { REMEDY_TEXTS, STATE_NAMES } from '../../board/words.ts';
import type { Allocation } from '../../model/allocation.ts';
import type { ActiveCondition, HealthState, IgnoredCondition, PendingCondition } from '../../model/health.ts';
import type { DeviceState } from '../../model/snapshot.ts';
import { pendingTrouble, remedyNow, standingOf } from '../../model/standing.ts';
import { timeText } from '../api/names.ts';
import { type Html, html } from './html.ts';
import { PAGE_STYLE } from './page-style.ts';

/** Data that all pages share. */
export interface PageFrame {
  readonly version: string;
  /** Name of the node; absent when it is not configured. */
  readonly node: string | undefined;
  readonly telemetryPath: string;
  /** False when the API is off. */
  readonly hasApi: boolean;
  readonly nowMs: number;
}

const API_LINKS = html`<a href="/api/v1/devices">Devices</a><a href="/api/v1/allocations">Allocations</a><a href="/api/v1/status">Status</a>`;

export function document(frame: PageFrame, title: string, body: Html, footer: Html): string {
  const page = html`<title>${title}</title>
<body>
<header>
<h1><a href="/">device-agent</a></h1> <span class="soft">${[frame.node, frame.version].filter((text) => text !== undefined).join(' · ')}</span>
<nav aria-label="Other forms"><a href="${frame.telemetryPath}">Metrics</a>${frame.hasApi ? API_LINKS : undefined}</nav>
</header>
<main>
${body}
</main>
<footer>${footer}</footer>
</body>`;
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>${PAGE_STYLE}</style>
${page.text}
</html>
`;
}

export function devicePath({ device }: DeviceState): string {
  return `/devices/${encodeURIComponent(device.family)}/${encodeURIComponent(device.id)}`;
}

export function shownState(state: DeviceState): HealthState | 'missing' {
  return state.missingSinceMs === undefined ? state.verdict.state : 'missing';
}

export function healthCell(state: DeviceState, nowMs: number): Html {
  const shown = shownState(state);
  const { sinceMs, conditions, pending = [], ignored } = state.verdict;
  const since = state.missingSinceMs ?? sinceMs;
  const line = (condition: ActiveCondition | PendingCondition): Html => conditionLine(condition, nowMs);
  return html`<span class="state ${shown}">${STATE_NAMES[shown]}</span>${
    since > 0 ? html` <small>for ${durationText(nowMs - since)}</small>` : undefined
  }${standingText(state)}${
    state.stale ? html`<p class="condition">Not read for ${durationText(nowMs - state.readAtMs)}.</p>` : undefined
  }${conditions.map(line)}${pending.map(line)}${ignored?.map(ignoredLine)}`;
}

/** Text next to the state that shows pending, recovering and unverified conditions. */
function standingText({ verdict }: DeviceState): Html | undefined {
  const [leader] = verdict.state === 'healthy' ? [] : verdict.conditions;
  const [first, ...others] = pendingTrouble(verdict);
  const marked = [leader, first].filter((condition) => condition !== undefined).filter((condition) => standingOf(condition).length > 0);
  if (marked.length === 0) return undefined;
  const texts = marked.map((condition) => `${nameOf(condition)} ${standingOf(condition).join(', ')}`);
  return html`<b>, ${texts.join(', ')}</b>${others.length > 0 ? ` and ${others.length} more` : undefined}`;
}

function conditionLine(condition: ActiveCondition | PendingCondition, nowMs: number): Html {
  const labels = [condition.severity, condition.reason, ...standingOf(condition)].join(', ');
  const remedy = REMEDY_TEXTS[remedyNow(condition)];
  return html`<p class="condition"><b>${nameOf(condition)}</b> <small>${labels}</small>${conditionSentences(condition, nowMs).map(
    (text) => html`<br>${text}`,
  )}${remedy === undefined ? undefined : html`<br><b>${remedy}</b>`}</p>`;
}

function ignoredLine(condition: IgnoredCondition): Html {
  const until = timeText(condition.ignoredUntilMs)?.slice(0, 10);
  return html`<p class="condition soft">${nameOf(condition)} is ignored until ${until}: ${condition.ignoreReason}</p>`;
}

function nameOf({ type, instance }: Pick<ActiveCondition, 'type' | 'instance'>): string {
  return instance === undefined ? type : `${type} (${instance})`;
}

export function holderList(holders: readonly Allocation[], most: number): Html {
  if (holders.length === 0) return html`<span class="soft">free</span>`;
  const rest = holders.length - most;
  return html`<ul class="plain">${holders
    .slice(0, most)
    .map(
      ({ namespace, pod, container, resource, deviceId }) =>
        html`<li>${namespace}/<b>${pod}</b> <small>${container}</small><br><small>${resource} <code>${deviceId}</code></small></li>`,
    )}${rest > 0 ? html`<li class="soft">and ${rest} more</li>` : undefined}</ul>`;
}
