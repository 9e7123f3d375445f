import { type Html, html } from '../../board/html.ts';
import { card, numberCell, table, titleHtml } from '../../server/pages/page-parts.ts';
import type { Fleet, FleetNode, NodeFault } from '../fleet.ts';
import { type FleetFrame, faultHtml, fleetDocument, namespacePath, nodeLink, podLink, problemsHtml, severityMark } from './parts.ts';
import type { HeldDetail, HeldDevice } from './sources.ts';

const MOST_ROWS = 200;

/** What a pod or a namespace holds and held, how busy it was, and what hit it. */
export function heldPage(fleet: Fleet, namespace: string, pod: string | undefined, detail: HeldDetail, frame: FleetFrame): string {
  const isHit = (name: string): boolean => (pod === undefined ? name.startsWith(`${namespace}/`) : name === `${namespace}/${pod}`);
  const hits = fleet.nodes.flatMap((node) => node.faults.filter(({ hit }) => hit.some(isHit)).map((fault) => ({ node, fault })));
  const problems = [...fleet.problems, ...detail.problems];
  const now = detail.held.filter((one) => one.isHeld);
  const before = detail.held.filter((one) => !one.isHeld);
  const isWhole = problems.length === 0;
  const body = html`${problemsHtml(problems, frame)}${titleHtml(pod === undefined ? ['/#namespaces', 'Namespaces'] : [namespacePath(namespace), namespace], pod ?? namespace, undefined)}
<div class="answers">${[
    answer(
      'Holds now',
      now.length === 0 && !isWhole ? undefined : `${now.length} ${now.length === 1 ? 'device' : 'devices'}`,
      nodesText(now),
    ),
    answer('Busy in the last day', hoursText(sum(detail.held, 'busyHours')), 'device hours'),
    answer('Idle in the last day', hoursText(sum(detail.held, 'idleHours')), 'device hours'),
    answer(
      'Hit by',
      hits.length === 0 && !isWhole ? undefined : `${hits.length} ${hits.length === 1 ? 'fault' : 'faults'}`,
      'now or in the last hour',
      hits.length > 0,
    ),
  ]}</div>
${hitsHtml(hits, frame.nowMs)}${heldHtml('Holds', now, namespace, fleet, pod === undefined)}${heldHtml('Held in the last day', before, namespace, fleet, pod === undefined)}`;
  return fleetDocument(frame, { title: pod === undefined ? namespace : `${namespace}/${pod}`, body });
}

function answer(question: string, text: string | undefined, note: string, isBad = false): Html {
  const kind = text === undefined || isBad ? 'mind' : 'ok';
  return html`<section class="card answer ${kind}"><h2>${question}</h2><strong>${text ?? 'Not known'}</strong><p class="soft">${note}</p></section>`;
}

function nodesText(held: readonly HeldDevice[]): string {
  const count = new Set(held.map(({ node, cluster }) => `${cluster ?? ''} ${node}`)).size;
  return `on ${count} ${count === 1 ? 'node' : 'nodes'}`;
}

/** undefined where one of the values is not known: a part is no sum. */
function sum(held: readonly HeldDevice[], what: 'busyHours' | 'idleHours'): number | undefined {
  return held.length === 0
    ? undefined
    : held.reduce((all: number | undefined, one) => (all === undefined || one[what] === undefined ? undefined : all + one[what]), 0);
}

const hoursText = (value: number | undefined): string | undefined => (value === undefined ? undefined : `${value.toFixed(1)} h`);

function hitsHtml(hits: readonly { readonly node: FleetNode; readonly fault: NodeFault }[], nowMs: number): Html | undefined {
  if (hits.length === 0) return undefined;
  const rows = hits.map(
    ({ node, fault }) =>
      html`<td>${severityMark(fault.severity)}</td><th scope="row">${nodeLink(node)}</th><td>${faultHtml(fault, nowMs)}</td>`,
  );
  return card('What hit it', table(['State', 'Node', 'Fault'], rows));
}

function heldHtml(title: string, held: readonly HeldDevice[], namespace: string, { nodes }: Fleet, withPods: boolean): Html | undefined {
  if (held.length === 0) return undefined;
  const keyOf = (name: string, cluster: string | undefined): string => `${cluster ?? ''} ${name}`;
  const known = new Set(nodes.map(({ name, cluster }) => keyOf(name, cluster)));
  const rows = held.slice(0, MOST_ROWS).map((one) => {
    const { node: name, cluster } = one;
    // A node that left the fleet has no page any more.
    const node = known.has(keyOf(name, cluster)) ? nodeLink({ name, ...(cluster !== undefined && { cluster }) }) : name;
    return html`<th scope="row">${node}</th><td>${one.name}${one.name === one.id ? undefined : html` <small>${one.family}/${one.id}</small>`}</td>${withPods ? html`<td>${podLink(`${namespace}/${one.pod}`)}</td>` : undefined}${numberCell('Held', hoursText(one.heldHours))}${numberCell('Busy', hoursText(one.busyHours))}${numberCell('Idle', hoursText(one.idleHours))}`;
  });
  const left = held.length - rows.length;
  return card(
    title,
    table(['Node', 'Device', ...(withPods ? ['Pod'] : []), '#Held', '#Busy', '#Idle'], rows),
    left > 0 ? `${left} more are not shown` : undefined,
  );
}
