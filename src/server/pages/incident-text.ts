import { countedText } from '../../board/summary.ts';
import { metricTitle, readingText } from '../../board/units.ts';
import { REMEDY_TEXTS } from '../../board/words.ts';
import {
  beganAt,
  holdersHit,
  type IncidentChange,
  type IncidentCondition,
  type IncidentHolder,
  type IncidentReadings,
  type IncidentRecord,
  type OtherChange,
  type StateValue,
} from '../../incidents/record.ts';
import { conditionName } from '../../model/condition-text.ts';
import { defined } from '../../model/defined.ts';
import type { Remedy } from '../../model/health.ts';
import type { Labels } from '../../model/metric.ts';
import { oneLine } from '../../model/one-line.ts';

export const OF_CRASH = 'The kernel that ran before crashed. It wrote about the device:';

const MOST_ROWS = 15;
const MOST_STATE_ROWS = 40;

/** Writes a record for the person on call: what happened, who was hit, what to do; then the evidence. */
export function incidentText(record: IncidentRecord): string {
  const sections: readonly (readonly [title: string, lines: readonly string[]])[] = [
    ['WHAT HAPPENED', happened(record)],
    ['WHO WAS HIT', hit(record)],
    ['WHAT TO DO', advice(record)],
    ['THE DEVICE', identity(record)],
    ['STATE THAT A RESET WIPES', stateLines(record)],
    [`READINGS THAT CHANGED MOST${span(record)}`, readingLines(record)],
    ['KERNEL LOG', kernelLines(record)],
    ['EVENTS OF THE DEVICE BEFORE', record.events.map(eventLine)],
  ];
  const text = sections.map(([title, lines]) => [title, ...(lines.length === 0 ? ['none'] : lines).map((line) => `  ${line}`), '']);
  const page = record.url === undefined ? [] : [`Page: ${record.url}`];
  return [`Incident ${record.id} on node ${record.node}`, ...page, '', ...text.flat()]
    .map((line) => `${oneLine(line).trimEnd()}\n`)
    .join('');
}

function happened(record: IncidentRecord): string[] {
  const { device, changes, furtherChanges, suppressed, after, before, others, time, missingSince } = record;
  const began = beganAt(record);
  const counted = countedText(began, time);
  const [first, ...later] = changes;
  return [
    `${clock(time)}: ${device.key} ${stateWords(before.state, first?.to ?? after.state)}.`,
    ...(counted === undefined ? [] : [`Its fault began at ${clock(began)} and ${counted}.`]),
    ...(missingSince === undefined ? [] : [`The device is missing since ${clock(missingSince)}.`]),
    ...conditionLines('', after.conditions ?? []),
    ...conditionLines('not yet counted: ', after.pending ?? []),
    ...(after.conditions?.length === 0 && first !== undefined ? [`${first.reason}: ${first.message}`] : []),
    ...conditionLines('before: ', unchanged(before.conditions ?? [], after.conditions ?? [])),
    ...later.map((change) => `${clock(change.time)}: ${changeWords(change)}`),
    ...(furtherChanges === undefined ? [] : [furtherWords(furtherChanges)]),
    ...(suppressed === undefined
      ? []
      : [
          `Later changes without a record, because there were too many within one hour: ${suppressed.count}. The last was ${clock(suppressed.last)}.`,
        ]),
    ...others.map((other) => `${ALSO} ${clock(other.time)}: ${otherWords(other, other.device)}`),
  ];
}

const stateWords = (before: string, after: string): string => (before === after ? `stayed ${after}` : `was ${before} and became ${after}`);

/** Conditions of the time before that the later list lacks. */
function unchanged(before: readonly IncidentCondition[], after: readonly IncidentCondition[]): readonly IncidentCondition[] {
  const names = new Set(after.map(conditionName));
  return before.filter((condition) => !names.has(conditionName(condition)));
}

function conditionLines(mark: string, conditions: readonly IncidentCondition[]): string[] {
  return conditions.map((condition) => {
    const since = condition.since === undefined ? '' : `, since ${clock(condition.since)}`;
    return `${mark}${condition.severity} ${conditionName(condition)} (${condition.reason})${since}: ${condition.message}`;
  });
}

export const changeWords = ({ from, to, condition, message }: IncidentChange): string =>
  `${from === undefined ? '' : `${from} to `}${to ?? ''}${condition === undefined ? '' : ` by ${condition}`}: ${message}`;

export const furtherWords = (changes: number): string => `Further changes at once: ${changes}.`;

/** The title of changes of other devices, shortly before or after. They need not be a cause or an effect. */
export const ALSO = 'Also';

/** `GPU 0 became degraded by RowRemapPending.` */
export const otherWords = ({ to, condition }: OtherChange, name: string): string =>
  `${name} became ${to}${condition === undefined ? '' : ` by ${condition}`}.`;

const HOLDERS_UNKNOWN = 'The kubelet did not say who held the device.';

/** The text in place of the holders. The agent may be new, so the text says only what the agent saw. */
export const noHolderText = ({ holdersUnknown }: Pick<IncidentRecord, 'holdersUnknown'>): string =>
  holdersUnknown === true ? HOLDERS_UNKNOWN : 'The agent saw no container that held the device in the ten minutes before.';

function hit(record: IncidentRecord): string[] {
  const { holders, holdersUnknown, processes, processesReadAt } = record;
  if (holders.length === 0 && processes.length === 0) return [noHolderText(record)];
  const at = processesReadAt === undefined ? '' : `, read ${clock(processesReadAt)}`;
  const held = holdersHit(record);
  const others = holders.filter((holder) => !held.includes(holder));
  return [
    ...(held.length === 0
      ? [holdersUnknown ? HOLDERS_UNKNOWN : 'No container held the device when its fault began.']
      : held.map(holderLine)),
    ...(holdersUnknown === true && held.length > 0 ? ['The kubelet did not answer then, so others may hold it, too.'] : []),
    ...(others.length === 0
      ? []
      : ['Not hit, because they let go of it before the last read that showed no fault:', ...others.map((one) => `  ${holderLine(one)}`)]),
    ...(processes.length === 0 ? [] : [`Processes on the device${at}:`]),
    ...processes.map(({ pid, name = 'unknown name', isStuck, memoryUsedBytes, podUid }) => {
      const memory = memoryUsedBytes === undefined ? '' : `, ${readingText('memory_bytes', memoryUsedBytes)}`;
      return `  ${pid} ${name}${memory}${podUid === undefined ? '' : `, pod ${podUid}`}${isStuck === true ? ', stuck in the kernel' : ''}`;
    }),
  ];
}

function holderLine({ namespace, pod, container, resource, deviceId, uid, since, until }: IncidentHolder): string {
  const time = until === undefined ? `holds it, seen since ${clock(since)}` : `held it, seen from ${clock(since)} to ${clock(until)}`;
  return `${namespace}/${pod}/${container} ${time}; ${resource} ${deviceId}${uid === undefined ? '' : `; pod UID ${uid}`}`;
}

function advice({ after, changes }: IncidentRecord): string[] {
  const remedies = new Map<Remedy, string>();
  for (const condition of after.conditions ?? [])
    if (!remedies.has(condition.remedy)) remedies.set(condition.remedy, conditionName(condition));
  for (const { remedy, condition, reason } of changes) if (!remedies.has(remedy)) remedies.set(remedy, condition ?? reason);
  const lines = [...remedies].flatMap(([remedy, name]) => {
    const text = REMEDY_TEXTS[remedy];
    return text === undefined ? [] : [`${text} (${name})`];
  });
  const wipes = remedies.has('reset') || remedies.has('reboot') || remedies.has('replace');
  return [
    ...(lines.length === 0 ? ['No action is known.'] : lines),
    ...(wipes ? ['Keep this record first: a reset wipes the state below.'] : []),
  ];
}

function identity({ device, host, agentVersion, readAt }: IncidentRecord): string[] {
  const rows: readonly (readonly [string, string | undefined])[] = [
    ['Model', words(device.vendor, device.model)],
    ['Serial number', device.serial],
    ['Location', device.location],
    ['UUID', device.uuid],
    ['PCI address', device.pciAddress],
    ['Driver', device.driver],
    ['Driver version', device.driverVersion],
    ['Firmware', device.firmware],
    ['Machine', words(host.manufacturer, host.model)],
    ['Kernel', host.kernel],
    ['Agent', agentVersion],
    ['Last read', readAt === undefined ? undefined : clock(readAt)],
  ];
  return aligned(rows.flatMap(([name, value]) => (value === undefined || value === '' ? [] : [[name, value]])));
}

/** Maker and model. Some models begin with the name of the maker. */
function words(maker: string | undefined, model: string | undefined): string {
  const isNamed = maker !== undefined && model?.toLowerCase().startsWith(maker.toLowerCase()) === true;
  return [isNamed ? undefined : maker, model].filter((text) => text !== undefined).join(' ');
}

/** A value of the state, as text and page write it. */
export interface StateRow {
  readonly title: string;
  readonly labels: string;
  readonly text: string;
  readonly time: string;
}

/** The values that have a row. Values of 0 are only counted, because a board has hundreds of counters. */
export function stateRows(
  state: readonly StateValue[],
  family: string,
): { readonly rows: readonly StateRow[]; readonly notes: readonly string[] } {
  const informative = state.filter(({ metric, value }) => Number(value) !== 0 || /_up$/.test(metric));
  const rows = informative.slice(0, MOST_STATE_ROWS).map(
    ({ metric, labels, value, time }): StateRow => ({
      title: metricTitle(metric, family),
      labels: labelWords(labels),
      text: readingText(metric, numberOf(value)),
      time,
    }),
  );
  const hidden = informative.length - rows.length;
  const zeros = state.length - informative.length;
  const notes = [
    ...(hidden > 0 ? [`Further values in the record: ${hidden}.`] : []),
    ...(zeros > 0 ? [`Values that are 0: ${zeros}.`] : []),
  ];
  return { rows, notes };
}

function stateLines({ state, device: { family } }: IncidentRecord): string[] {
  const { rows, notes } = stateRows(state, family);
  return [...aligned(rows.map(({ title, labels, text, time }) => [title, labels, text, clock(time)])), ...notes];
}

const numberOf = (value: number | string): number | bigint =>
  typeof value === 'string' && /^-?\d{1,40}$/.test(value) ? BigInt(value) : Number(value);

function span({ readings: { times } }: IncidentRecord): string {
  const [first] = times;
  return first === undefined ? '' : ` (${times.length} reads, ${clock(first)} to ${clock(times.at(-1) as string)})`;
}

function readingLines({ readings, device: { family } }: IncidentRecord): string[] {
  const changed = changedMost(readings);
  if (readings.times.length === 0) return ['There are no readings.'];
  if (changed.length === 0) return ['No reading changed.'];
  const rows = changed
    .slice(0, MOST_ROWS)
    .map(({ metric, labels, first, min, max, last }) => [
      metricTitle(metric, family),
      labelWords(labels),
      ...[first, min, max, last].map((value) => readingText(metric, value)),
    ]);
  const rest = changed.length - rows.length;
  return [
    ...aligned([['', '', 'FIRST', 'MIN', 'MAX', 'LAST'], ...rows]),
    ...(rest > 0 ? [`Further changed readings in the record: ${rest}.`] : []),
  ];
}

function kernelLines({ kernel }: IncidentRecord): string[] {
  const { lines, crash = [], earlier, problem } = kernel;
  return [
    ...(problem === undefined ? [] : [`The log was not read completely: ${problem}.`]),
    ...(earlier === undefined ? [] : [`Earlier lines that name the device: ${earlier}.`]),
    ...lines.map(({ time, text }) => `${time === undefined ? '' : `${clock(time)}  `}${text}`),
    ...(lines.length === 0 && problem === undefined ? ['No line names the device.'] : []),
    ...(crash.length === 0 ? [] : [OF_CRASH, ...crash]),
  ];
}

function eventLine({ time, transition, condition, instance, reason, message, from, to }: IncidentRecord['events'][number]): string {
  const name = condition === undefined ? reason : conditionName({ type: condition, ...defined({ instance }) });
  const what = transition === 'state' ? `${from ?? ''} to ${to ?? ''}` : transition;
  return `${clock(time)}  ${what} ${name}: ${message}`;
}

const labelWords = (labels: Labels): string =>
  Object.entries(labels)
    .map(([name, value]) => `${name} ${value}`)
    .join(', ');

/** `2026-11-23 20:30:15 UTC` */
function clock(time: string): string {
  return `${time.slice(0, 19).replace('T', ' ')} UTC`;
}

function aligned(rows: readonly (readonly string[])[]): string[] {
  const widths: number[] = [];
  for (const row of rows) for (const [at, cell] of row.entries()) widths[at] = Math.max(widths[at] ?? 0, [...cell].length);
  return rows.map((row) => row.map((cell, at) => cell + ' '.repeat((widths[at] as number) - [...cell].length)).join('  '));
}

interface ChangedReading {
  readonly metric: string;
  readonly labels: Labels;
  readonly first: number;
  readonly min: number;
  readonly max: number;
  readonly last: number;
}

/** A time that moves on says nothing. */
const IS_TIME = /_timestamp_seconds$/;

/**
 * The readings that changed, the largest change first: for a gauge in relation to its largest value, for a counter the change of its
 * growth. A counter that grows evenly is normal and comes last.
 */
function changedMost({ series }: IncidentReadings): readonly ChangedReading[] {
  return series
    .filter(({ metric }) => !IS_TIME.test(metric))
    .flatMap(({ metric, labels, type, values }) => {
      const known = values.filter((value) => value !== null);
      const [first] = known;
      const last = known.at(-1);
      if (first === undefined || last === undefined) return [];
      const [min, max] = [Math.min(...known), Math.max(...known)];
      if (min === max) return [];
      const change = type === 'counter' ? changeOfGrowth(known) : (max - min) / Math.max(Math.abs(max), Math.abs(min));
      return [{ change, one: { metric, labels, first, min, max, last } }];
    })
    .sort((a, b) => b.change - a.change || (a.one.metric < b.one.metric ? -1 : 1))
    .map(({ one }) => one);
}

/** Compares the growth in the two halves of the time: 0 for even growth, 1 for growth in one half only. */
function changeOfGrowth(values: readonly number[]): number {
  const middle = values[Math.floor((values.length - 1) / 2)] as number;
  const [early, late] = [Math.abs(middle - (values[0] as number)), Math.abs((values.at(-1) as number) - middle)];
  const larger = Math.max(early, late);
  return larger === 0 ? 1 : Math.abs(late - early) / larger;
}
