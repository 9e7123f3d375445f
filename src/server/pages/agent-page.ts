import type { Board } from '../../board/board.ts';
import { type Html, html } from '../../board/html.ts';
import { problemsHtml } from '../../board/overview-html.ts';
import { age, mark } from '../../board/state-html.ts';
import { readingText } from '../../board/units.ts';
import type { PluginStats } from '../../model/agent-stats.ts';
import { durationText } from '../../model/duration.ts';
import type { FamilyState, Snapshot } from '../../model/snapshot.ts';
import { card, document, facts, numberCell, type PageFrame, part, table, titleHtml } from './page-parts.ts';

export interface AgentPageDependencies {
  readonly board: Board | undefined;
  readonly snapshot: Snapshot | undefined;
  /** Why the agent cannot do its work; undefined while it can. */
  readonly fault: string | undefined;
  readonly plugin: PluginStats | undefined;
  /** Memory of the history of readings; undefined without a history. */
  readonly historyBytes: number | undefined;
}

/** Health of the agent itself: what it can see and what keeps it from seeing more. */
export function agentPage({ board, snapshot, fault, plugin, historyBytes }: AgentPageDependencies, frame: PageFrame): string {
  const { nowMs } = frame;
  const problems =
    board !== undefined && board.problems.length > 0
      ? problemsHtml(board)
      : html`<section class="card"><p class="head">${board === undefined ? 'Problems are not known before the first snapshot.' : 'There are no problems.'}</p></section>`;
  const body = html`${titleHtml(['/', 'Devices'], 'Agent', undefined, [
    ['Version', frame.version],
    ['Node', frame.node],
  ])}${part('problems', problems)}<div class="two"><div class="stack">${part('families', card('Families', families(snapshot?.families ?? [], board, nowMs)))}${part(
    'plugin',
    card('Resources of the device plugin', resources(plugin, nowMs)),
  )}</div><div class="stack">${part(
    'agent',
    card(
      'Agent',
      facts([
        ['Works', fault === undefined ? mark('healthy', 'yes') : html`${mark('unhealthy', 'no')}: ${fault}`],
        ['Latest snapshot', snapshot === undefined ? 'none yet' : html`${snapshot.sequence}, ${age(snapshot.takenAtMs, nowMs)} ago`],
        ['Readings kept', historyBytes === undefined ? undefined : readingText('_bytes', historyBytes)],
      ]),
    ),
  )}${part('kubelet', card('Kubelet', kubelet(snapshot, nowMs)))}</div></div>`;
  return document(frame, {
    title: 'Agent',
    at: '/agent',
    body,
    json: '/api/v1/status',
    liveness: snapshot === undefined ? 'none' : 'reload',
  });
}

function kubelet(snapshot: Snapshot | undefined, nowMs: number): Html {
  const { api, answeredAtMs, problem, held, allocations = [] } = snapshot?.podResources ?? {};
  const state =
    problem !== undefined
      ? mark('unhealthy', problem.reason)
      : answeredAtMs === undefined
        ? mark('unknown', 'no answer yet')
        : mark('healthy', 'answers');
  return facts([
    ['State', state],
    ['Last answer', answeredAtMs === undefined ? undefined : html`${age(answeredAtMs, nowMs)} ago`],
    ['API', api],
    ['Allocations', answeredAtMs === undefined ? undefined : String(allocations.length)],
    ['Kept from an earlier answer', held === undefined || held.size === 0 ? undefined : String(held.size)],
  ]);
}

/** Families with hardware first; those without it are one line, because they work and have nothing to do. */
function families(list: readonly FamilyState[], board: Board | undefined, nowMs: number): Html {
  if (list.length === 0) return html`<p class="body">No family is read yet.</p>`;
  const rows = new Map(board?.families.map((family) => [family.family, family]));
  const isIdle = ({ family }: FamilyState): boolean => rows.get(family)?.state === 'works' && rows.get(family)?.devices === 0;
  const lines = list
    .filter((family) => !isIdle(family))
    .map(({ family, lastSuccessMs, durationMs, runs, failures, abandoned }) => {
      const state = rows.get(family)?.state ?? 'starts';
      const mood = state === 'works' ? 'healthy' : state === 'starts' ? 'unknown' : 'unhealthy';
      return html`<th scope="row"><a href="/?family=${encodeURIComponent(family)}">${family}</a></th><td>${mark(mood, state)}</td>${numberCell('Devices', rows.get(family)?.devices)}<td>${lastSuccessMs === undefined ? 'never' : html`${age(lastSuccessMs, nowMs)} ago`}</td>${numberCell('Last run', durationMs === undefined ? 'none' : durationText(durationMs))}${numberCell('Runs', runs)}${numberCell('Failed', failures)}${numberCell('Given up', abandoned)}`;
    });
  const idle = list.filter(isIdle).map(({ family }) => family);
  return html`${lines.length === 0 ? undefined : table(['Family', 'State', '#Devices', 'Last success', '#Last run', '#Runs', '#Failed', '#Given up'], lines)}${
    idle.length === 0 ? undefined : html`<p class="head soft">No such hardware: ${idle.join(', ')}.</p>`
  }`;
}

function resources(plugin: PluginStats | undefined, nowMs: number): Html {
  if (plugin === undefined || plugin.resources.length === 0) return html`<p class="body">No resource is configured.</p>`;
  const rows = plugin.resources.map(({ resource, registered, difference, healthy, unhealthy, lastUpdateMs, allocations }) => {
    const state = !registered ? 'not registered' : (difference?.ids ?? 0) > 0 ? `offers ${difference?.ids} ids otherwise` : 'registered';
    const results = Object.entries(allocations).map(([result, count]) => `${result} ${count}`);
    return html`<th scope="row">${resource}</th><td>${mark(state === 'registered' ? 'healthy' : 'unhealthy', state)}</td>${numberCell('Healthy', healthy)}${numberCell('Unhealthy', unhealthy)}<td>${lastUpdateMs === undefined ? 'never' : html`${age(lastUpdateMs, nowMs)} ago`}</td><td>${results.join(', ')}</td>`;
  });
  return table(['Resource', 'Kubelet', '#Healthy', '#Unhealthy', 'Last list', 'Allocations'], rows);
}
