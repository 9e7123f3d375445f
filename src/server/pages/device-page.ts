import { durationText, metricTitle, readingText } from '../../board/units.ts';
import type { ListedIncident } from '../../incidents/store.ts';
import type { Reading } from '../../model/metric.ts';
import type { DeviceState } from '../../model/snapshot.ts';
import { type Html, html } from './html.ts';
import { document, healthCell, holderList, type PageFrame } from './page-parts.ts';
import { isNumber, labelList } from './page-readings.ts';

const MOST_INCIDENTS = 20;

/** Renders all data of one device. `incidents`: those of the device, the newest first. */
export function devicePage(state: DeviceState, frame: PageFrame, incidents: readonly ListedIncident[] = []): string {
  const { device } = state;
  const body = html`<h2>${device.id}</h2>
<div class="scroll"><table><tbody>
<tr><th scope="row">Health</th><td>${healthCell(state, frame.nowMs)}</td></tr>
<tr><th scope="row">Held by</th><td>${holderList(state.holders, state.holders.length)}</td></tr>
${identity(state).map(([name, value]) => html`<tr><th scope="row">${name}</th><td>${value}</td></tr>\n`)}
</tbody></table></div>
${incidentLinks(incidents)}${readings(state.readings)}`;
  const footer = html`Read ${durationText(frame.nowMs - state.readAtMs)} ago. Reload for the latest.`;
  return document(frame, `${device.id}: device-agent`, body, footer);
}

function identity({ device, processes }: DeviceState): readonly (readonly [string, string])[] {
  const rows: readonly (readonly [string, string | undefined])[] = [
    ['Family', `${device.family}, ${device.kind}`],
    ['Part of', device.parent],
    ['Model', device.model],
    ['Vendor', device.vendor],
    ['UUID', device.uuid],
    ['Serial number', device.serial],
    ['PCI address', device.pciAddress],
    ['NUMA node', device.numaNode === undefined ? undefined : String(device.numaNode)],
    ['Driver', device.driver],
    ['Firmware', device.firmware],
    ['Direct links', device.peers?.map((peer) => `${peer.links} to ${peer.device}`).join(', ')],
    ['Other names', device.aliases.join(', ')],
    ['Processes', processes.map(({ pid }) => pid).join(', ')],
  ];
  return rows.filter((row): row is readonly [string, string] => row[1] !== undefined && row[1] !== '');
}

function incidentLinks(incidents: readonly ListedIncident[]): Html | undefined {
  if (incidents.length === 0) return undefined;
  return html`<h2>Incidents</h2>
<ul class="plain">${incidents
    .slice(0, MOST_INCIDENTS)
    .map(
      ({ id, time, states, conditions }) =>
        html`<li><a href="/incidents/${encodeURIComponent(id)}">${time}</a> ${states.join(' → ')} <small>${conditions.join(', ')}</small></li>`,
    )}</ul>
`;
}

function readings(given: Iterable<Reading>): Html {
  const list = [...given].filter(isNumber);
  if (list.length === 0) return html`<p>There are no readings now.</p>`;
  const sorted = list.toSorted((a, b) => (a.metric < b.metric ? -1 : a.metric > b.metric ? 1 : 0));
  return html`<h2>Readings</h2>
<div class="scroll"><table><thead><tr><th scope="col">Reading</th><th scope="col">Of</th><th scope="col" class="number">Value</th><th scope="col">Metric</th></tr></thead><tbody>
${sorted.map(
  (reading) =>
    html`<tr><th scope="row">${metricTitle(reading.metric)}</th><td>${labelList(reading)}</td><td class="number">${readingText(reading.metric, reading.value)}</td><td><code>${reading.metric}</code></td></tr>\n`,
)}
</tbody></table></div>`;
}
