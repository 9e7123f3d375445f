import { type Board, type BoardCounts, problemPlace } from './board.ts';
import type { DeviceView, ShownState } from './device-view.ts';
import { type Html, html } from './html.ts';
import { compareNames } from './order.ts';
import { podPath } from './paths.ts';
import { rowHtml } from './row-html.ts';
import { age } from './state-html.ts';
import type { Trend } from './trend.ts';
import { type BoardSection, type BoardView, VIEW_STATES, type ViewSort, viewQuery } from './view.ts';
import { STATE_NAMES } from './words.ts';

/** More devices would make a browser slow. Faulty ones come first, and filters reach the others. */
export const MOST_ROWS = 1_000;

export type TrendsByKey = (key: string) => Trend | undefined;

/** Numbers at the top of the page. Each state leads to the devices that have it. */
export function tilesHtml({ counts, kubelet, now }: Board): Html {
  const { devices, held, heldByParts, states, pending } = counts;
  const shown = VIEW_STATES.filter((state) => state === 'healthy' || states[state] > 0);
  const parts = heldByParts === 0 ? undefined : `, ${heldByParts} held by parts`;
  const { answeredAt } = kubelet;
  const answer = answeredAt === undefined ? html`no answer yet` : html`last answer ${age(Date.parse(answeredAt), Date.parse(now))} ago`;
  const kept = kubelet.kept > 0 ? `, ${kubelet.kept} kept from an earlier answer` : undefined;
  const mood = kubelet.state === 'answers' ? 'healthy' : kubelet.state === 'starts' ? 'unknown' : 'unhealthy';
  return html`<ul class="tiles">
<li><b>${devices}</b> devices, ${held} held${parts}</li>
${shown.map((state) => html`<li><b>${states[state]}</b> <a href="/?state=${state}"><span class="state ${state}">${STATE_NAMES[state]}</span></a>${state === 'healthy' ? waiting(pending) : undefined}</li>\n`)}<li class="wide"><b><span class="state ${mood}">${kubelet.state === 'starts' ? 'waiting' : kubelet.state}</span></b> <a href="/agent">kubelet</a>, ${answer}${kept}</li>
</ul>`;
}

/** How many healthy devices have a pending condition. */
const waiting = (pending: BoardCounts['pending']): Html | undefined =>
  pending === 0 ? undefined : html`<br><small>${pending} with a condition pending</small>`;

export function problemsHtml({ problems }: Pick<Board, 'problems'>): Html {
  if (problems.length === 0) return html``;
  return html`<h2>Problems</h2>
<div class="scroll"><table><thead><tr><th scope="col">Where</th><th scope="col">What</th><th scope="col">Remedy</th></tr></thead><tbody>
${problems.map((one) => html`<tr><th scope="row">${problemPlace(one)}</th><td>${one.message}</td><td>${one.remedy}</td></tr>\n`)}
</tbody></table></div>`;
}

export function unresolvedHtml({ unresolved }: Pick<Board, 'unresolved'>): Html {
  if (unresolved.length === 0) return html``;
  return html`<h2>Allocations without a device</h2>
<div class="scroll"><table><thead><tr><th scope="col">Held by</th><th scope="col">Why</th></tr></thead><tbody>
${unresolved.map(
  (one) =>
    html`<tr><td>${one.namespace}/<a href="${podPath(one)}"><b>${one.pod}</b></a> <small>${one.container}</small><br><small>${one.resource} <code>${one.deviceId}</code></small></td><td>${one.why}</td></tr>\n`,
)}
</tbody></table></div>`;
}

/** Filters as a form, so that they work without a script, and the address has the view. */
export function filterHtml({ devices }: Pick<Board, 'devices'>, view: BoardView): Html {
  const families = distinct(devices.map(({ family }) => family));
  const namespaces = distinct(devices.flatMap(({ holders }) => holders.map(({ namespace }) => namespace)));
  return html`<form class="filter" role="search" aria-label="Filter of devices" action="/" method="get">
<label>Filter <input type="search" name="text" id="filter" value="${view.text}" placeholder="name, model, condition, pod" maxlength="200" autocomplete="off"></label>
${choice('Family', 'family', families, view.family)}
${choice('State', 'state', VIEW_STATES, view.state, (state) => STATE_NAMES[state as ShownState])}
${choice('Namespace', 'namespace', namespaces, view.namespace)}
<label>Holder <input type="search" name="holder" value="${view.holder}" maxlength="200" autocomplete="off"></label>
<label>Sort <select name="sort">${options(Object.keys(SORT_TEXTS), view.sort, (sort) => SORT_TEXTS[sort as ViewSort])}</select></label>
<label>Group <select name="group">${options(Object.keys(GROUP_TEXTS), view.group, (group) => GROUP_TEXTS[group])}</select></label>
<button type="submit">Show</button>
</form>`;
}

const SORT_TEXTS: Readonly<Record<ViewSort, string>> = {
  attention: 'faulty first',
  name: 'name',
  family: 'family',
  state: 'latest change',
  use: 'holder',
  busy: 'busiest',
};

const GROUP_TEXTS: Readonly<Record<string, string>> = { tree: 'device tree', pod: 'pod', topology: 'NUMA and PCIe' };

function choice(label: string, name: string, values: readonly string[], chosen: string | undefined, text = (value: string) => value): Html {
  // A view can name a value that no device has now; it must not be shown as "any".
  const known = chosen === undefined || values.includes(chosen) ? values : [...values, chosen];
  return html`<label>${label} <select name="${name}"><option value="">any</option>${options(known, chosen, text)}</select></label>`;
}

const options = (values: readonly string[], chosen: string | undefined, text: (value: string) => string | undefined): readonly Html[] =>
  values.map((value) =>
    value === chosen
      ? html`<option value="${value}" selected>${text(value)}</option>`
      : html`<option value="${value}">${text(value)}</option>`,
  );

const distinct = (values: readonly string[]): readonly string[] => [...new Set(values)].sort(compareNames);

/** Head of the table: a title leads to the same view in the order of that column. */
export function headHtml(view: BoardView): Html {
  const column = (title: string, sort: ViewSort): Html =>
    view.sort === sort
      ? html`<th scope="col" aria-sort="${sort === 'busy' || sort === 'attention' ? 'descending' : 'ascending'}"><a href="/${viewQuery({ ...view, sort })}" data-sort="${sort}">${title}</a></th>`
      : html`<th scope="col"><a href="/${viewQuery({ ...view, sort })}" data-sort="${sort}">${title}</a></th>`;
  return html`<tr>${column('Device', 'name')}${column('Health', 'attention')}${column('Held by', 'use')}${column('Readings', 'busy')}<th scope="col">30 minutes</th></tr>`;
}

export function sectionTitle(title: string): Html {
  return html`<tr class="group"><th scope="rowgroup" colspan="5">${title}</th></tr>`;
}

/** The table of devices. `left`: rows that it does not show. */
export function tableHtml(sections: readonly BoardSection[], view: BoardView, trendOf: TrendsByKey, nowMs: number): Html {
  let left = MOST_ROWS;
  const bodies = sections.map(({ title, rows }) => {
    const shown = rows.slice(0, Math.max(0, left));
    left -= rows.length;
    const lines = shown.map((one) => html`${rowHtml(one, trendOf(one.row.key), nowMs)}\n`);
    return html`<tbody>${title === undefined ? undefined : sectionTitle(title)}\n${lines}</tbody>`;
  });
  return html`<table id="devices"><caption class="hidden">Devices of this node</caption><thead>${headHtml(view)}</thead>${bodies}</table>`;
}

/** What the filters leave, in words. */
export function shownText(devices: readonly DeviceView[], sections: readonly BoardSection[]): string {
  const shown = new Set(sections.flatMap((section) => section.rows.map(({ row }) => row.key))).size;
  if (devices.length === 0) return 'No probe found a device on this node.';
  const left = sections.reduce((sum, section) => sum + section.rows.length, 0) - MOST_ROWS;
  const all = shown === devices.length ? `${shown} devices.` : `${shown} of ${devices.length} devices.`;
  return left > 0 ? `${all} ${left} more rows are not shown. Use a filter.` : all;
}
