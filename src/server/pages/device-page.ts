import type { Board } from '../../board/board.ts';
import type { Chart } from '../../board/chart-html.ts';
import {
  appearanceOf,
  appearedAt,
  type DeviceView,
  type DisplayReading,
  modelText,
  noHolderText,
  parentKey,
  userName,
} from '../../board/device-view.ts';
import { type Html, html } from '../../board/html.ts';
import { compareNames } from '../../board/order.ts';
import { commandHtml, recordLink } from '../../board/overview-html.ts';
import { devicePath } from '../../board/paths.ts';
import { isNumber } from '../../board/readings.ts';
import { bar, isHot, podLink, presentText } from '../../board/row-html.ts';
import { age, clock, conditionTexts, mark } from '../../board/state-html.ts';
import { faultText, findingsOf } from '../../board/summary.ts';
import { metricTitle, readingText, timeText } from '../../board/units.ts';
import { byDevice } from '../../incidents/by-device.ts';
import type { DeviceHistory } from '../../incidents/history.ts';
import type { ListedIncident } from '../../incidents/record.ts';
import { containerNameOf } from '../../model/device-use.ts';
import type { HealthEvent } from '../../model/events.ts';
import type { Reading } from '../../model/metric.ts';
import type { ObservedSpans } from '../../model/observed-spans.ts';
import { Readings } from '../../model/readings.ts';
import type { DeviceState } from '../../model/snapshot.ts';
import { withoutSlash } from '../options.ts';
import { chartsHtml, lastReadOf, lastValues } from './charts.ts';
import { eventList, timeline } from './health-timeline.ts';
import { deviceIncidents } from './incident-list.ts';
import { card, document, facts, type PageFrame, part, table, titleHtml } from './page-parts.ts';

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
  /** The readings that its head shows. */
  numbersOf(state: DeviceState): readonly DisplayReading[];
}

/** Renders one device: how it is and what to do, how much it does against its limits, what changed and who holds it; then what rarely matters. */
export function devicePage(parts: DevicePageDependencies, frame: PageFrame): string {
  const { state, row, board, history, events, watched, incidents } = parts;
  const { device } = state;
  const { nowMs } = frame;
  const list = [...state.readings].filter(isNumber);
  const body = html`${titleHtml(['/', 'Devices'], row.name, html`${modelText(row) ?? `${row.family} ${row.kind}`}`, [
    ['PCI', device.pciAddress],
    ['NUMA node', device.numaNode],
    ['Driver', device.driverVersion ?? device.driver],
    ['Serial', device.serial],
    ['More', boardLink(device.id, frame)],
  ])}${part('verdict', verdict(row, board, nowMs))}${part('numbers', numbers(parts))}${part('charts', chartsHtml(history, nowMs, faultOf(row), row.family))}
<div class="two" id="record"><div class="stack">${part('timeline', card('Verdict', timeline({ device: row, events, watched, readTimes: history?.times ?? [], nowMs })))}${part(
    'events',
    card('Events', eventList(events, row, nowMs)),
  )}${part('incidents', incidents.length === 0 ? undefined : card('Incidents', deviceIncidents({ incidents, events: events.toReversed(), snapshot: { devices: [state] }, board, nowMs }), repeats(incidents)))}</div>
<div class="stack">${part('holders', card('Held by', holders(row, state, board)))}${part('parts', partsOf(row, board))}
<details class="card"><summary>Facts and other names</summary>${facts(identity(state))}</details></div></div>
<details class="card"><summary>All readings <span class="soft">${list.length}</span></summary>${part('readings', readings(list, device.family))}</details>`;
  return document(frame, {
    title: `${row.name}: ${row.health.state}`,
    at: '/',
    body,
    json: `/api/v1${devicePath(row)}`,
    liveness: 'reload',
  });
}

/** The board of the device in Grafana, which reaches further back than this page. */
const boardLink = (id: string, { grafanaUrl = '', node = '' }: PageFrame): Html | undefined =>
  grafanaUrl === ''
    ? undefined
    : html`<a href="${withoutSlash(grafanaUrl)}/d/device-agent-device?${new URLSearchParams({ 'var-node': node, 'var-device': id }).toString()}">board of the device</a>`;

function verdict(row: DeviceView, board: Board, nowMs: number): Html {
  const state = appearanceOf(row);
  const since = appearedAt(row);
  const [finding] = findingsOf(board, [row]);
  const lines = conditionTexts(row, nowMs);
  return html`<section class="say ${state}" aria-label="State"><div>${finding && html`<h2>${faultText(finding)}</h2>`}<p>${mark(state)}${
    since === undefined ? undefined : html` <b>for ${age(Date.parse(since), nowMs)}</b>, since ${clock(since, nowMs)} UTC`
  }${state === 'recovering' ? `, still ${row.health.state}` : undefined}${row.incident && html` · ${recordLink({ devices: [row] })}`}</p>${lines}</div>${finding?.command === undefined ? undefined : commandHtml(finding.command)}</section>`;
}

function faultOf(row: DeviceView): Chart['fault'] {
  const since = appearedAt(row);
  const state = appearanceOf(row);
  return since === undefined || state === 'healthy' || state === 'pending' ? undefined : { fromMs: Date.parse(since), state };
}

/** The readings in large type. Those of a device that is no longer read are its last ones, with their time. */
function numbers({ state, history, numbersOf }: DevicePageDependencies): Html | undefined {
  const now = numbersOf(state);
  if (now.length > 0) return stats(now.map((one) => stat(one)));
  const last = history && lastReadOf(history);
  const old = history === undefined || last === undefined ? [] : numbersOf({ ...state, readings: Readings.of(lastValues(history)) });
  return old.length === 0 ? undefined : stats(old.map((one) => stat(one, `last read ${timeText(last as number).slice(11, 19)}`)));
}

const stats = (list: readonly Html[]): Html => html`<dl class="card stats">${list}</dl>`;

function stat(reading: DisplayReading, oldText?: string): Html {
  const { label, text, ratio } = reading;
  const [, number = presentText(reading), unit] = /^([\d.\u202f-]+)\s+(.*)$/.exec(presentText(reading)) ?? [];
  const limit = text.includes(' of ') ? `of ${text.split(' of ')[1]}` : undefined;
  const note = oldText ?? limit;
  const mood = oldText !== undefined ? ' old' : isHot(reading) ? ' hot' : '';
  return html`<div class="stat${mood}"><dt>${label}</dt><dd>${number}${unit && html`<small>${unit}</small>`}</dd>${note === undefined ? undefined : html`<dd>${note}</dd>`}${ratio === undefined || oldText !== undefined ? undefined : bar(reading)}</div>`;
}

/** The kept incidents in numbers. */
function repeats(incidents: readonly ListedIncident[]): string {
  const counts = byDevice(incidents);
  const sum = (count: 'incidents' | 'fatal' | 'again' | 'movedHolders'): number => counts.reduce((total, one) => total + one[count], 0);
  return `${sum('incidents')} kept, ${sum('fatal')} fatal; the same condition again ${sum('again')} times, ${sum('movedHolders')} of them with other holders`;
}

function nobodyText(device: DeviceView, { kubelet, unresolved }: Board): string {
  const { use } = device;
  if (use === 'no holder') return `It has ${noHolderText(device)}.`;
  if (use !== 'free')
    return kubelet.state === 'answers' ? 'A container holds a name that several devices have.' : 'The kubelet did not say who holds it.';
  return unresolved.length === 0
    ? 'Free: no container holds it.'
    : 'No container is known to hold it, but some hold ids that lead to no device.';
}

function holders(device: DeviceView, { processes }: DeviceState, board: Board): Html {
  const { holders: list, users = [], farthest } = device;
  if (list.length + users.length === 0) return html`<p class="body soft">${nobodyText(device, board)}</p>`;
  const running = processes.map(({ pid, name, memoryUsedBytes }) =>
    [name, `pid ${pid}`, memoryUsedBytes === undefined ? undefined : readingText('_bytes', memoryUsedBytes)]
      .filter((text) => text !== undefined)
      .join(', '),
  );
  return facts([
    ...list.map(
      (one) =>
        [
          one.part === undefined ? 'Pod' : `Pod, on ${one.part}`,
          html`${podLink(one)}, container ${one.container} <small>${one.resource}${one.delegated && ', held for its users'}</small>`,
        ] as const,
    ),
    ...users.map((user) => ['Used by', user.pod === undefined ? userName(user) : podLink(containerNameOf(user))] as const),
    ['Processes', running.join('; ')],
    ['Farthest', farthest],
  ]);
}

/** What it is part of, and its parts. */
function partsOf(row: DeviceView, board: Board): Html | undefined {
  const parent = board.devices.find(({ key }) => key === parentKey(row));
  const parts = board.devices.filter((one) => parentKey(one) === row.key);
  if (parent === undefined && parts.length === 0) return undefined;
  const line = (one: DeviceView): Html =>
    html`<td>${mark(appearanceOf(one))}</td><td><a href="${devicePath(one)}">${one.name}</a> <small>${one === parent ? 'it is a part of this' : one.kind}</small></td><td>${one.holders[0] === undefined ? one.use : podLink(one.holders[0])}</td>`;
  return card(
    parent === undefined ? 'Parts' : 'Whole and parts',
    table(['State', 'Device', 'Held by'], [...(parent === undefined ? [] : [parent]), ...parts].map(line)),
  );
}

function identity({ device, processes }: DeviceState): readonly (readonly [string, string | undefined])[] {
  return [
    ['Id', device.id],
    ['Family', `${device.family}, ${device.kind}`],
    ['Part of', device.parent],
    ['Model', device.model],
    ['Vendor', device.vendor],
    ['UUID', device.uuid],
    ['Serial number', device.serial],
    ['Location', device.location],
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

/** Counters that never counted are named in one line: an adapter has hundreds. */
function readings(list: readonly Reading[], family: string): Html {
  if (list.length === 0) return html`<p class="body">There are no readings now.</p>`;
  const named = list.map((reading) => ({ reading, title: metricTitle(reading.metric, family), of: labelList(reading) }));
  const sorted = named.sort((a, b) => compareNames(a.title, b.title) || compareNames(a.of, b.of));
  const isZero = ({ reading: { metric, value } }: (typeof sorted)[number]): boolean => metric.endsWith('_total') && Number(value) === 0;
  const zeros = sorted.filter(isZero);
  const rows = sorted.filter((one) => !isZero(one));
  return html`<ul class="values">${rows.map(
    ({ reading: { metric, value }, title, of }) =>
      html`<li><b>${title}</b> <span class="soft">${of}</span> <span class="num">${readingText(metric, value)}</span></li>`,
  )}</ul>${
    zeros.length === 0
      ? undefined
      : html`<details class="body"><summary>${zeros.length} counters are 0</summary><p class="soft">${zeros.map(({ title, of }) => (of === '' ? title : `${title} (${of})`)).join('; ')}</p></details>`
  }`;
}

/** Returns the label values. A numeric value is prefixed with its label name. */
function labelList(reading: Reading): string {
  return Object.entries(reading.labels ?? {})
    .map(([name, value]) => (/^\d+$/.test(value) ? `${name} ${value}` : value))
    .join(', ');
}
