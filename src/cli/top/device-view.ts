import { conditionText, healthNotes } from '../../board/condition-text.ts';
import {
  appearanceOf,
  appearedAt,
  type ConditionView,
  conditionsOf,
  type DeviceView,
  modelText,
  userName,
} from '../../board/device-view.ts';
import { TREND_POINTS } from '../../board/trend.ts';
import { STATE_NAMES } from '../../board/words.ts';
import { durationText } from '../../model/duration.ts';
import { type Line, span, widthOf, wrapText } from '../terminal/frame.ts';
import type { Style } from '../terminal/style.ts';
import { barText, type Drawing, STATE_STYLES, useText } from './columns.ts';
import type { DeviceDetail, Fact } from './detail.ts';
import { sparkText } from './spark-text.ts';

const BAR_CELLS = 12;
const LEAST_SPARK = 8;
const LONGEST_FACT = 48;

/** What is wrong with a device, what to do, who holds it, what it reads. */
function headLines(row: DeviceView, detail: DeviceDetail | undefined, columns: number, drawing: Drawing): readonly Line[] {
  const { nowMs } = drawing;
  const [state, since] = [appearanceOf(row), appearedAt(row)];
  const age = since === undefined ? '' : ` for ${durationText(nowMs - Date.parse(since))}`;
  const model = [modelText(row), row.kind, row.family].filter((one) => one !== undefined).join(', ');
  return [
    [span(row.name, 'strong'), span(`  ${model}`)],
    [span(`${STATE_NAMES[state]}${age}`, STATE_STYLES[state]), span(row.stale ? '  the last read is too old' : '', 'mild')],
    ...conditionsOf(row).flatMap((condition) => conditionLines(row, condition, columns, nowMs)),
    ...healthNotes(row.health).flatMap((note) => wrapped(note, columns, 'mild')),
    ...section('Held by', holderLines(row, columns)),
    ...section(detail?.trends.size ? 'Readings, and their last 30 minutes' : 'Readings', barLines(row, detail?.trends, columns, drawing)),
  ];
}

/** The text of one device: its head, what happened, and all that is known of it. */
export function deviceLines(row: DeviceView, detail: DeviceDetail | undefined, columns: number, drawing: Drawing): readonly Line[] {
  return [
    ...headLines(row, detail, columns, drawing),
    ...section('Events', eventLines(detail, columns)),
    ...section('Device', factLines([...placeFacts(row), ...(detail?.facts ?? [])], columns)),
    ...section('All readings', factLines(detail?.readings ?? [], columns)),
  ];
}

const section = (title: string, lines: readonly Line[]): readonly Line[] => [[], [span(title, 'strong')], ...lines];

const wrapped = (text: string, columns: number, style: Style, indent = '  '): Line[] =>
  wrapText(text, columns - widthOf(indent)).map((line) => [span(indent + line, style)]);

function conditionLines(row: DeviceView, condition: ConditionView, columns: number, nowMs: number): Line[] {
  const { name, note, sentences, advice } = conditionText(row, condition, nowMs);
  return [
    ...wrapped(`${name}: ${note}`, columns, condition.severity === 'fatal' ? 'bad' : 'mild', ''),
    ...sentences.flatMap((sentence) => wrapped(sentence, columns, 'text')),
    ...(advice === undefined ? [] : wrapped(`To do: ${advice}`, columns, 'strong')),
  ];
}

function holderLines(row: DeviceView, columns: number): readonly Line[] {
  if (row.holders.length === 0 && row.users === undefined) return wrapped(useText(row), columns, 'text');
  return [
    ...row.holders.flatMap(({ namespace, pod, container, resource, part }) =>
      wrapped(`${namespace}/${pod}/${container}  ${resource}${part === undefined ? '' : `  (part ${part})`}`, columns, 'text'),
    ),
    ...(row.users ?? []).flatMap((user) => wrapped(`used by ${userName(user)}`, columns, 'text')),
  ];
}

/** The readings that matter for its kind, as on the board: numbers end in one column, bars and histories begin in one. */
function barLines(
  { shown }: DeviceView,
  trends: DeviceDetail['trends'] | undefined,
  columns: number,
  { isUtf8 }: Drawing,
): readonly Line[] {
  const labels = Math.max(0, ...shown.map(({ label }) => widthOf(label)));
  const texts = Math.max(0, ...shown.map(({ text }) => widthOf(text)));
  const left = Math.min(TREND_POINTS, columns - labels - texts - BAR_CELLS - 8);
  return shown.map((reading) => {
    const { label, text, ratio } = reading;
    const trend = trends?.get(label);
    return [
      span(`  ${label.padEnd(labels)}  ${text.padStart(texts)}  `),
      span(ratio === undefined ? ' '.repeat(BAR_CELLS) : barText(ratio, BAR_CELLS, isUtf8), 'bar'),
      ...(trend === undefined || left < LEAST_SPARK || !isUtf8 ? [] : [span(`  ${sparkText(trend, reading.limit, left)}`, 'bar')]),
    ];
  });
}

function factLines(facts: readonly Fact[], columns: number): readonly Line[] {
  const width = Math.min(
    Math.max(0, ...facts.map(({ name }) => widthOf(name))),
    Math.max(8, Math.min(LONGEST_FACT, Math.floor(columns / 2))),
  );
  return facts.flatMap(({ name, text }) => {
    const [first = '', ...rest] = wrapText(text, columns - width - 4);
    const label = widthOf(name) > width ? `${[...name].slice(0, width - 1).join('')}…` : name + ' '.repeat(width - widthOf(name));
    return [[span(`  ${label}  `, 'faint'), span(first)], ...rest.map((line): Line => [span(' '.repeat(width + 4)), span(line)])];
  });
}

function placeFacts({ pciAddress, numaNode, farthest }: DeviceView): readonly Fact[] {
  return [
    ...(pciAddress === undefined ? [] : [{ name: 'PCI address', text: pciAddress }]),
    ...(numaNode === undefined ? [] : [{ name: 'NUMA node', text: String(numaNode) }]),
    ...(farthest === undefined ? [] : [{ name: 'Farthest', text: farthest }]),
  ];
}

function eventLines(detail: DeviceDetail | undefined, columns: number): readonly Line[] {
  if (detail === undefined) return [[span('  not read yet', 'faint')]];
  if (detail.events === undefined) return [[span('  not read: the agent did not answer', 'faint')]];
  if (detail.events.length === 0) return [[span('  none', 'faint')]];
  return detail.events.flatMap(({ time, what, message, holders }) => [
    ...wrapped(`${time}  ${what}`, columns, 'text'),
    ...wrapped(message, columns, 'faint', '    '),
    ...(holders.length === 0 ? [] : wrapped(`held by ${holders.join(', ')}`, columns, 'faint', '    ')),
  ]);
}
