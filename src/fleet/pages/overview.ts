import { type Html, html } from '../../board/html.ts';
import { age } from '../../board/state-html.ts';
import { readingText } from '../../board/units.ts';
import { card, numberCell, table } from '../../server/pages/page-parts.ts';
import type { Fleet, FleetFault, FleetNode, ModelCapacity, NamespaceUse, NodeState, Outlier } from '../fleet.ts';
import { mapHtml } from './map.ts';
import {
  devicesOf,
  type FleetFrame,
  faultHtml,
  firstOf,
  fleetDocument,
  hitHtml,
  isOld,
  namespacePath,
  nodeLink,
  percentText,
  problemsHtml,
  severityMark,
  stateMark,
  stateName,
  worstOf,
} from './parts.ts';

/** Longer lists make a page slow. The worst come first, and the filter reaches the others. */
const MOST_ROWS = 50;
const MOST_LINES = 20;
/** Capacity, waste and map share a column: the first lines answer who wastes most. */
const MOST_NAMESPACES = 10;
const MOST_NODES = 4;
const MOST_FAULTS = 2;

export interface OverviewView {
  readonly sentence: string;
  readonly filter: string;
  /** Nodes that the filter leaves, worst first. */
  readonly shown: readonly FleetNode[];
}

/** The fleet in one page: what needs hands, where, who is hit, is it one fault or several, what is free, who wastes. */
export function overviewPage(fleet: Fleet, { sentence, filter, shown }: OverviewView, frame: FleetFrame): string {
  const body = html`${problemsHtml(fleet.problems, frame)}<section class="say ${worstOf(frame)}" aria-label="State of the fleet"><h1>${isOld(frame) ? 'Last known: ' : undefined}${sentence}</h1></section>
<div class="two"><div class="stack"><div id="faults">${faultsHtml(fleet)}</div><section class="card" id="nodes" aria-label="Nodes">${filterHtml(fleet, filter)}
<p id="shown" class="soft">${shownText(fleet, shown)}</p>${nodesHtml(shown, frame.nowMs)}</section></div>
<div class="stack"><div id="capacity">${capacityHtml(fleet.capacity)}</div><div id="namespaces">${namespacesHtml(fleet.namespaces)}</div>${mapHtml(shown)}${outliersHtml(fleet)}</div></div>`;
  return fleetDocument(frame, { title: `Fleet: ${sentence}`, at: '/', body });
}

function filterHtml({ nodes }: Fleet, filter: string): Html {
  const counts = new Map<NodeState, number>();
  for (const { state } of nodes) counts.set(state, (counts.get(state) ?? 0) + 1);
  const chips = [...counts].map(([state, count]) => {
    const text = `state:${state}`;
    return html`<a href="/?text=${encodeURIComponent(text)}"${filter === text ? html` aria-current="true"` : undefined}><b>${count}</b> ${stateName(state).toLowerCase()}</a> `;
  });
  return html`<form class="filter" role="search" aria-label="Filter of nodes" action="/" method="get">
<div class="chips"><a href="/"${filter === '' ? html` aria-current="true"` : undefined}><b>${nodes.length}</b> nodes</a> ${chips}</div>
<input type="search" name="text" id="filter" aria-label="Filter" value="${filter}" placeholder="state:unhealthy namespace:training" maxlength="200" autocomplete="off">
<button type="submit">Show</button>
</form>`;
}

function shownText({ nodes }: Fleet, shown: readonly FleetNode[]): string {
  if (nodes.length === 0) return 'Prometheus knows no node with an agent.';
  const of = shown.length < nodes.length ? `${shown.length} of ${nodes.length} nodes.` : '';
  const left = shown.length > MOST_ROWS ? `The ${MOST_ROWS} worst of ${shown.length} are shown: a filter reaches the others.` : '';
  return [of, left].filter((text) => text !== '').join(' ');
}

function nodesHtml(shown: readonly FleetNode[], nowMs: number): Html | undefined {
  if (shown.length === 0) return undefined;
  const rows = shown.slice(0, MOST_ROWS).map((node) => {
    const { state, seenAt, group, models, held, utilizationRatio, faults } = node;
    const lines = faults.slice(0, MOST_FAULTS).map((one) => html`<div>${faultHtml(one, nowMs)}</div>`);
    const more = faults.length > MOST_FAULTS ? html`<div class="soft">and ${faults.length - MOST_FAULTS} more</div>` : undefined;
    const seen = seenAt === undefined ? undefined : html` <small>heard ${age(Date.parse(seenAt), nowMs)} ago</small>`;
    const hit = [...new Set(faults.flatMap((one) => one.hit))];
    return html`<td>${stateMark(state)}${seen}</td><th scope="row">${nodeLink(node)} <small>${[group, ...models].filter((text) => text !== undefined).join(' · ')}</small></th><td>${lines}${more}</td><td>${hit.length === 0 ? undefined : html`hits ${hitHtml(hit)}`}</td>${numberCell('Use', percentText(utilizationRatio))}${numberCell('Held', held === undefined ? undefined : `${held} of ${devicesOf(node)}`)}`;
  });
  return table(['State', 'Node', 'Faults', 'Hit', '#Use', '#Held'], rows);
}

function faultsHtml({ faults, nodes }: Fleet): Html | undefined {
  const byName = new Map(nodes.map((node) => [node.name, node]));
  const rows = faults.slice(0, MOST_LINES).map(
    (one) =>
      html`<td>${severityMark(one.severity)}</td><th scope="row">${one.condition} <small>${one.family} · ${one.reason}</small></th><td>${faultText(one)} ${firstOf(
        one.nodes.map((name) => nodeLink(byName.get(name) ?? { name })),
        MOST_NODES,
      )}${sharedHtml(one)}${one.hit.length === 0 ? undefined : html`<div>hits ${hitHtml(one.hit)}</div>`}</td>`,
  );
  if (rows.length === 0) return undefined;
  const left = faults.length - rows.length;
  return card('Faults of one kind', table(['State', 'Fault', 'Where'], rows), left > 0 ? `${left} more kinds are not shown` : undefined);
}

const faultText = ({ devices, nodes }: FleetFault): string =>
  `${devices} ${devices === 1 ? 'device' : 'devices'} on ${nodes.length} ${nodes.length === 1 ? 'node' : 'nodes'}:`;

/** `7 of 9 are driver 580.105`: one cause is more probable than seven. */
function sharedHtml({ shared, devices }: FleetFault): Html | undefined {
  if (shared.length === 0) return undefined;
  return html`<div>${shared.map((one, at) => html`${at === 0 ? undefined : '; '}<b>${one.devices} of ${devices}</b> are ${one.fact} ${one.value}`)}</div>`;
}

function capacityHtml(capacity: readonly ModelCapacity[]): Html | undefined {
  if (capacity.length === 0) return undefined;
  const rows = capacity.map(
    (one) =>
      html`<th scope="row">${one.model} <small>${one.family} ${one.kind}</small></th>${numberCell('Devices', one.devices)}${numberCell('Held', one.held)}${numberCell('Free', one.free)}${numberCell('Out of service', one.outOfService)}${numberCell('Not known', one.unknown)}${numberCell('Pods waiting', one.waiting)}`,
  );
  return card('Capacity', table(['Model', '#Devices', '#Held', '#Free', '#Out of service', '#Not known', '#Pods waiting'], rows));
}

const hours = (value: number | undefined): string | undefined => (value === undefined ? undefined : `${value.toFixed(1)} h`);

function namespacesHtml(namespaces: readonly NamespaceUse[]): Html | undefined {
  if (namespaces.length === 0) return undefined;
  const hasCost = namespaces.some(({ idleCost }) => idleCost !== undefined);
  const rows = namespaces
    .slice(0, MOST_NAMESPACES)
    .map(
      (one) =>
        html`<th scope="row"><a href="${namespacePath(one.namespace)}">${one.namespace}</a>${one.cluster === undefined ? undefined : html` <small>${one.cluster}</small>`}</th>${numberCell('Devices now', one.devicesNow)}${numberCell('Held', hours(one.heldHours))}${numberCell('Idle', hours(one.idleHours))}${
          hasCost
            ? numberCell('Idle cost', one.idleCost === undefined ? undefined : `${one.idleCost.toFixed(2)} ${one.currency ?? ''}`.trim())
            : undefined
        }`,
    );
  const heads = ['Namespace', '#Devices now', '#Held', '#Idle', ...(hasCost ? ['#Idle cost'] : [])];
  return card(
    'Who wastes most',
    table(heads, rows),
    `device hours of the last day${namespaces.length > rows.length ? `; ${namespaces.length - rows.length} more are not shown` : ''}`,
  );
}

const METRICS: Readonly<Record<Outlier['what'], string>> = { clock: '_hertz', temperature: '_celsius', 'link errors': '' };

export function outliersHtml({ outliers, nodes }: Pick<Fleet, 'outliers' | 'nodes'>): Html | undefined {
  if (outliers.length === 0) return undefined;
  const byName = new Map(nodes.map((node) => [node.name, node]));
  const rows = outliers
    .slice(0, MOST_LINES)
    .map(
      (one) =>
        html`<th scope="row">${nodeLink(byName.get(one.node) ?? { name: one.node })} <small>${one.device}</small></th><td>${one.model}</td><td>${one.what} ${readingText(METRICS[one.what], one.value)}, its twins ${readingText(METRICS[one.what], one.twins)}</td>`,
    );
  return card('Worse than their twins', table(['Device', 'Model', 'What'], rows), 'same model and job');
}
