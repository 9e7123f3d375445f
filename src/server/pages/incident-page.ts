import { lastText, plotHtml, scaleOf } from '../../board/chart-html.ts';
import { appearanceOf } from '../../board/device-view.ts';
import { type Html, html } from '../../board/html.ts';
import { nameOf } from '../../board/name.ts';
import { commandHtml } from '../../board/overview-html.ts';
import { devicePath, incidentPath } from '../../board/paths.ts';
import { podLink, podsOf } from '../../board/row-html.ts';
import { age, clock } from '../../board/state-html.ts';
import { laneHtml } from '../../board/state-lanes.ts';
import { commandOf, countedText, DRAINS, phraseFor } from '../../board/summary.ts';
import { timeAxis } from '../../board/time-axis.ts';
import { readingText, timeText } from '../../board/units.ts';
import { REMEDY_TEXTS } from '../../board/words.ts';
import type { Course } from '../../incidents/course.ts';
import { beganAt, holdersHit, type IncidentHolder, type IncidentRecord } from '../../incidents/record.ts';
import { conditionName } from '../../model/condition-text.ts';
import { chartsOf, type Samples } from './charts.ts';
import { followed, type IncidentFacts, inWords } from './incident-list.ts';
import { ALSO, changeWords, furtherWords, noHolderText, OF_CRASH, otherWords, stateRows } from './incident-text.ts';
import { card, document, facts, type PageFrame, table, titleHtml } from './page-parts.ts';

/** After the fault, so much of the axis shows that it lasts. */
const AFTER = 0.04;
const LANES = 4;
const LANE_HEIGHT = 68;

/** Shows one record: what happened to what, who was hit and what to do; the ten minutes before on one axis; then the evidence. */
export function incidentPage(record: IncidentRecord, of: IncidentFacts, frame: PageFrame): string {
  const { id, device } = record;
  const crumb = titleHtml(['/incidents', 'Incidents'], sentence(record), undefined);
  const path = `/incidents/${encodeURIComponent(id)}`;
  const body = html`${crumb}${verdict(record, of)}
${lanes(record)}
<div class="two"><div class="stack">${card('Kernel log', kernel(record, frame.nowMs), 'lines that name the device')}${card('Who was hit', holders(record, frame.nowMs))}${wiped(record, frame.nowMs)}${later(record, frame.nowMs)}${also(record, frame)}</div>
<div class="stack">${card('The device', identity(record))}<section class="card body"><p><br>${
    frame.hasApi ? html`<a href="/api/incidents/${encodeURIComponent(id)}">Complete record as JSON</a> · ` : undefined
  }<a href="${path}?as=text">As text, for a ticket</a></p></section></div></div>`;
  return document(frame, {
    title: `${nameOf(device)}, ${beganAt(record).slice(0, 19).replace('T', ' ')}`,
    at: '/incidents',
    body,
    json: `/api/incidents/${encodeURIComponent(id)}`,
    liveness: 'none',
  });
}

/** `GPU 0 was lost at 16:55:00 UTC, training/llm-0-1 was hit`. */
function sentence(record: IncidentRecord): Html {
  const { device, changes, after } = record;
  const [lead] = after.conditions ?? [];
  const first = changes[0]?.condition;
  const phrase = lead !== undefined ? phraseFor(lead) : first !== undefined ? phraseFor({ type: first }) : `has become ${after.state}`;
  const past = phrase.replace(/^is /, 'was ').replace(/^has /, 'had ');
  const hit = podsOf(holdersHit(record));
  const began = beganAt(record);
  const who =
    hit.length === 0
      ? undefined
      : hit.length === 1 && hit[0] !== undefined
        ? html`, ${podLink(hit[0])} was hit`
        : `, ${hit.length} pods were hit`;
  return html`<a href="${devicePath(device)}">${nameOf(device)}</a> ${past} at ${began.slice(11, 19)} UTC${who}`;
}

function verdict(record: IncidentRecord, of: IncidentFacts): Html {
  const { after, before, changes, time } = record;
  const began = beganAt(record);
  const counted = countedText(began, time);
  // A record that is not in the list was removed a moment ago.
  const { row, course } = followed(of).find(({ incident }) => incident.id === record.id) ?? { row: undefined, course: GONE };
  const conditions = after.conditions ?? [];
  const remedy = [...conditions, ...changes].find((one) => one.remedy !== 'none')?.remedy ?? 'none';
  const pods = podsOf(holdersHit(record)).map(({ namespace, pod }) => `${namespace}/${pod}`);
  const command = course.is === 'open' ? commandOf(remedy, of.board?.node, pods) : undefined;
  const state = changes[0]?.to ?? after.state;
  const mood = course.is === 'open' && row !== undefined ? appearanceOf(row) : '';
  const advice = REMEDY_TEXTS[remedy] ?? 'No action is known.';
  const toDo =
    course.is === 'ended'
      ? html`<b>Nothing, it ended.</b> While it lasted: ${advice}`
      : course.is === 'went on'
        ? html`<b>See <a href="${incidentPath(course.next.id)}">the later incident</a>.</b> The device got no better before it.`
        : html`<b>${advice}</b>${DRAINS.includes(remedy) ? ' Keep this record first: a reset wipes the state below.' : undefined}`;
  return html`<section class="say ${mood}" aria-label="What to do"><div><p>${toDo}</p><p>${before.state} → <b>${state}</b>${conditions.map((one) => html` · ${inWords(conditionName(one))}: ${one.message}`)} ${counted && ` · ${counted}, at ${time.slice(11, 19)}`} · ${courseText(course, Date.parse(began), of.nowMs)}</p></div>${command === undefined ? undefined : commandHtml(command)}</section>`;
}

const GONE: Course = { is: 'unknown' };

function courseText(course: Course, fromMs: number, nowMs: number): Html | string {
  if (course.is === 'open') return html`it lasts, ${age(fromMs, nowMs)}`;
  if (course.is === 'went on') return html`it went on ${clock(course.next.time, nowMs)}`;
  if (course.is === 'unknown') return 'the device is not listed, so whether it ended is not known';
  return course.endMs === undefined ? 'it ended' : html`it ended ${clock(timeText(course.endMs), nowMs)}`;
}

/** Verdict, kernel log, holders and readings over one axis of time. */
function lanes(record: IncidentRecord): Html {
  const { readings, time, kernel: log, holders: list, before, after, changes } = record;
  const [momentMs, verdictMs] = [Date.parse(beganAt(record)), Date.parse(time)];
  const samples: Samples = { times: readings.times.map((one) => Date.parse(one)), series: readings.series };
  const [firstMs = momentMs - 60_000] = samples.times;
  const fromMs = Math.min(firstMs, momentMs - 10_000);
  const untilMs = verdictMs + (verdictMs - fromMs) * AFTER;
  const x = (ms: number): string =>
    `${Math.round(((Math.min(Math.max(ms, fromMs), untilMs) - fromMs) / (untilMs - fromMs)) * 10_000) / 100}%`;
  const width = (from: number, until: number): string => `${Math.max(0.3, Number.parseFloat(x(until)) - Number.parseFloat(x(from)))}%`;
  const state = changes[0]?.to ?? after.state;
  const line = html`<line class="moment" x1="${x(momentMs)}" x2="${x(momentMs)}" y2="100%"/>`;
  const lane = (name: string, note: string, drawing: Html): Html =>
    html`<div class="lane"><div><b>${name}</b> <span class="soft">${note}</span></div>${drawing}</div>\n`;
  const strip = html`<svg class="plot strip" height="28" role="img" aria-label="Verdict: ${before.state}, then ${state}"><rect class="${before.state}" x="0" y="8" width="${x(verdictMs)}" height="10"/><rect class="${state}" x="${x(verdictMs)}" y="8" width="${width(verdictMs, untilMs)}" height="10"/>${line}</svg>`;
  // Lines that stand too near for a label of their own share one. A line without a time has no place.
  const groups: { readonly ms: number; readonly numbers: number[] }[] = [];
  for (const [at, { time: lineTime }] of log.lines.entries()) {
    if (lineTime === undefined) continue;
    const ms = Date.parse(lineTime);
    const near = groups.find((group) => Math.abs(group.ms - ms) < (untilMs - fromMs) / 40);
    if (near === undefined) groups.push({ ms, numbers: [at + 1] });
    else near.numbers.push(at + 1);
  }
  const numbersText = (list: readonly number[]): string => (list.length > 3 ? `${list[0]} to ${list.at(-1)}` : list.join(', '));
  const marks = html`<svg class="plot" height="28" role="img" aria-label="${log.lines.length} lines of the kernel log"><line class="grid" x2="100%" y1="50%" y2="50%"/>${line}${groups.map(
    ({ ms, numbers }) => html`<text class="moment" x="${x(ms)}" y="18" dx="-6" text-anchor="end">${numbersText(numbers)}</text>`,
  )}</svg>`;
  const held = html`<svg class="plot" height="28" role="img" aria-label="Held by ${list.map(({ pod }) => pod).join(', ')}">${list.map(
    ({ pod, since, until }) => {
      const [from, end] = [Date.parse(since), until === undefined ? untilMs : Date.parse(until)];
      return html`<rect class="pod" x="${x(from)}" y="4" width="${width(from, end)}" height="18" rx="2"/><text x="${x(from)}" dx="6" y="17">${pod}</text>`;
    },
  )}${line}</svg>`;
  const charts = chartsOf(samples, { family: record.device.family, fromMs, untilMs, fault: { fromMs: momentMs, state } }).slice(0, LANES);
  return html`<section class="card" aria-label="Before the fault"><div class="head"><h2>The minutes before</h2><span class="soft">${samples.times.length} reads, all times in UTC</span></div>
${lane('Verdict', countedText(beganAt(record), time) ?? '', strip)}${lane('Kernel log', linesNote(log.lines), marks)}${lane('Held by', record.holdersUnknown === true ? 'the kubelet did not answer' : list.length === 0 ? 'no container' : '', held)}${charts.map(
  (chart) => {
    const [first] = chart.lines;
    if (chart.words !== undefined) return chart.lines.map((line) => laneHtml(chart, line, momentMs));
    return lane(
      chart.title,
      [first && `last ${lastText(chart, first)}`, chart.limits[0]?.text].filter((one) => one !== undefined).join(', '),
      plotHtml(chart, { high: scaleOf(chart).high * 1.12, ticks: [0], height: LANE_HEIGHT, momentMs }),
    );
  },
)}<div class="lane"><div></div>${timeAxis(fromMs, untilMs, momentMs)}</div></section>`;
}

function linesNote(lines: IncidentRecord['kernel']['lines']): string {
  const untimed = lines.filter(({ time }) => time === undefined).length;
  return `${lines.length} lines${untimed === 0 ? '' : untimed === lines.length ? ', their times are not known' : `, the times of ${untimed} are not known`}`;
}

function kernel({ kernel: { lines, crash = [], earlier, problem } }: IncidentRecord, nowMs: number): Html {
  return html`<div class="body">${problem === undefined ? undefined : html`<p>The log was not read completely: ${problem}.</p>`}${
    earlier === undefined ? undefined : html`<p class="soft">Earlier lines that name the device: ${earlier}.</p>`
  }${lines.length === 0 && problem === undefined ? html`<p class="soft">No line names the device.</p>` : undefined}${lines.map(
    ({ time, text }, at) =>
      html`<p><span class="soft">${at + 1} ${time === undefined ? undefined : clock(time, nowMs)}</span> <code>${text}</code></p>`,
  )}${crash.length === 0 ? undefined : html`<p>${OF_CRASH}</p>${crash.map((text) => html`<p><code>${text}</code></p>`)}`}</div>`;
}

function holders(record: IncidentRecord, nowMs: number): Html {
  const { holders: list, processes, processesReadAt } = record;
  const hit = new Set<IncidentHolder>(holdersHit(record));
  const running = processes.map(({ pid, name = 'unknown name', memoryUsedBytes, isStuck }) =>
    [
      name,
      `pid ${pid}`,
      memoryUsedBytes === undefined ? undefined : readingText('_bytes', memoryUsedBytes),
      isStuck === true ? 'stuck in the kernel' : undefined,
    ]
      .filter((text) => text !== undefined)
      .join(', '),
  );
  const rows = list.map((one) => {
    const time =
      one.until === undefined ? html`since ${clock(one.since, nowMs)}` : html`${clock(one.since, nowMs)} to ${clock(one.until, nowMs)}`;
    return html`<td>${podLink(one)} <small>${one.container}</small></td><td>${hit.has(one) ? html`<b>${time}, hit</b>` : html`${time}, before the fault`}</td><td>${one.resource}</td>`;
  });
  return html`${rows.length === 0 ? html`<p class="body">${noHolderText(record)}</p>` : table(['Pod', 'Held it, UTC', 'Resource'], rows)}${
    running.length === 0
      ? undefined
      : html`<div class="body"><p class="soft">Processes${processesReadAt === undefined ? undefined : html` at ${clock(processesReadAt, nowMs)}`}: ${running.join('; ')}</p></div>`
  }`;
}

/** Counters and states that are gone after a reset. */
function wiped({ state, device: { family } }: IncidentRecord, nowMs: number): Html | undefined {
  if (state.length === 0) return undefined;
  const { rows, notes } = stateRows(state, family);
  const cells = rows.map(
    ({ title, labels, text, time }) =>
      html`<th scope="row">${title}</th><td>${labels}</td><td class="num">${text}</td><td>${clock(time, nowMs)}</td>`,
  );
  return html`<details class="card" open><summary>State that a reset wipes</summary>${
    rows.length === 0 ? undefined : table(['Reading', 'Labels', '#Value', 'Read, UTC'], cells)
  }${notes.map((note) => html`<p class="body soft">${note}</p>`)}</details>`;
}

/** The later changes of the device. */
function later({ changes, furtherChanges, suppressed }: IncidentRecord, nowMs: number): Html | undefined {
  const lines = [
    ...changes.slice(1).map((one) => html`<p>${clock(one.time, nowMs)}: ${changeWords(one)}</p>`),
    ...(furtherChanges === undefined ? [] : [html`<p>${furtherWords(furtherChanges)}</p>`]),
    ...(suppressed === undefined
      ? []
      : [html`<p>${suppressed.count} later changes have no record, because there were too many within one hour.</p>`]),
  ];
  return lines.length === 0 ? undefined : card('What followed', html`<div class="body">${lines}</div>`);
}

/** The changes of other devices shortly before or after. */
function also({ others }: IncidentRecord, { board, nowMs }: PageFrame): Html | undefined {
  const names = new Map(board?.devices.map(({ key, name }) => [key, name]));
  const lines = others.map((one) => html`<p>${clock(one.time, nowMs)}: ${otherWords(one, names.get(one.device) ?? one.device)}</p>`);
  return lines.length === 0 ? undefined : card(ALSO, html`<div class="body">${lines}</div>`, 'on other devices, before or after');
}

function identity({ device, host, agentVersion, readAt }: IncidentRecord): Html {
  return facts([
    [
      'Model',
      [device.model?.toLowerCase().startsWith((device.vendor ?? ' ').toLowerCase()) === true ? undefined : device.vendor, device.model]
        .filter((text) => text !== undefined)
        .join(' '),
    ],
    ['Serial number', device.serial],
    ['Location', device.location],
    ['PCI address', device.pciAddress],
    ['UUID', device.uuid],
    ['Id', device.id === device.uuid ? undefined : device.id],
    ['Driver', [device.driver, device.driverVersion].filter((text) => text !== undefined).join(' ')],
    ['Firmware', device.firmware],
    ['Machine', [host.manufacturer, host.model].filter((text) => text !== undefined).join(' ')],
    ['Kernel', host.kernel],
    ['Agent', agentVersion],
    ['Last read', readAt === undefined ? undefined : `${readAt.slice(0, 19).replace('T', ' ')} UTC`],
  ]);
}
