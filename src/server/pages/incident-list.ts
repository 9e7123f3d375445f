import type { Board } from '../../board/board.ts';
import { type Html, html } from '../../board/html.ts';
import { incidentPath, podPath } from '../../board/paths.ts';
import { clock, mark } from '../../board/state-html.ts';
import type { ListedIncident } from '../../incidents/store.ts';
import { card, document, type PageFrame, part, table, titleHtml } from './page-parts.ts';

const MOST_OF_DEVICE = 20;
const MOST_ON_PAGE = 200;

/** Records of one device, the newest first. */
export function incidentTable(incidents: readonly ListedIncident[], board: Board | undefined, nowMs: number, most = MOST_OF_DEVICE): Html {
  const names = new Map(board?.devices.map(({ key, name }) => [key, name]));
  const rest = incidents.length - most;
  const rows = incidents.slice(0, most).map(({ id, time, states, conditions, device, holders }) => {
    const worst = states.includes('unhealthy') ? 'unhealthy' : (states.at(-1) ?? 'unknown');
    const pods = [...new Set(holders.map((holder) => holder.split('/').slice(0, 2).join('/')))];
    const again =
      conditions.length === 0
        ? 0
        : incidents.filter((one) => one.device === device && one.time < time && one.conditions.some((name) => conditions.includes(name)))
            .length;
    return html`<th scope="row"><a href="${incidentPath(id)}">${clock(time, nowMs)}</a></th><td>${mark(worst, names.get(device) ?? device.replace(/^[^/]*\//, ''))}</td><td>${conditions.map(inWords).join(', ')}${again === 0 ? undefined : html` <small>again, ${again} earlier</small>`}</td><td>${
      pods.length === 0
        ? html`<span class="soft">no container</span>`
        : pods.slice(0, 3).map((pod, at) => html`${at === 0 ? undefined : ', '}${podOf(pod)}`)
    }</td><td>${states.join(' → ')}</td>`;
  });
  return html`${table(['Time, UTC', 'Device', 'Conditions', 'Was hit', 'States'], rows)}${rest > 0 ? html`<p class="body soft">and ${rest} older ones</p>` : undefined}`;
}

/** `PortDown/1` as people see it: `PortDown (1)`. */
export const inWords = (name: string): string => name.replace(/\/(.+)$/, ' ($1)');

function podOf(name: string): Html {
  const [namespace = '', pod = ''] = name.split('/');
  return html`<span class="soft ns">${namespace}/</span><a href="${podPath({ namespace, pod })}">${pod}</a>`;
}

/** All incidents of the node: those of devices that are still not well first. */
export function incidentsPage(incidents: readonly ListedIncident[], frame: PageFrame): string {
  const { board, nowMs } = frame;
  const sick = new Set(
    board?.devices.filter(({ health, missingSince }) => health.state !== 'healthy' || missingSince !== undefined).map(({ key }) => key),
  );
  const latest = new Map(incidents.toReversed().map(({ device, id }) => [device, id]));
  const open = incidents.filter(({ device, id }) => sick.has(device) && latest.get(device) === id);
  const ended = incidents.filter((one) => !open.includes(one));
  const list =
    incidents.length === 0
      ? html`<section class="card"><p class="head">No incident is recorded.</p></section>`
      : html`${open.length === 0 ? undefined : card('Open', incidentTable(open, board, nowMs, MOST_ON_PAGE), 'the device is still not well')}${
          ended.length === 0 ? undefined : card('Ended', incidentTable(ended, board, nowMs, MOST_ON_PAGE))
        }`;
  const body = html`${titleHtml(['/', 'Devices'], 'Incidents', html`${open.length} open, ${ended.length} ended`)}
<p class="soft">Each time at which the verdict on a device got worse or unknown, with holders, readings and kernel log.</p>
${part('incidents', html`<div class="stack">${list}</div>`)}`;
  return document(frame, { title: 'Incidents', at: '/incidents', body, json: '/api/incidents', liveness: 'reload' });
}
