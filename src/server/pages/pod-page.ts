import { type Board, unresolvedOf } from '../../board/board.ts';
import { chartHtml } from '../../board/chart-html.ts';
import { type DeviceView, modelText } from '../../board/device-view.ts';
import { explainNearness, unfoundOf } from '../../board/explain.ts';
import { type Html, html } from '../../board/html.ts';
import { podNames } from '../../board/incident.ts';
import { byPlace } from '../../board/order.ts';
import { devicePath } from '../../board/paths.ts';
import { highest, linePath } from '../../board/spark.ts';
import { stateCell, whyLines } from '../../board/state-html.ts';
import { ratesOf, TREND_MS } from '../../board/trend.ts';
import { waitingText } from '../../board/waiting-text.ts';
import type { DeviceHistory } from '../../incidents/history.ts';
import type { ListedIncident } from '../../incidents/record.ts';
import type { ContainerLocality } from '../../model/container-locality.ts';
import { containerNameOf } from '../../model/device-use.ts';
import { durationText } from '../../model/duration.ts';
import { firstOf } from '../../model/one-line.ts';
import { podName } from '../../model/pod-resources.ts';
import { shared } from '../../model/shared-metrics.ts';
import type { Snapshot } from '../../model/snapshot.ts';
import type { ContainerUsage, ContainerWaiting } from '../../model/usage.ts';
import { chartsOf } from './charts.ts';
import { type Followed, followed, inWords, nameIn } from './incident-list.ts';
import { card, document, energyCell, facts, numberCell, type PageFrame, part, table, titleHtml } from './page-parts.ts';
import { type HitRecord, hoursText, podAnswers } from './pod-answers.ts';

/** The sources of the page beside the snapshot. `incidents`: the newest first. */
interface PodSources {
  historyOf(key: string): DeviceHistory | undefined;
  readonly incidents: readonly ListedIncident[];
}

/** What a pod holds, whether it moves on, how near its devices are, and what it used. undefined when this node knows no such pod. */
export function podPage(
  namespace: string,
  pod: string,
  board: Board,
  snapshot: Snapshot,
  frame: PageFrame,
  { historyOf, incidents: all }: PodSources,
): string | undefined {
  const isOfPod = (one: { readonly namespace: string; readonly pod: string }): boolean => one.namespace === namespace && one.pod === pod;
  const rows = board.devices
    .filter(
      ({ holders, users = [] }) =>
        holders.some((one) => isOfPod(one) && one.part === undefined) || users.map(containerNameOf).some(isOfPod),
    )
    .toSorted(byPlace);
  const usage = (snapshot.usage?.containers ?? []).filter(isOfPod);
  const unresolved = unresolvedOf(snapshot, board).filter(isOfPod);
  const unfound = unfoundOf(isOfPod, snapshot);
  const known = snapshot.pods?.get(podName({ namespace, pod }));
  const incidents = followed({
    incidents: all.filter(({ holders }) => podNames(holders).includes(`${namespace}/${pod}`)),
    events: [],
    snapshot,
    board,
    nowMs: frame.nowMs,
  });
  if (rows.length + usage.length + unresolved.length + incidents.length === 0 && known === undefined) return undefined;
  const exclusive = snapshot.podResources.exclusive.filter(isOfPod);
  const localities = (snapshot.localities ?? []).filter(isOfPod);
  const waiting = (snapshot.waiting ?? []).filter(isOfPod);
  const { nowMs } = frame;
  const containers = new Set(rows.flatMap(({ holders }) => holders.filter(isOfPod).map(({ container }) => container)));
  const cpus = exclusive.flatMap(({ container, cpus: own }) => (own.length === 0 ? [] : [`${container}: ${own.join(', ')}`]));
  const explained = (explainNearness(namespace, pod, snapshot) ?? []).map((line) => html`<p>${line}</p>`);
  const others = new Set(rows.flatMap(({ holders }) => holders.filter((one) => !isOfPod(one)).map((one) => `${one.namespace}/${one.pod}`)));
  const note =
    rows.length === 0
      ? undefined
      : others.size === 0
        ? `${rows.length} ${rows.length === 1 ? 'device' : 'devices'}, shared with nobody`
        : `shared with ${firstOf([...others], 4)}`;
  const names = rows.map(({ name }) => name);
  const body = html`${titleHtml(
    ['/?group=pod', 'Pods'],
    pod,
    html`${namespace}${names.length === 0 ? undefined : ` · ${firstOf(names, 4)}`}`,
    [
      [containers.size === 1 ? 'Container' : 'Containers', [...containers].join(', ')],
      ['Node', frame.node],
      ['Phase', known?.phase],
      ['UID', known?.uid ?? usage.find(({ uid }) => uid !== undefined)?.uid],
    ],
  )}${part('answers', podAnswers({ rows, unfound, waiting, localities, usage, incidents: incidents.map(hitOf) }, nowMs))}${part(
    'charts',
    podCharts(rows, historyOf, nowMs),
  )}${part('devices', card(rows.some(({ users }) => users?.map(containerNameOf).some(isOfPod)) ? 'Holds or uses' : 'Holds', rows.length === 0 && unresolved.length > 0 ? undefined : deviceTable(rows, isOfPod, nowMs), note))}${part(
    'unresolved',
    unresolved.length === 0
      ? undefined
      : card(
          'Without a device',
          html`<ul class="body">${unresolved.map((one) => html`<li>${one.resource} <code>${one.deviceId}</code>: ${one.why}</li>`)}</ul>`,
        ),
  )}
<div class="two"><div class="stack">${part('locality', explained.length === 0 ? undefined : card('How near', html`<div class="body">${explained}</div>${localities.map((one) => matrix(one, board))}`, 'NV direct links · PIX one PCIe switch · PXB several · PHB host bridge · NODE two host bridges · SYS between NUMA nodes'))}${part(
    'waiting',
    waitingPart(waiting, historyOf, nowMs),
  )}</div><div class="stack">${part('usage', card('Used', usageTable(usage, board), 'since it got the devices'))}${
    known?.labels === undefined && cpus.length === 0
      ? undefined
      : card(
          'Facts',
          facts([
            [
              'Labels',
              Object.entries(known?.labels ?? {})
                .map(([name, value]) => `${name}=${value}`)
                .join(', '),
            ],
            ['Exclusive CPUs', cpus.join('; ')],
          ]),
        )
  }</div></div>`;
  return document(frame, { title: `${namespace}/${pod}`, at: '/?group=pod', body, liveness: 'reload' });
}

const hitOf = (one: Followed): HitRecord => ({ id: one.incident.id, name: nameIn(one), conditions: one.incident.conditions.map(inWords) });

const MOST_CHARTS = 4;

/** The first chart of each device. */
function podCharts(rows: readonly DeviceView[], historyOf: (key: string) => DeviceHistory | undefined, nowMs: number): Html | undefined {
  const charts = rows.slice(0, MOST_CHARTS).flatMap(({ key, name }) => {
    const history = historyOf(key);
    const [firstMs] = history?.times ?? [];
    if (history === undefined || firstMs === undefined || history.times.length < 2) return [];
    const charts = chartsOf(history, { fromMs: Math.max(firstMs, nowMs - TREND_MS), untilMs: nowMs });
    const first = charts.find(({ words }) => words === undefined);
    return first === undefined ? [] : [chartHtml({ ...first, title: `${name}, ${first.title.toLowerCase()}` })];
  });
  return charts.length === 0 ? undefined : html`<div class="charts">${charts}</div>`;
}

function deviceTable(rows: readonly DeviceView[], isOfPod: (one: DeviceView['holders'][number]) => boolean, nowMs: number): Html {
  if (rows.length === 0) return html`<p class="body">The pod holds no device now.</p>`;
  return table(
    ['State', 'Device', 'Readings', 'Container'],
    rows.map((row) => {
      const own = row.holders.filter(isOfPod).map(({ container, resource }) => html`${container} <small>${resource}</small> `);
      const readings = row.shown.map(
        ({ label, text }, at) => html`${at === 0 ? undefined : ' · '}<span class="soft">${label}</span> ${text}`,
      );
      return html`<td>${stateCell(row, nowMs)}</td><th scope="row"><a class="id" href="${devicePath(row)}" title="${row.id}">${row.name}</a> <small>${modelText(row)}</small></th><td>${readings}${whyLines(row, nowMs)}</td><td>${own}</td>`;
    }),
  );
}

function usageTable(usage: readonly ContainerUsage[], board: Board): Html {
  if (usage.length === 0) return html`<p class="body">Nothing is known of its use yet.</p>`;
  const names = new Map(board.devices.map(({ key, name }) => [key, name]));
  return table(
    ['Device', 'Container', '#Allocated', '#Busy', '#Idle', '#Not observed', '#Energy'],
    usage.map((one) => {
      const busy = Object.entries(one.busySeconds)
        .filter(([, seconds]) => seconds > 0)
        .map(([engine, seconds]) => `${engine} ${hoursText(seconds)}`);
      return html`<th scope="row">${names.get(one.device) ?? one.device}</th><td>${one.container}</td>${numberCell('Allocated', hoursText(one.allocatedSeconds))}${numberCell('Busy', Object.keys(one.busySeconds).length === 0 ? undefined : busy.length === 0 ? hoursText(0) : busy.slice(0, 2).join(', '))}${numberCell('Idle', hoursText(one.idleSeconds))}${numberCell('Not observed', hoursText(one.unobservedSeconds))}${energyCell(one)}`;
    }),
  );
}

/** A container with more devices gets no matrix, only the farthest ways. */
const MOST_DEVICES = 24;

/** The way between each two devices; two devices have it in the sentence above. */
function matrix({ pairs }: ContainerLocality, { devices }: Pick<Board, 'devices'>): Html | undefined {
  const names = new Map(devices.map(({ key, name }) => [key, name]));
  const nameOf = (key: string): string => names.get(key) ?? key;
  const keys = [...new Set(pairs.flatMap(({ from, to }) => [from, to]))];
  if (keys.length > MOST_DEVICES || keys.length < 3) return undefined;
  const ways = new Map(pairs.flatMap(({ from, to, path = '?' }) => [[`${from} ${to}`, path] as const, [`${to} ${from}`, path] as const]));
  return html`<div class="scroll"><table><thead><tr><th scope="col">Device</th>${keys.map((key) => html`<th scope="col">${nameOf(key)}</th>`)}</tr></thead><tbody>
${keys.map(
  (row) =>
    html`<tr><th scope="row">${nameOf(row)}</th>${keys.map((column) => html`<td>${row === column ? '' : ways.get(`${row} ${column}`)}</td>`)}</tr>\n`,
)}</tbody></table></div>`;
}

const [WIDTH, HEIGHT] = [600, 40];
const BYTES: readonly string[] = [shared.receivedBytes.name, shared.transmittedBytes.name];

/** Whether each container moves on, since when not, and its steps as they were. undefined when the pod has no container that is judged. */
export function waitingPart(
  waiting: readonly ContainerWaiting[],
  historyOf: (key: string) => DeviceHistory | undefined,
  nowMs: number,
): Html | undefined {
  if (waiting.length === 0) return undefined;
  const lines = waiting.map((one) => html`<p><b>${one.container}</b> ${waitingText(one, nowMs)}</p>${strip(one, historyOf, nowMs)}`);
  return card('Does it move on?', html`<div class="body">${lines}</div>`);
}

/** Each read of the last half hour: means of longer times would hide the steps. */
function strip(
  { container, devices }: ContainerWaiting,
  historyOf: (key: string) => DeviceHistory | undefined,
  nowMs: number,
): Html | undefined {
  const history = devices.map(historyOf).find((one) => one !== undefined && one.times.length > 1);
  if (history === undefined) return undefined;
  const bytes = sumOf(
    history.series.filter(({ metric }) => BYTES.includes(metric)).map(({ values, reads }) => ratesOf(history.times, values, reads)),
    history.times.length,
  );
  const watts = history.series.find(({ metric }) => metric === shared.power.name)?.values ?? [];
  const [what, values] = bytes.some((value) => value !== null) ? (['Bytes', bytes] as const) : (['Power', watts] as const);
  if (values.length === 0) return undefined;
  const path = linePath(values, WIDTH, HEIGHT, 0, highest(values));
  const [firstMs = nowMs] = history.times;
  return html`<svg class="spark" viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${what} of the first GPU of ${container} over the last ${durationText(nowMs - firstMs)}"><path d="${path}"/></svg>`;
}

/** null where one of the series has no value. */
function sumOf(columns: readonly (readonly (number | null)[])[], length: number): readonly (number | null)[] {
  if (columns.length === 0) return [];
  return Array.from({ length }, (_, at) =>
    columns.reduce((sum: number | null, column) => {
      const value = column[at];
      return sum === null || value === null || value === undefined ? null : sum + value;
    }, 0),
  );
}
