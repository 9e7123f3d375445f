import type { Board } from '../../board/board.ts';
import { type DeviceView, modelText } from '../../board/device-view.ts';
import { type Html, html } from '../../board/html.ts';
import { devicePath } from '../../board/paths.ts';
import { readingList } from '../../board/row-html.ts';
import { highest, linePath } from '../../board/spark.ts';
import { stateCell } from '../../board/state-html.ts';
import { ratesOf, TREND_MS } from '../../board/trend.ts';
import { durationText, readingText } from '../../board/units.ts';
import { waitingText } from '../../board/waiting-text.ts';
import type { DeviceHistory } from '../../incidents/history.ts';
import type { ContainerLocality } from '../../model/container-locality.ts';
import { firstOf } from '../../model/one-line.ts';
import { podName } from '../../model/pod-resources.ts';
import { shared } from '../../model/shared-metrics.ts';
import type { Snapshot } from '../../model/snapshot.ts';
import type { ContainerUsage, ContainerWaiting } from '../../model/usage.ts';
import { document, factTable, numberCell, type PageFrame, part } from './page-parts.ts';

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

/** A container with more devices gets no matrix, only the farthest ways. */
const MOST_DEVICES = 24;

/** How near the devices of each container are to each other and to its CPUs; undefined when none holds a GPU and another device. */
function localityPart(localities: readonly ContainerLocality[], { devices }: Pick<Board, 'devices'>): Html | undefined {
  if (localities.length === 0) return undefined;
  const names = new Map(devices.map(({ key, name }) => [key, name]));
  const nameOf = (key: string): string => names.get(key) ?? key;
  return html`<h2>How near its devices are</h2>${localities.map(
    (one) => html`<p><b>${one.container}</b>: ${summary(one).join('; ')}</p>${matrix(one, nameOf)}`,
  )}`;
}

function summary({ pairs, gpuPath, nicPath, offNode }: ContainerLocality): readonly string[] {
  return [
    ...(gpuPath === undefined ? [] : [`farthest way between GPUs ${gpuPath}`]),
    ...(nicPath === undefined ? [] : [`farthest way from a GPU to its nearest network device ${nicPath}`]),
    ...(offNode === undefined ? [] : [`${offNode} off the NUMA nodes of its CPUs`]),
    ...(pairs.some(({ path }) => path === undefined) ? ['some ways are unknown'] : []),
  ];
}

function matrix({ pairs }: ContainerLocality, nameOf: (key: string) => string): Html | undefined {
  const keys = [...new Set(pairs.flatMap(({ from, to }) => [from, to]))];
  if (keys.length > MOST_DEVICES) return undefined;
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
  return html`<h2>Does it move on?</h2>${waiting.map(
    (one) => html`<p><b>${one.container}</b> ${waitingText(one, nowMs)}</p>${strip(one, historyOf)}`,
  )}`;
}

/** Each read of the last half hour: means of longer times would hide the steps. */
function strip({ container, devices }: ContainerWaiting, historyOf: (key: string) => DeviceHistory | undefined): Html | undefined {
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
  const minutes = TREND_MS / 60_000;
  return html`<svg class="spark" viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${what} of the first GPU of ${container} over the last ${minutes} minutes"><path d="${path}"/></svg>`;
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
