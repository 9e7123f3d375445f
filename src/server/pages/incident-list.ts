import type { Board } from '../../board/board.ts';
import {
  appearanceOf,
  conditionsOf,
  type DeviceView,
  hasOnlyFaultsOfWhole,
  modelText,
  parentKey,
  remedyOf,
} from '../../board/device-view.ts';
import { type Html, html } from '../../board/html.ts';
import { podNames } from '../../board/incident.ts';
import { devicePath, incidentPath } from '../../board/paths.ts';
import { podLink } from '../../board/row-html.ts';
import { age, clock, mark } from '../../board/state-html.ts';
import { timeText } from '../../board/units.ts';
import { REMEDY_TEXTS } from '../../board/words.ts';
import { byDevice } from '../../incidents/by-device.ts';
import { type Course, courseOf, type PresentDevice } from '../../incidents/course.ts';
import type { ListedIncident } from '../../incidents/record.ts';
import { eventsOfHardware, eventsUnderName } from '../../incidents/timeline.ts';
import { conditionName } from '../../model/condition-text.ts';
import { durationText } from '../../model/duration.ts';
import type { HealthEvent } from '../../model/events.ts';
import { hardwareKey } from '../../model/hardware.ts';
import type { Snapshot } from '../../model/snapshot.ts';
import { card, document, numberCell, type PageFrame, part, table, titleHtml } from './page-parts.ts';

/** The data of the lists of incidents. */
export interface IncidentFacts {
  /** The newest first. */
  readonly incidents: readonly ListedIncident[];
  /** The oldest first. */
  readonly events: readonly HealthEvent[];
  readonly snapshot: Pick<Snapshot, 'devices'> | undefined;
  readonly board: Board | undefined;
  readonly nowMs: number;
}

/** An incident with its course, and its device as it is now. */
export interface Followed {
  readonly incident: ListedIncident;
  readonly course: Course;
  /** Absent for a device that is not listed any more. */
  readonly row: DeviceView | undefined;
  /** How many earlier ones of the device have one of its conditions. */
  readonly again: number;
  /** `namespace/pod` of those that it hit. */
  readonly pods: readonly string[];
  /** Its fault is that of its whole, which is open, too. */
  readonly isPart?: boolean;
}

const MOST_OF_DEVICE = 20;
const MOST_ON_PAGE = 200;

/** Each incident that can be read, the newest first. */
export function followed({ incidents, events, snapshot, board }: IncidentFacts): readonly Followed[] {
  const rows = new Map(board?.devices.map((row) => [row.key, row]));
  const keys = new Map(snapshot?.devices.map(({ key, device }) => [hardwareKey(device), key]));
  const ofRow = new Map<string, readonly HealthEvent[]>();
  const eventsOf = (key: string): readonly HealthEvent[] => {
    const own = ofRow.get(key) ?? eventsOfHardware(events, key);
    ofRow.set(key, own);
    return own;
  };
  // A record of a later version may tell nothing of itself.
  const readable = incidents.filter(({ time }) => !Number.isNaN(Date.parse(time)));
  const ofDevice = new Map<string, ListedIncident[]>();
  for (const one of readable) {
    const own = one.hardware ?? one.device;
    ofDevice.set(own, [...(ofDevice.get(own) ?? []), one]);
  }
  return readable.map((incident): Followed => {
    const { device, hardware, conditions, holders } = incident;
    const all = ofDevice.get(hardware ?? device) ?? [];
    const at = all.indexOf(incident);
    // Another device may have its name by now.
    const row = rows.get(hardware === undefined ? device : (keys.get(hardware) ?? ''));
    return {
      incident,
      row,
      course: courseOf(
        incident,
        all[at - 1],
        row === undefined ? eventsUnderName(events, device, Date.parse(incident.time)) : eventsOf(row.key),
        row && presentOf(row),
      ),
      again: all.slice(at + 1).filter((one) => one.conditions.some((name) => conditions.includes(name))).length,
      pods: podNames(holders),
    };
  });
}

const presentOf = (row: DeviceView): PresentDevice => ({
  state: row.health.state,
  sinceMs: row.health.since === undefined ? undefined : Date.parse(row.health.since),
  conditions: conditionsOf(row).map(conditionName),
});

export const nameIn = ({ incident: { device }, row }: Pick<Followed, 'incident' | 'row'>): string =>
  row?.name ?? device.replace(/^[^/]*\//, '');

/** Records of one device, the newest first. */
export function deviceIncidents(of: IncidentFacts): Html {
  const all = followed(of);
  const rest = all.length - MOST_OF_DEVICE;
  const rows = all
    .slice(0, MOST_OF_DEVICE)
    .map((one) => html`<th scope="row">${timeLink(one, of.nowMs)}</th>${whatCells(one)}${courseCells(one, of.nowMs)}`);
  return html`${table(['Time, UTC', 'Conditions', 'Was hit', 'Lasted', 'Ended'], rows)}${rest > 0 ? html`<p class="body soft">and ${rest} older ones</p>` : undefined}`;
}

const timeLink = ({ incident: { id, time, began = time } }: Followed, nowMs: number): Html =>
  html`<a href="${incidentPath(id)}">${clock(began, nowMs)}</a>`;

function whatCells({ incident: { conditions, holdersUnknown }, again, pods }: Followed): Html {
  const more = pods.length - MOST_PODS;
  return html`<td>${conditions.map(inWords).join(', ')}${again === 0 ? undefined : html` <small>again, ${again} earlier</small>`}</td><td data-label="hit">${
    pods.length === 0
      ? html`<span class="soft">${holdersUnknown === true ? 'not known' : 'no container'}</span>`
      : pods.slice(0, MOST_PODS).map((name, at) => html`${at === 0 ? undefined : ', '}${podOf(name)}`)
  }${more > 0 ? `, ${more} more` : undefined}</td>`;
}

const MOST_PODS = 3;

/** How long it lasted, and when it ended. */
function courseCells({ incident: { time, began = time }, course }: Followed, nowMs: number): Html {
  const fromMs = Date.parse(began);
  const cells = (lasted: Html | string | undefined, ended: Html | string | undefined): Html =>
    html`<td data-label="lasted">${lasted ?? NOT_KNOWN}</td><td data-label="ended">${ended ?? NOT_KNOWN}</td>`;
  if (course.is === 'open') return html`<td><b>open</b> for ${age(fromMs, nowMs)}</td><td></td>`;
  if (course.is === 'went on') {
    const { id, time: at } = course.next;
    return cells(durationText(Date.parse(at) - fromMs), html`<a href="${incidentPath(id)}">went on</a> ${clock(at, nowMs)}`);
  }
  const endMs = course.is === 'ended' ? course.endMs : undefined;
  return endMs === undefined ? cells(undefined, undefined) : cells(durationText(endMs - fromMs), clock(timeText(endMs), nowMs));
}

const NOT_KNOWN = html`<span class="soft">not known</span>`;

/** A part that has only the fault of its whole stands below it: both are one fault. */
function belowTheirWhole(open: readonly Followed[]): readonly Followed[] {
  const wholeOf = ({ row }: Followed): Followed | undefined =>
    row && hasOnlyFaultsOfWhole(row) ? open.find((one) => one.row?.key === parentKey(row)) : undefined;
  const under = (whole: Followed | undefined): readonly Followed[] =>
    open.flatMap((one) => (wholeOf(one) === whole ? [{ ...one, isPart: whole !== undefined }, ...under(one)] : []));
  const placed = under(undefined);
  // A circle of parents, which no hardware should report, has no whole.
  return placed.length === open.length ? placed : open;
}

function nodeRow(one: Followed, nowMs: number): Html {
  const { row, course, isPart } = one;
  const device = row === undefined ? nameIn(one) : html`<a href="${devicePath(row)}">${row.name}</a>`;
  const model = row && modelText(row);
  const state = row === undefined ? html`<span class="soft">not listed</span>` : mark(appearanceOf(row));
  return html`<td>${timeLink(one, nowMs)}</td><th scope="row">${isPart ? '└ ' : undefined}${device}${model === undefined ? undefined : html` <small class="pci">${model}</small>`}</th>${whatCells(one)}${courseCells(one, nowMs)}<td data-label="now">${state}</td><td>${toDo(row, course)}</td>`;
}

function toDo(row: DeviceView | undefined, { is }: Course): Html {
  if (is === 'ended') return html`<span class="soft">nothing, it ended</span>`;
  if (is === 'went on') return html`<span class="soft">see the later one</span>`;
  if (row === undefined) return NOT_KNOWN;
  const text = REMEDY_TEXTS[remedyOf(row) ?? 'none'];
  if (text !== undefined) return html`<b>${text}</b>`;
  return html`<span class="soft">${appearanceOf(row) === 'recovering' ? 'nothing, it recovers' : 'No action is known.'}</span>`;
}

/** `PortDown/1` as people see it: `PortDown (1)`. */
export const inWords = (name: string): string => name.replace(/\/(.+)$/, ' ($1)');

function podOf(name: string): Html {
  const [namespace = '', pod = ''] = name.split('/');
  return podLink({ namespace, pod });
}

const HEADS = ['Time, UTC', 'Device', 'Conditions', 'Was hit', 'Lasted', 'Ended', 'State now', 'What to do'];

function nodeTable(list: readonly Followed[], nowMs: number): Html {
  const rest = list.length - MOST_ON_PAGE;
  const rows = list.slice(0, MOST_ON_PAGE).map((one) => nodeRow(one, nowMs));
  return html`${table(HEADS, rows)}${rest > 0 ? html`<p class="body soft">and ${rest} older ones</p>` : undefined}`;
}

/** All incidents of the node: those that last first. */
export function incidentsPage(of: IncidentFacts, frame: PageFrame): string {
  const { nowMs } = frame;
  const all = followed(of);
  const open = belowTheirWhole(all.filter(({ course }) => course.is === 'open'));
  const faults = open.filter(({ isPart }) => !isPart).length;
  const others = all.filter(({ course }) => course.is !== 'open');
  const unread = of.incidents.length - all.length;
  const list =
    all.length === 0
      ? html`<section class="card"><p class="head">No incident is recorded.</p></section>`
      : html`${open.length === 0 ? undefined : card('Open', nodeTable(open, nowMs), 'the device is still not well')}${
          others.length === 0 ? undefined : card('Earlier', nodeTable(others, nowMs))
        }${card('By device', deviceTable(of.incidents, all, nowMs), 'of the kept records')}`;
  const body = html`${titleHtml(['/', 'Devices'], 'Incidents', html`${faults} open${open.length === faults ? undefined : ` (with parts ${open.length})`}, ${others.length} earlier`)}
<p class="soft">Each time at which the verdict on a device got worse or unknown, with holders, readings and kernel log.${unread > 0 ? ` A later version of the agent wrote ${unread} more.` : undefined}</p>
${part('incidents', html`<div class="stack">${list}</div>`)}`;
  return document(frame, { title: 'Incidents', at: '/incidents', body, json: '/api/incidents', liveness: 'reload' });
}

/** Which device fails again, and whether the fault stayed when its holders moved. */
function deviceTable(incidents: readonly ListedIncident[], all: readonly Followed[], nowMs: number): Html {
  const names = new Map(all.map((one) => [one.incident.device, nameIn(one)]));
  const rows = byDevice(incidents.filter(({ device }) => names.has(device))).map(
    (one) =>
      html`<th scope="row">${names.get(one.device)}</th>${numberCell('incidents', one.incidents)}${numberCell('unhealthy', one.fatal)}${numberCell('again', one.again)}${numberCell('other holders', one.movedHolders)}<td data-label="last">${clock(one.last, nowMs)}</td>`,
  );
  return table(['Device', '#Incidents', '#Unhealthy', '#Same condition again', '#With other holders', 'Last, UTC'], rows);
}
