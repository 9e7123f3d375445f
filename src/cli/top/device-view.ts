import { conditionSentences, probationText } from '../../board/condition-text.ts';
import type { BoardRow, RowCondition } from '../../board/row.ts';
import { durationText } from '../../board/units.ts';
import { STATE_NAMES } from '../../board/words.ts';
import { type Line, span, widthOf, wrapText } from '../terminal/frame.ts';
import type { Style } from '../terminal/style.ts';
import { barText } from './bar.ts';
import { type Drawing, STATE_STYLES, useText } from './columns.ts';
import type { DeviceDetail, Fact } from './detail.ts';

const BAR_CELLS = 20;
const LONGEST_FACT = 48;

/** The text of one device: what is wrong, what to do, who holds it, what it reads, what happened. */
export function deviceLines(row: BoardRow, detail: DeviceDetail | undefined, columns: number, drawing: Drawing): readonly Line[] {
  const { nowMs } = drawing;
  const since = row.sinceMs === undefined ? '' : ` for ${durationText(nowMs - row.sinceMs)}`;
  const model = [row.model, row.kind, row.family].filter((one) => one !== undefined).join(', ');
  return [
    [span(row.name, 'strong'), span(`  ${model}`)],
    [
      span(`${STATE_NAMES[row.state]}${since}`, STATE_STYLES[row.state]),
      span(row.isStale === true ? '  the last read is too old' : '', 'mild'),
    ],
    ...row.conditions.flatMap((condition) => conditionLines(condition, columns, nowMs)),
    ...(row.unchecked === undefined ? [] : wrapped(`Not checked: ${row.unchecked.join(', ')}`, columns, 'faint')),
    ...(row.probation === undefined ? [] : wrapped(probationText(row.probation), columns, 'mild')),
    ...(row.ignored ?? []).flatMap(({ name, why }) => wrapped(`Ignored: ${name}, because ${why}`, columns, 'faint')),
    ...section('Held by', holderLines(row, columns)),
    ...section('Readings', barLines(row, drawing)),
    ...section('Events', eventLines(detail, columns)),
    ...section('Device', factLines([...placeFacts(row), ...(detail?.facts ?? [])], columns)),
    ...section('All readings', factLines(detail?.readings ?? [], columns)),
  ];
}

const section = (title: string, lines: readonly Line[]): readonly Line[] => [[], [span(title, 'strong')], ...lines];

const wrapped = (text: string, columns: number, style: Style, indent = '  '): Line[] =>
  wrapText(text, columns - widthOf(indent)).map((line) => [span(indent + line, style)]);

function conditionLines(condition: RowCondition, columns: number, nowMs: number): Line[] {
  const { name, severity, reason, standing, advice } = condition;
  const head = [`${name}, ${severity}, ${reason}`, ...standing].join(', ');
  const style = severity === 'fatal' ? 'bad' : 'mild';
  return [
    ...wrapped(head, columns, style, ''),
    ...conditionSentences(condition, nowMs).flatMap((sentence) => wrapped(sentence, columns, 'text')),
    ...(advice === undefined ? [] : wrapped(`To do: ${advice}`, columns, 'strong')),
  ];
}

function holderLines(row: BoardRow, columns: number): readonly Line[] {
  if (row.holders.length === 0) return wrapped(useText(row), columns, 'text');
  return row.holders.flatMap(({ namespace, pod, container, resource, part }) =>
    wrapped(`${namespace}/${pod}/${container}  ${resource}${part === undefined ? '' : `  (part ${part})`}`, columns, 'text'),
  );
}

/** The readings that matter for its kind, as on the board. */
function barLines({ readings }: BoardRow, { isUtf8 }: Drawing): readonly Line[] {
  return readings.map(({ label, text, ratio }) => [
    span(`  ${label.padEnd(12)} `),
    span(`${ratio === undefined ? ' '.repeat(BAR_CELLS) : barText(ratio, BAR_CELLS, isUtf8)} `, 'bar'),
    span(text),
  ]);
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

function placeFacts({ pciAddress, numaNode, farthest }: BoardRow): readonly Fact[] {
  return [
    ...(pciAddress === undefined ? [] : [{ name: 'PCI address', text: pciAddress }]),
    ...(numaNode === undefined ? [] : [{ name: 'NUMA node', text: String(numaNode) }]),
    ...(farthest === undefined ? [] : [{ name: 'Farthest', text: farthest }]),
  ];
}

function eventLines(detail: DeviceDetail | undefined, columns: number): readonly Line[] {
  if (detail === undefined) return [[span('  not read yet', 'faint')]];
  if (detail.events.length === 0) return [[span('  none', 'faint')]];
  return detail.events.flatMap(({ time, what, message, holders }) => [
    ...wrapped(`${time}  ${what}`, columns, 'text'),
    ...wrapped(message, columns, 'faint', '    '),
    ...(holders.length === 0 ? [] : wrapped(`held by ${holders.join(', ')}`, columns, 'faint', '    ')),
  ]);
}
