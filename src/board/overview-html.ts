import { type Board, problemPlace, unreadText } from './board.ts';
import { nameWithInstance } from './condition-text.ts';
import { type Appearance, appearedAt, conditionsOf, type DeviceView, parentKey } from './device-view.ts';
import { type Html, html } from './html.ts';
import { APPEARANCES, compareNames, rankOf, stateCounts } from './order.ts';
import { devicePath, incidentPath, podPath } from './paths.ts';
import { foldHtml, podLink, podsOf, rowHtml } from './row-html.ts';
import { age, clock, mark, shape } from './state-html.ts';
import {
  countedText,
  doubtText,
  type Finding,
  findingSince,
  findingsOf,
  hitText,
  sentenceOf,
  subjectOf,
  wellText,
  worstOf,
} from './summary.ts';
import type { Trend } from './trend.ts';
import { type BoardSection, type BoardView, DEFAULT_VIEW, filterText, type ViewRow, type ViewSort, viewQuery } from './view.ts';

/** More devices would make a browser slow. Faulty ones come first, and filters reach the others. */
export const MOST_ROWS = 1_000;
/** From so many rows on, parts without a fault of their own are one row. */
const FOLDED_FROM = 40;
const MOST_ALSO = 3;

export type TrendsByKey = (key: string) => Trend | undefined;

/** What is wrong, who is hit, what to do, and the command; then what else is wrong. */
export function sayHtml(board: Board): Html {
  const nowMs = Date.parse(board.now);
  const findings = findingsOf(board);
  const [first, ...others] = findings;
  if (first === undefined)
    return html`<section class="say ${worstOf(board, findings)}" aria-label="State of the node"><h1>${wellText(board)}</h1></section>`;
  const also = others.slice(0, MOST_ALSO).map((one) => alsoHtml(one, nowMs));
  const left = others.length - also.length;
  return html`<section class="say ${worstOf(board, findings)}" aria-label="State of the node">
<h1>${doubtText(board, first)}${headline(first)}</h1>
<p>${detail(first, board, nowMs)}</p>${first.command === undefined ? undefined : html`\n${commandHtml(first.command)}`}${
    also.length === 0
      ? undefined
      : html`\n<ul class="also">${also}${left > 0 ? html`<li><a href="#rows">and ${left} more ${left === 1 ? 'fault' : 'faults'}</a></li>` : undefined}</ul>`
  }
</section>`;
}

/** The script of the page adds a button that copies it. One click marks it without a script, too. */
export const commandHtml = (command: string): Html => html`<div class="cmd"><code>${command}</code></div>`;

/** The sentence with links to the device and to the pod. */
function headline(finding: Finding): Html {
  const { devices, pods, phrase, advice } = finding;
  const [device] = devices;
  const subject =
    devices.length === 1 && device !== undefined ? html`<a href="${devicePath(device)}">${device.name}</a>` : subjectOf(finding);
  const hit = hitText(finding);
  const [only] = pods;
  // A pod that has ended has no page.
  const who =
    hit !== undefined && pods.length === 1 && only !== undefined
      ? html`<a href="${podPath(podOf(only))}">${only}</a>${hit.slice(only.length)}`
      : hit;
  return html`${subject} ${phrase}${who && html`, ${who}`}${advice === undefined ? undefined : `: ${advice}`}`;
}

const MOST_PODS = 4;

function podLinks(pods: readonly string[]): Html {
  const left = pods.length - MOST_PODS;
  return html`${pods.slice(0, MOST_PODS).map((name, at) => html`${at === 0 ? undefined : ', '}<a href="${podPath(podOf(name))}">${name}</a>`)}${left > 0 ? `, ${left} more` : undefined}`;
}

function podOf(name: string): { readonly namespace: string; readonly pod: string } {
  const [namespace = '', pod = ''] = name.split('/');
  return { namespace, pod };
}

function detail(finding: Finding, board: Board, nowMs: number): Html {
  const { appearance, devices, lead, drains, pods, ended, command } = finding;
  const [first] = devices;
  const since = findingSince(finding);
  const unknownAt = appearance === 'unknown' && first ? appearedAt(first) : undefined;
  const all = [...board.devices.flatMap(({ holders }) => holders), ...board.unresolved];
  const others = new Set(all.map(({ namespace, pod }) => `${namespace}/${pod}`));
  for (const pod of pods) others.delete(pod);
  const otherText = `${others.size} other ${others.size === 1 ? 'pod' : 'pods'}`;
  const parts = [
    since && html`${appearance === 'recovering' ? 'Ended' : 'Since'} <b>${clock(since, nowMs)} UTC</b>, ${age(Date.parse(since), nowMs)}`,
    appearance === 'recovering' ? undefined : countedText(since, first?.incident?.countedAt),
    lead?.countsAt && html`counts from <b>${clock(lead.countsAt, nowMs)} UTC</b>`,
    first && conditionNames(first),
    unknownAt && lead && html`unknown for ${age(Date.parse(unknownAt), nowMs)}`,
    pods.length > 1 ? html`held by ${podLinks(pods)}` : undefined,
    ended.length > 1 ? `was held by ${ended.slice(0, MOST_PODS).join(', ')}${ended.length > MOST_PODS ? ', …' : ''}` : undefined,
    devices.length > 1
      ? html`${devices.slice(0, 6).map((one, at) => html`${at === 0 ? undefined : ', '}<a href="${devicePath(one)}">${one.name}</a>`)}${devices.length > 6 ? ', …' : undefined}`
      : undefined,
    first === undefined || lead?.countsAt !== undefined ? undefined : recordLink(finding),
    drains && command !== undefined && others.size > 0
      ? html`Draining also ends <b>${otherText}</b> that ${others.size === 1 ? 'holds' : 'hold'} devices here`
      : undefined,
    drains && command !== undefined && board.kubelet.state !== 'answers'
      ? `which other pods draining ends is not known (kubelet: ${board.kubelet.state})`
      : undefined,
  ].filter((one) => one !== undefined && one !== '');
  return html`${parts.map((one, at) => (at === 0 ? one : html` · ${one}`))}`;
}

/** To the record of the fault; before there is one, to what happened to the device. */
export function recordLink({ devices }: Pick<Finding, 'devices'>): Html {
  const recorded = devices.find(({ incident }) => incident !== undefined)?.incident;
  return recorded === undefined
    ? html`<a href="${devicePath(devices[0] as DeviceView)}#record">Events and records</a>`
    : html`<a href="${incidentPath(recorded.id)}">Record of the incident</a>`;
}

function conditionNames(device: DeviceView): string {
  const names = conditionsOf(device)
    .filter(({ severity }) => severity !== 'info')
    .map(nameWithInstance);
  return names.slice(0, 4).join(', ') + (names.length > 4 ? `, ${names.length - 4} more` : '');
}

function alsoHtml(finding: Finding, nowMs: number): Html {
  const { appearance, lead, command } = finding;
  const since = findingSince(finding);
  const when =
    lead?.countsAt !== undefined
      ? html` · counts from ${clock(lead.countsAt, nowMs)}`
      : since && html` · ${appearance === 'recovering' ? 'ended' : 'since'} ${clock(since, nowMs)}, ${age(Date.parse(since), nowMs)}`;
  const record = lead?.countsAt === undefined ? html` · ${recordLink(finding)}` : undefined;
  return html`<li>${mark(appearance)} <span>${headline(finding)}${when}${record}</span>${command && commandHtml(command)}</li>`;
}

/** Title of the tab: `(1) gpu-node-7: GPU 0 is lost`. */
export function titleOf(board: Board): string {
  const [first, ...others] = findingsOf(board);
  const node = board.node ?? 'device-agent';
  if (first === undefined) return `${node}: ${sentenceOf(board, [])}`;
  return `(${others.length + 1}) ${node}: ${subjectOf(first)} ${first.phrase}`;
}

/** Each pod that holds devices, with the worst state of them. */
export function podsHtml({ devices }: Pick<Board, 'devices'>): Html {
  const pods = new Map<string, { readonly namespace: string; readonly pod: string; readonly held: DeviceView[] }>();
  for (const device of devices)
    for (const { namespace, pod } of podsOf(device.holders.filter(({ part }) => part === undefined))) {
      const name = `${namespace}/${pod}`;
      const known = pods.get(name) ?? { namespace, pod, held: [] };
      known.held.push(device);
      pods.set(name, known);
    }
  const rank = (held: readonly DeviceView[]): number => Math.min(...held.map(rankOf));
  const sorted = [...pods.values()].sort(
    (a, b) => rank(a.held) - rank(b.held) || compareNames(a.pod, b.pod) || compareNames(a.namespace, b.namespace),
  );
  if (sorted.length === 0) return html``;
  return html`<section class="card pods" aria-labelledby="pods-title"><div class="head"><h2 id="pods-title">Pods</h2><span class="soft">${sorted.length} ${sorted.length === 1 ? 'holds' : 'hold'} devices</span></div><ul>${sorted.map(
    ({ namespace, pod, held }) =>
      html`<li>${shape(APPEARANCES[rank(held)] as Appearance)}<a href="${podPath({ namespace, pod })}" title="${namespace}/${pod}">${pod}</a> <span class="soft">${held
        .slice(0, 6)
        .map(({ name }) => name)
        .join(', ')}${held.length > 6 ? `, ${held.length - 6} more` : undefined}</span></li>`,
  )}</ul></section>`;
}

/** How many devices are in each state; each leads to them. */
export function chipsHtml({ devices }: Pick<Board, 'devices'>, view: BoardView): Html {
  const chip = (state: Appearance | undefined, text: Html | string): Html =>
    html`<a href="/${viewQuery(state === undefined ? DEFAULT_VIEW : { ...DEFAULT_VIEW, state })}"${view.state === state ? html` aria-current="true"` : undefined}>${text}</a>`;
  return html`${chip(undefined, `All ${devices.length}`)}${stateCounts(devices).map(([state, count]) => chip(state, mark(state, `${count} ${state}`)))}`;
}

export function problemsHtml({ problems }: Pick<Board, 'problems'>): Html {
  if (problems.length === 0) return html``;
  return html`<section class="card" aria-label="Problems"><div class="head"><h2>Problems</h2><span class="soft">what keeps the agent from seeing everything</span></div>
<div class="scroll"><table class="text fold"><thead><tr><th scope="col">Where</th><th scope="col">What</th><th scope="col">Remedy</th></tr></thead><tbody>
${problems.map((one) => html`<tr><th scope="row">${problemPlace(one)}</th><td>${one.message}</td><td>${one.remedy}</td></tr>\n`)}
</tbody></table></div></section>`;
}

export function unresolvedHtml({ unresolved }: Pick<Board, 'unresolved'>): Html {
  if (unresolved.length === 0) return html``;
  return html`<section class="card" aria-label="Allocations without a device"><div class="head"><h2>Allocations without a device</h2></div>
<div class="scroll"><table class="text fold"><thead><tr><th scope="col">Held by</th><th scope="col">Why</th></tr></thead><tbody>
${unresolved.map(
  (one) =>
    html`<tr><td>${podLink(one)} <small>${one.container}</small><br><small>${one.resource} <code>${one.deviceId}</code></small></td><td>${one.why}</td></tr>\n`,
)}
</tbody></table></div></section>`;
}

/** Filters as a form, so that they work without a script, and the address has the view. */
export function filterHtml(board: Pick<Board, 'devices'>, view: BoardView): Html {
  const sort = view.sort === DEFAULT_VIEW.sort ? undefined : html`<input type="hidden" name="sort" value="${view.sort}">`;
  return html`<form class="filter" role="search" aria-label="Filter of devices" action="/" method="get">
<div class="chips" id="chips">${chipsHtml(board, view)}</div>
<input type="search" name="text" id="filter" aria-label="Filter" value="${filterText(view)}" placeholder="state:pending namespace:training" maxlength="200" autocomplete="off">${sort}
<label><span>Group</span> <select name="group" aria-label="Group">${Object.entries(GROUP_TEXTS).map(([group, text]) =>
    view.group === group ? html`<option value="${group}" selected>${text}</option>` : html`<option value="${group}">${text}</option>`,
  )}</select></label>
<button type="submit">Show</button>
</form>`;
}

const GROUP_TEXTS: Readonly<Record<BoardView['group'], string>> = { tree: 'device tree', pod: 'pod', placement: 'placement' };

/** Head of the table: a title leads to the same view in the order of that column. */
export function headHtml(view: BoardView): Html {
  const column = (title: string, sort: ViewSort, wide?: Html): Html => {
    const isDown = sort === 'busy' || sort === 'attention';
    const order = view.sort === sort ? html` aria-sort="${isDown ? 'descending' : 'ascending'}"` : undefined;
    const arrow = view.sort !== sort ? '' : isDown ? ' ↓' : ' ↑';
    return html`<th scope="col"${wide}${order}><a href="/${viewQuery({ ...view, sort })}" data-sort="${sort}">${title}${arrow}</a></th>`;
  };
  return html`<tr>${column('State', 'attention')}${column('Device', 'name')}${column('Held by', 'use')}${column('Readings', 'busy', html` colspan="${view.group === 'placement' ? 2 : 3}"`)}${view.group === 'placement' ? html`<th scope="col">Way to above</th>` : undefined}<th scope="col" title="the last 30 minutes at most">Trend</th></tr>`;
}

export function sectionTitle(title: string): Html {
  return html`<tr class="group"><th scope="rowgroup" colspan="7">${title}</th></tr>`;
}

/** A row of the table, and what it is made of. */
export interface TableRow {
  readonly key: string;
  /** What it shows beside the device itself; a row with the same device and the same place is the same. */
  readonly place: string;
  readonly row: DeviceView;
  html(trendOf: TrendsByKey, nowMs: number): Html;
}

/** Rows of a section. In a long list without a filter, parts that say nothing of their own are one row below their whole. */
export function tableRows(rows: readonly ViewRow[], view: BoardView): readonly TableRow[] {
  const isWhole = view.group === 'pod' || filterText(view) !== '' || rows.length < FOLDED_FROM;
  const made: TableRow[] = [];
  const folded = new Map<string, DeviceView[]>();
  if (!isWhole)
    for (const { row, depth } of rows)
      if (depth > 0 && isQuiet(row)) folded.set(parentKey(row) ?? '', [...(folded.get(parentKey(row) ?? '') ?? []), row]);
  for (const one of rows) {
    const { row, depth, distance } = one;
    const siblings = folded.get(parentKey(row) ?? '') ?? [];
    if (depth > 0 && siblings.length >= FOLDED_PARTS && siblings.includes(row)) continue;
    made.push({ key: row.key, row, place: `${depth} ${distance ?? ''}`, html: (trendOf, nowMs) => rowHtml(one, trendOf(row.key), nowMs) });
    const parts = folded.get(row.key) ?? [];
    if (parts.length >= FOLDED_PARTS) {
      const text = foldHtml(row, parts);
      made.push({ key: `parts of ${row.key}`, row, place: text.text, html: () => text });
    }
  }
  return made;
}

const FOLDED_PARTS = 2;
const isQuiet = (part: DeviceView): boolean =>
  conditionsOf(part).every(({ ofWhole, severity }) => ofWhole !== undefined || severity === 'info');

export function tableHtml(sections: readonly BoardSection[], view: BoardView, trendOf: TrendsByKey, nowMs: number): Html {
  let left = MOST_ROWS;
  // A link of the page leads to the first part, so there is one without rows, too.
  const bodies = (sections.length === 0 ? [{ title: undefined, rows: [] }] : sections).map(({ title, rows }, at) => {
    const all = tableRows(rows, view);
    const shown = all.slice(0, Math.max(0, left));
    left -= all.length;
    const lines = shown.map((one) => html`${one.html(trendOf, nowMs)}\n`);
    return html`<tbody${at === 0 ? html` id="rows" tabindex="-1"` : undefined}>${title === undefined ? undefined : sectionTitle(title)}\n${lines}</tbody>`;
  });
  return html`<table id="devices" class="fold"><caption class="hidden">Devices of this node</caption><colgroup>${[1, 2, 3, 4, 5, 6, 7].map((at) => html`<col class="c${at}">`)}</colgroup><thead>${headHtml(view)}</thead>${bodies}</table>`;
}

/** What the filters leave, in words; empty where all is shown. */
export function shownText(board: Pick<Board, 'devices' | 'families'>, sections: readonly BoardSection[]): string {
  const { devices } = board;
  const unread = unreadText(board);
  const shown = new Set(sections.flatMap((section) => section.rows.map(({ row }) => row.key))).size;
  if (devices.length === 0) return unread === '' ? 'No probe found a device on this node.' : unread;
  const left = sections.reduce((sum, section) => sum + section.rows.length, 0) - MOST_ROWS;
  const all = shown < devices.length ? `${shown} of ${devices.length} devices.` : left > 0 ? `${shown} devices.` : '';
  const rows = left > 0 ? `${left} more rows are not shown. Use a filter.` : '';
  return [all, rows, unread, uncheckedText(devices)].filter((text) => text !== '').join(' ');
}

/** `Not checked: FirmwareDead on 8 devices.` The page of each device says it, too. */
function uncheckedText(devices: readonly DeviceView[]): string {
  const counts = new Map<string, number>();
  for (const { health } of devices) for (const type of health.unchecked ?? []) counts.set(type, (counts.get(type) ?? 0) + 1);
  if (counts.size === 0) return '';
  const all = [...counts].sort(([, a], [, b]) => b - a);
  const named = all.slice(0, MOST_UNCHECKED).map(([type, count]) => `${type} on ${count} ${count === 1 ? 'device' : 'devices'}`);
  const more = all.length > named.length ? ` and ${all.length - named.length} more` : '';
  return `Not checked: ${named.join(', ')}${more}.`;
}

const MOST_UNCHECKED = 3;
