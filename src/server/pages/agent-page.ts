import type { Board } from '../../board/board.ts';
import { type Html, html } from '../../board/html.ts';
import { problemsHtml } from '../../board/overview-html.ts';
import { age } from '../../board/state-html.ts';
import { durationText, readingText } from '../../board/units.ts';
import type { PluginStats } from '../../model/agent-stats.ts';
import type { FamilyState, Snapshot } from '../../model/snapshot.ts';
import { document, factTable, numberCell, type PageFrame, part } from './page-parts.ts';

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
  const body = html`<h2>Agent</h2>
${part(
  'agent',
  factTable([
    ['Works', fault === undefined ? html`<span class="state healthy">yes</span>` : html`<span class="state unhealthy">no</span>: ${fault}`],
    ['Version', frame.version],
    ['Node', frame.node],
    ['Latest snapshot', snapshot === undefined ? 'none yet' : html`${snapshot.sequence}, ${age(snapshot.takenAtMs, nowMs)} ago`],
    ['Readings kept', historyBytes === undefined ? undefined : readingText('_bytes', historyBytes)],
  ]),
)}${part('problems', board === undefined || board.problems.length === 0 ? html`<p>There are no problems.</p>` : problemsHtml(board))}<h2>Kubelet</h2>
${part('kubelet', kubelet(snapshot, nowMs))}<h2>Families</h2>
${part('families', families(snapshot?.families ?? [], board, nowMs))}<h2>Resources of the device plugin</h2>
${part('plugin', resources(plugin, nowMs))}`;
  return document(frame, { title: 'Agent: device-agent', body, footer: html``, liveness: snapshot === undefined ? 'none' : 'reload' });
}

function kubelet(snapshot: Snapshot | undefined, nowMs: number): Html {
  const { api, answeredAtMs, problem, held, allocations = [] } = snapshot?.podResources ?? {};
  const state =
    problem !== undefined
      ? ['unhealthy', problem.reason]
      : answeredAtMs === undefined
        ? ['unknown', 'no answer yet']
        : ['healthy', 'answers'];
  return factTable([
    ['State', html`<span class="state ${state[0]}">${state[1]}</span>`],
    ['Last answer', answeredAtMs === undefined ? undefined : html`${age(answeredAtMs, nowMs)} ago`],
    ['API', api],
    ['Allocations', String(allocations.length)],
    ['Kept from an earlier answer', held === undefined || held.size === 0 ? undefined : String(held.size)],
  ]);
}

function families(list: readonly FamilyState[], board: Board | undefined, nowMs: number): Html {
  if (list.length === 0) return html`<p>No family is read yet.</p>`;
  const rows = new Map(board?.families.map((family) => [family.family, family]));
  return html`<div class="scroll"><table><thead><tr><th scope="col">Family</th><th scope="col">State</th><th scope="col" class="number">Devices</th><th scope="col">Last success</th><th scope="col" class="number">Last run</th><th scope="col" class="number">Runs</th><th scope="col" class="number">Failed</th><th scope="col" class="number">Given up</th></tr></thead><tbody>
${list.map(({ family, lastSuccessMs, durationMs, runs, failures, abandoned }) => {
  const state = rows.get(family)?.state ?? 'starts';
  const mood = state === 'works' ? 'healthy' : state === 'starts' ? 'unknown' : 'unhealthy';
  return html`<tr><th scope="row"><a href="/?family=${encodeURIComponent(family)}">${family}</a></th><td><span class="state ${mood}">${state}</span></td>${numberCell('Devices', rows.get(family)?.devices)}<td>${lastSuccessMs === undefined ? 'never' : html`${age(lastSuccessMs, nowMs)} ago`}</td>${numberCell('Last run', durationMs === undefined ? 'none' : durationText(durationMs))}${numberCell('Runs', runs)}${numberCell('Failed', failures)}${numberCell('Given up', abandoned)}</tr>\n`;
})}</tbody></table></div>`;
}

function resources(plugin: PluginStats | undefined, nowMs: number): Html {
  if (plugin === undefined || plugin.resources.length === 0) return html`<p>No resource is configured.</p>`;
  return html`<div class="scroll"><table><thead><tr><th scope="col">Resource</th><th scope="col">Kubelet</th><th scope="col" class="number">Healthy</th><th scope="col" class="number">Unhealthy</th><th scope="col">Last list</th><th scope="col">Allocations</th></tr></thead><tbody>
${plugin.resources.map(
  ({ resource, registered, healthy, unhealthy, lastUpdateMs, allocations }) =>
    html`<tr><th scope="row">${resource}</th><td><span class="state ${registered ? 'healthy' : 'unhealthy'}">${registered ? 'registered' : 'not registered'}</span></td>${numberCell('Healthy', healthy)}${numberCell('Unhealthy', unhealthy)}<td>${lastUpdateMs === undefined ? 'never' : html`${age(lastUpdateMs, nowMs)} ago`}</td><td>${Object.entries(
      allocations,
    )
      .map(([result, count]) => `${result} ${count}`)
      .join(', ')}</td></tr>\n`,
)}</tbody></table></div>`;
}
