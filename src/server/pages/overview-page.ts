import { durationText } from '../../board/units.ts';
import { KUBELET_REMEDIES, STATE_NAMES, UNRESOLVED_TEXTS } from '../../board/words.ts';
import { HEALTH_STATES } from '../../model/health.ts';
import type { DeviceState, Snapshot } from '../../model/snapshot.ts';
import { pendingTrouble } from '../../model/standing.ts';
import type { RemedyOf } from '../api/views.ts';
import { type Html, html } from './html.ts';
import { devicePath, document, healthCell, holderList, type PageFrame, shownState } from './page-parts.ts';
import { mainReadings } from './page-readings.ts';

/** More devices would make a browser slow; the API lists the rest. */
const MOST_DEVICES = 1_000;
const MOST_HOLDERS = 4;
const MOST_UNRESOLVED = 100;

/** Display order: devices that need attention come first. */
const ORDER: readonly ReturnType<typeof shownState>[] = ['unhealthy', 'missing', 'unknown', 'degraded', 'healthy'];

/** Renders all devices of the node on one page, or a notice before the first snapshot. */
export function overviewPage(snapshot: Snapshot | undefined, frame: PageFrame, remedyOf: RemedyOf): string {
  if (snapshot === undefined) {
    return document(frame, 'device-agent', html`<p>The agent reads the hardware for the first time. Reload in a moment.</p>`, html``);
  }
  const body = html`${tiles(snapshot, frame.nowMs)}${problems(snapshot, remedyOf)}${devices(snapshot, frame.nowMs)}${unresolved(snapshot)}`;
  const age = durationText(frame.nowMs - snapshot.takenAtMs);
  const footer = html`Snapshot ${snapshot.sequence}, taken ${new Date(snapshot.takenAtMs).toISOString()}, ${age} ago. Reload for the latest.`;
  return document(frame, `${frame.node ?? 'device-agent'}: devices`, body, footer);
}

function tiles(snapshot: Snapshot, nowMs: number): Html {
  const count = (state: string): number => snapshot.devices.filter((device) => shownState(device) === state).length;
  const held = snapshot.devices.filter((device) => device.holders.length > 0).length;
  const states = ([...HEALTH_STATES, 'missing'] as const).filter((state) => state === 'healthy' || count(state) > 0);
  return html`<ul class="tiles">
<li><b>${snapshot.devices.length}</b> devices, ${held} held</li>
${states.map((state) => html`<li><b>${count(state)}</b> <span class="state ${state}">${STATE_NAMES[state]}</span>${state === 'healthy' ? waiting(snapshot) : undefined}</li>`)}
${kubeletTile(snapshot, nowMs)}
</ul>`;
}

/** Adds to the `Healthy` tile how many of its devices have a pending condition. */
function waiting({ devices }: Snapshot): Html | undefined {
  const found = devices.filter((device) => shownState(device) === 'healthy' && pendingTrouble(device.verdict).length > 0);
  return found.length === 0 ? undefined : html`<br><small>${found.length} with a condition pending</small>`;
}

function kubeletTile({ podResources }: Snapshot, nowMs: number): Html {
  const { problem, answeredAtMs, held } = podResources;
  const answer = answeredAtMs === undefined ? 'no answer yet' : `last answer ${durationText(nowMs - answeredAtMs)} ago`;
  const kept = held.size > 0 ? `, ${held.size} kept from an earlier answer` : '';
  const [state, word] =
    problem !== undefined ? ['unhealthy', problem.reason] : answeredAtMs === undefined ? ['unknown', 'waiting'] : ['healthy', 'answers'];
  return html`<li class="wide"><b><span class="state ${state}">${word}</span></b> kubelet, ${answer}${kept}</li>`;
}

function problems(snapshot: Snapshot, remedyOf: RemedyOf): Html | undefined {
  const rows = snapshot.families.flatMap(({ family, hung, problems: list }) => [
    ...(hung ? [problemRow(family, 'A read hangs; it was abandoned.', 'Look in the kernel log for the device that does not answer.')] : []),
    ...list.map(({ code, message, device }) =>
      problemRow(device === undefined ? family : `${family} ${device}`, message, remedyOf(family, code)),
    ),
  ]);
  const { problem } = snapshot.podResources;
  if (problem !== undefined) rows.unshift(problemRow('kubelet', problem.message, KUBELET_REMEDIES[problem.reason]));
  if (rows.length === 0) return undefined;
  return html`<h2>Problems</h2>
<div class="scroll"><table><thead><tr><th scope="col">Where</th><th scope="col">What</th><th scope="col">Remedy</th></tr></thead><tbody>
${rows}
</tbody></table></div>`;
}

function problemRow(where: string, what: string, remedy: string | undefined): Html {
  return html`<tr><th scope="row">${where}</th><td>${what}</td><td>${remedy}</td></tr>\n`;
}

function devices(snapshot: Snapshot, nowMs: number): Html {
  if (snapshot.devices.length === 0) return html`<h2>Devices</h2><p>No probe found a device on this node.</p>`;
  const left = snapshot.devices.length - MOST_DEVICES;
  return html`<h2>Devices</h2>
<div class="scroll"><table><thead><tr><th scope="col">Device</th><th scope="col">Health</th><th scope="col">Held by</th><th scope="col">Readings</th></tr></thead><tbody>
${byAttention(snapshot.devices)
  .slice(0, MOST_DEVICES)
  .map((state) => deviceRow(state, nowMs))}
</tbody></table></div>${left > 0 ? html`<p>${left} more devices are listed by <a href="/api/v1/devices">the API</a>.</p>` : undefined}`;
}

/** Sorts unhealthy devices first, because the page shows only the first {@link MOST_DEVICES}. The sort is stable. */
function byAttention(devices: readonly DeviceState[]): readonly DeviceState[] {
  const rank = (device: DeviceState): number => 2 * ORDER.indexOf(shownState(device)) + (pendingTrouble(device.verdict).length > 0 ? 0 : 1);
  return devices.toSorted((a, b) => rank(a) - rank(b));
}

function deviceRow(state: DeviceState, nowMs: number): Html {
  const { family, id, kind, model, pciAddress, parent } = state.device;
  const facts = [`${family} ${kind}`, model, pciAddress === id ? undefined : pciAddress, parent && `in ${parent}`];
  return html`<tr><th scope="row"><a class="id" href="${devicePath(state)}">${id}</a><br><small>${facts.filter((fact) => fact).join(' · ')}</small></th>
<td>${healthCell(state, nowMs)}</td>
<td>${holderList(state.holders, MOST_HOLDERS)}</td>
<td><dl>${mainReadings(state.readings).map(({ title, text }) => html`<dt>${title}</dt><dd>${text}</dd>`)}</dl></td></tr>\n`;
}

function unresolved(snapshot: Snapshot): Html | undefined {
  const states = snapshot.allocations.filter((state) => state.unresolved !== undefined);
  if (states.length === 0) return undefined;
  const left = states.length - MOST_UNRESOLVED;
  return html`<h2>Allocations without a device</h2>
<div class="scroll"><table><thead><tr><th scope="col">Held by</th><th scope="col">Why</th></tr></thead><tbody>
${states
  .slice(0, MOST_UNRESOLVED)
  .map(
    (state) =>
      html`<tr><td>${holderList([state.allocation], 1)}</td><td>${state.unresolved === undefined ? undefined : UNRESOLVED_TEXTS[state.unresolved]}</td></tr>\n`,
  )}
</tbody></table></div>${left > 0 ? html`<p>${left} more are listed by <a href="/api/v1/allocations">the API</a>.</p>` : undefined}`;
}
