import type { Board } from '../../board/board.ts';
import { type DeviceView, parentKey, stateOf } from '../../board/device-view.ts';
import { type Html, html } from '../../board/html.ts';
import { devicePath } from '../../board/paths.ts';
import { isNumber } from '../../board/readings.ts';
import { holderList, readingList, useCell } from '../../board/row-html.ts';
import { age, stateCell } from '../../board/state-html.ts';
import { metricTitle, readingText } from '../../board/units.ts';
import { byDevice } from '../../incidents/by-device.ts';
import type { DeviceHistory } from '../../incidents/history.ts';
import type { ListedIncident } from '../../incidents/store.ts';
import type { HealthEvent } from '../../model/events.ts';
import type { Reading } from '../../model/metric.ts';
import type { ObservedSpans } from '../../model/observed-spans.ts';
import type { DeviceState } from '../../model/snapshot.ts';
import { charts } from './charts.ts';
import { eventList, timeline } from './health-timeline.ts';
import { incidentList } from './incident-list.ts';
import { document, factTable, type PageFrame, part } from './page-parts.ts';

export interface DevicePageDependencies {
  readonly state: DeviceState;
  readonly row: DeviceView;
  readonly board: Board;
  readonly history: DeviceHistory | undefined;
  /** Events of the device, the newest first. */
  readonly events: readonly HealthEvent[];
  readonly watched: ObservedSpans | undefined;
  /** Those of the device, the newest first. */
  readonly incidents: readonly ListedIncident[];
}

/** Renders one device: its verdict and what to do, then the last half hour, then what rarely matters. */
export function devicePage({ state, row, board, history, events, watched, incidents }: DevicePageDependencies, frame: PageFrame): string {
  const { device } = state;
  const parts = board.devices.filter((one) => parentKey(one) === row.key);
  const parent = board.devices.find(({ key }) => key === parentKey(row));
  const body = html`<h2>${row.name}${row.name === device.id ? undefined : html` <small><code>${device.id}</code></small>`}</h2>
${part(
  'verdict',
  factTable([
    ['Health', stateCell(row, frame.nowMs)],
    ['Held by', useCell(row, row.holders.length)],
    ['Now', readingList(row.shown)],
    ['Part of', parent && deviceLink(parent)],
    ['Parts', parts.length === 0 ? undefined : html`<ul class="plain">${parts.map((one) => html`<li>${deviceLink(one)}</li>`)}</ul>`],
  ]),
)}<h2>Last 30 minutes</h2>
${part('timeline', timeline({ device: row, events, watched, readTimes: history?.times ?? [], nowMs: frame.nowMs }))}${part('charts', charts(row.key, history, frame.nowMs))}<h2>Events</h2>
${part('events', eventList(events))}${incidents.length === 0 ? undefined : html`<h2>Incidents</h2>\n${repeats(incidents)}${incidentList(incidents)}`}
<details><summary>Facts and other names</summary>${factTable(identity(state))}</details>
<details><summary>All readings</summary>${part('readings', readings(state.readings))}</details>`;
  const footer = html`<p>Read ${age(state.readAtMs, frame.nowMs)} ago.</p>`;
  return document(frame, { title: `${row.name}: device-agent`, body, footer, liveness: 'reload', hasCharts: true });
}

/** The kept incidents in numbers. */
function repeats(incidents: readonly ListedIncident[]): Html {
  const counts = byDevice(incidents);
  const sum = (count: 'incidents' | 'fatal' | 'again' | 'movedHolders'): number => counts.reduce((total, one) => total + one[count], 0);
  return html`<p>${sum('incidents')} kept, ${sum('fatal')} fatal; the same condition again ${sum('again')} times, ${sum('movedHolders')} of them with other holders.</p>\n`;
}

const deviceLink = (row: DeviceView): Html =>
  html`<a href="${devicePath(row)}">${row.name}</a> <small>${row.kind}, ${stateOf(row)}, ${row.use}</small>${row.use === 'held' ? holderList(row.holders, 2) : undefined}`;

function identity({ device, processes }: DeviceState): readonly (readonly [string, string | undefined])[] {
  return [
    ['Id', device.id],
    ['Family', `${device.family}, ${device.kind}`],
    ['Part of', device.parent],
    ['Model', device.model],
    ['Vendor', device.vendor],
    ['UUID', device.uuid],
    ['Serial number', device.serial],
    ['PCI address', device.pciAddress],
    ['PCI path', device.pciPath],
    ['NUMA node', device.numaNode === undefined ? undefined : String(device.numaNode)],
    ['Driver', device.driver],
    ['Driver version', device.driverVersion],
    ['Firmware', device.firmware],
    ['Direct links', device.peers?.map((peer) => `${peer.links} to ${peer.device}`).join(', ')],
    ['Other names', device.aliases.join(', ')],
    ['Processes', processes.map(({ pid, name }) => (name === undefined ? String(pid) : `${pid} ${name}`)).join(', ')],
  ];
}

function readings(given: Iterable<Reading>): Html {
  const list = [...given].filter(isNumber);
  if (list.length === 0) return html`<p>There are no readings now.</p>`;
  const sorted = list.toSorted((a, b) => (a.metric < b.metric ? -1 : a.metric > b.metric ? 1 : 0));
  return html`<div class="scroll"><table><thead><tr><th scope="col">Reading</th><th scope="col">Of</th><th scope="col" class="number">Value</th><th scope="col">Metric</th></tr></thead><tbody>
${sorted.map(
  (reading) =>
    html`<tr><th scope="row">${metricTitle(reading.metric)}</th><td>${labelList(reading)}</td><td class="number">${readingText(reading.metric, reading.value)}</td><td><code>${reading.metric}</code></td></tr>\n`,
)}
</tbody></table></div>`;
}

/** Returns the label values. A numeric value is prefixed with its label name. */
function labelList(reading: Reading): string {
  return Object.entries(reading.labels ?? {})
    .map(([name, value]) => (/^\d+$/.test(value) ? `${name} ${value}` : value))
    .join(', ');
}
