import { chartHtml } from '../../board/chart-html.ts';
import { type Html, html } from '../../board/html.ts';
import { age, mark } from '../../board/state-html.ts';
import { REMEDY_TEXTS, STATE_NAMES } from '../../board/words.ts';
import { card, numberCell, table, titleHtml } from '../../server/pages/page-parts.ts';
import type { Fleet, FleetNode } from '../fleet.ts';
import { outliersHtml } from './overview.ts';
import {
  appearanceOf,
  type FleetFrame,
  faultHtml,
  firstOf,
  fleetDocument,
  hitHtml,
  nodePath,
  percentText,
  podLink,
  problemsHtml,
  severityMark,
  stateName,
} from './parts.ts';
import { type FleetDevice, type NodeDetail, SPANS, type Span } from './sources.ts';

const MOST_HOLDERS = 4;
const HOUR_MS = 3_600_000;

export interface NodeView {
  readonly node: FleetNode;
  readonly detail: NodeDetail;
  readonly span: Span;
  readonly boardUrl: string | undefined;
}

/** A node now, and its curves over hours and days. Its own page has the rest. */
export function nodePage(fleet: Fleet, { node, detail, span, boardUrl }: NodeView, frame: FleetFrame): string {
  const { nowMs } = frame;
  const untilMs = Date.parse(fleet.at);
  const fromMs = untilMs - SPANS[span] * HOUR_MS;
  const charts = detail.curves.map((one) => chartHtml({ ...one, isRate: false, limits: [], fromMs, untilMs }));
  const outliers = fleet.outliers.filter((one) => one.node === node.name);
  const body = html`${problemsHtml([...fleet.problems, ...detail.problems], frame)}${titleHtml(
    ['/', 'Nodes'],
    node.name,
    html`${[node.cluster, node.group, ...node.models].filter((text) => text !== undefined).join(' · ')}`,
    [
      ['Its own page', webLink(node.pageUrl, 'open')],
      ['Board', webLink(boardUrl, 'open')],
    ],
  )}<section class="say ${appearanceOf(node.state)}" aria-label="State of the node"><h1>${sayText(node, nowMs)}</h1></section>
${faultsHtml(node, nowMs)}${card('Devices', devicesHtml(detail.devices, node), frame.fleet === undefined ? undefined : html`as Prometheus had them ${age(untilMs, nowMs)} ago`)}
<section class="card" aria-label="Time of the curves"><div class="head"><h2>Curves</h2><span class="chips">${Object.keys(SPANS).map((one) => html`<a href="${spanPath(node, one)}"${one === span ? html` aria-current="true"` : undefined}>${one}</a> `)}</span></div>${
    charts.length === 0 ? html`<p class="body">Prometheus has no curve of this node in this time.</p>` : undefined
  }</section>${charts.length === 0 ? undefined : html`<div class="charts">${charts}</div>`}${outliersHtml({ outliers, nodes: fleet.nodes })}`;
  return fleetDocument(frame, { title: node.name, body });
}

function sayText({ state, seenAt, faults: [first, ...others] }: FleetNode, nowMs: number): Html {
  const seen = seenAt === undefined ? undefined : html`, heard ${age(Date.parse(seenAt), nowMs)} ago`;
  if (first === undefined) return html`${stateName(state)}${seen}`;
  const hit = first.hit.length === 0 ? undefined : html`, ${hitHtml(first.hit)} ${first.hit.length === 1 ? 'is' : 'are'} hit`;
  return html`${stateName(state)}${seen}: ${first.name} has ${first.condition}${hit}${others.length === 0 ? undefined : `, and ${others.length} more`}`;
}

function spanPath(node: FleetNode, span: string): string {
  const path = nodePath(node);
  return `${path}${path.includes('?') ? '&' : '?'}span=${span}`;
}

/** An address that a label told. Only addresses of the web are links. */
function webLink(address: string | undefined, text: string): Html | undefined {
  if (address === undefined || !URL.canParse(address) || !/^https?:$/.test(new URL(address).protocol)) return undefined;
  return html`<a href="${address}" rel="noreferrer">${text}</a>`;
}

function faultsHtml({ faults }: FleetNode, nowMs: number): Html | undefined {
  if (faults.length === 0) return undefined;
  const rows = faults.map(
    (one) =>
      html`<td>${severityMark(one.severity)}</td><th scope="row">${faultHtml(one, nowMs)}</th><td>${one.remedy && REMEDY_TEXTS[one.remedy]}</td><td>${one.hit.length === 0 ? undefined : html`hits ${hitHtml(one.hit)}`}</td>`,
  );
  return card('Faults', table(['State', 'Fault', 'What to do', 'Hit'], rows));
}

function devicesHtml(devices: readonly FleetDevice[], { state }: FleetNode): Html {
  if (devices.length === 0) return html`<p class="body">Prometheus has no devices of this node now.</p>`;
  // The last samples of an agent that does not answer say nothing of now.
  const isKnown = appearanceOf(state) !== 'unknown';
  const rows = devices.map((one) => {
    const { holders } = one;
    const who =
      holders === undefined
        ? 'not known'
        : holders.length === 0
          ? html`<span class="soft">free</span>`
          : firstOf(holders.map(podLink), MOST_HOLDERS);
    return html`<td>${isKnown ? mark(one.state) : html`${mark('unknown', 'Not known')} <small>last ${STATE_NAMES[one.state].toLowerCase()}</small>`}</td><th scope="row">${one.name} <small>${one.model} ${one.family}/${one.id}</small></th><td>${who}</td>${numberCell('Use', percentText(one.utilizationRatio))}`;
  });
  return table(['State', 'Device', 'Held by', '#Use'], rows);
}
