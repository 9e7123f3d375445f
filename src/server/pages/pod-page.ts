import type { Board } from '../../board/board.ts';
import { type DeviceView, modelText } from '../../board/device-view.ts';
import { type Html, html } from '../../board/html.ts';
import { devicePath } from '../../board/paths.ts';
import { readingList } from '../../board/row-html.ts';
import { stateCell } from '../../board/state-html.ts';
import { durationText, readingText } from '../../board/units.ts';
import type { DeviceHistory } from '../../incidents/history.ts';
import { firstOf } from '../../model/one-line.ts';
import { podName } from '../../model/pod-resources.ts';
import type { Snapshot } from '../../model/snapshot.ts';
import type { ContainerUsage } from '../../model/usage.ts';
import { localityPart } from './locality.ts';
import { document, factTable, numberCell, type PageFrame, part } from './page-parts.ts';
import { waitingPart } from './waiting-part.ts';

/** Everything that a pod holds, and what it used. undefined when this node knows no such pod. */
export function podPage(
  namespace: string,
  pod: string,
  board: Board,
  snapshot: Snapshot,
  frame: PageFrame,
  historyOf: (key: string) => DeviceHistory | undefined = () => undefined,
): string | undefined {
  const isOfPod = (one: { readonly namespace: string; readonly pod: string }): boolean => one.namespace === namespace && one.pod === pod;
  const rows = board.devices.filter(({ holders }) => holders.some((holder) => isOfPod(holder) && holder.part === undefined));
  const usage = (snapshot.usage?.containers ?? []).filter(isOfPod);
  const unresolved = board.unresolved.filter(isOfPod);
  const facts = snapshot.pods?.get(podName({ namespace, pod }));
  if (rows.length + usage.length + unresolved.length === 0 && facts === undefined) return undefined;
  const exclusive = snapshot.podResources.exclusive.filter(isOfPod);
  const body = html`<h2>${namespace}/${pod}</h2>
${part(
  'facts',
  factTable([
    ['Node', frame.node],
    ['Phase', facts?.phase],
    ['UID', facts?.uid ?? usage.find(({ uid }) => uid !== undefined)?.uid],
    [
      'Labels',
      facts?.labels &&
        Object.entries(facts.labels)
          .map(([name, value]) => `${name}=${value}`)
          .join(', '),
    ],
    [
      'Exclusive CPUs',
      exclusive
        .map(({ container, cpus }) => (cpus.length === 0 ? '' : `${container}: ${cpus.join(', ')}`))
        .filter((text) => text !== '')
        .join('; '),
    ],
    [
      'Holds',
      `${rows.length} ${rows.length === 1 ? 'device' : 'devices'}${unresolved.length === 0 ? '' : `, and ${unresolved.length} that no probe found`}`,
    ],
  ]),
)}${part('devices', deviceTable(rows, isOfPod, frame.nowMs))}${part('locality', localityPart((snapshot.localities ?? []).filter(isOfPod), board))}${part(
  'unresolved',
  unresolved.length === 0
    ? undefined
    : html`<h2>Without a device</h2><ul class="plain">${unresolved.map((one) => html`<li>${one.resource} <code>${one.deviceId}</code>: ${one.why}</li>`)}</ul>`,
)}${part('waiting', waitingPart((snapshot.waiting ?? []).filter(isOfPod), historyOf, frame.nowMs))}<h2>Used since it got the devices</h2>
${part('usage', usageTable(usage, board))}`;
  return document(frame, { title: `${namespace}/${pod}: device-agent`, body, footer: html``, liveness: 'reload' });
}

function deviceTable(rows: readonly DeviceView[], isOfPod: (one: DeviceView['holders'][number]) => boolean, nowMs: number): Html {
  if (rows.length === 0) return html`<p>The pod holds no device now.</p>`;
  return html`<div class="scroll"><table><thead><tr><th scope="col">Device</th><th scope="col">Health</th><th scope="col">Container</th><th scope="col">Readings</th></tr></thead><tbody>
${rows.map(
  (row) =>
    html`<tr><th scope="row"><a class="id" href="${devicePath(row)}" title="${row.id}">${row.name}</a><br><small>${[`${row.family} ${row.kind}`, row.also, modelText(row)].filter((fact) => fact !== undefined).join(' · ')}</small></th><td>${stateCell(row, nowMs)}</td><td>${containers(row, isOfPod)}</td><td>${readingList(row.shown)}</td></tr>\n`,
)}</tbody></table></div>`;
}

/** Others that hold the same device matter as much to the pod as its own containers. */
function containers({ holders }: DeviceView, isOfPod: (one: DeviceView['holders'][number]) => boolean): Html {
  const others = new Set(holders.filter((one) => !isOfPod(one)).map((one) => `${one.namespace}/${one.pod}`));
  return html`${holders.filter(isOfPod).map(({ container, resource }) => html`<b>${container}</b><br><small>${resource}</small><br>`)}${
    others.size === 0 ? undefined : html`<small>shared with ${firstOf([...others], 4)}</small>`
  }`;
}

function usageTable(usage: readonly ContainerUsage[], board: Board): Html {
  if (usage.length === 0) return html`<p>Nothing is known of its use yet.</p>`;
  const names = new Map(board.devices.map(({ key, name }) => [key, name]));
  return html`<div class="scroll"><table><thead><tr><th scope="col">Device</th><th scope="col">Container</th><th scope="col" class="number">Allocated</th><th scope="col" class="number">Busy</th><th scope="col" class="number">Idle</th><th scope="col" class="number">Not observed</th><th scope="col" class="number">Energy</th></tr></thead><tbody>
${usage.map((one) => {
  const busy = Object.entries(one.busySeconds).map(([engine, seconds]) => `${engine} ${hoursText(seconds)}`);
  const energy = one.energyJoules ?? one.energyEstimatedJoules;
  return html`<tr><th scope="row">${names.get(one.device) ?? one.device}</th><td>${one.container}</td>${numberCell('Allocated', hoursText(one.allocatedSeconds))}${numberCell('Busy', busy.length === 0 ? undefined : busy.join(', '))}${numberCell('Idle', hoursText(one.idleSeconds))}${numberCell('Not observed', hoursText(one.unobservedSeconds))}${numberCell('Energy', energy === undefined ? undefined : readingText('_joules', energy))}</tr>\n`;
})}</tbody></table></div>`;
}

const hoursText = (seconds: number): string => durationText(seconds * 1_000);
