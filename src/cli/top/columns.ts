import { nameWithInstance, shortMessage } from '../../board/condition-text.ts';
import {
  type Appearance,
  appearanceOf,
  appearedAt,
  conditionsOf,
  type DeviceView,
  type DisplayReading,
  modelText,
  noHolderText,
  remedyOf,
  stateOf,
  userName,
  usersText,
} from '../../board/device-view.ts';
import { presentText } from '../../board/row-html.ts';
import type { Trends } from '../../board/trend.ts';
import type { ViewRow } from '../../board/view.ts';
import { REMEDY_TEXTS, STATE_NAMES } from '../../board/words.ts';
import { phasesOf } from '../../model/condition-text.ts';
import { durationText } from '../../model/duration.ts';
import type { Line } from '../terminal/frame.ts';
import { fitLine, span, widthOf } from '../terminal/frame.ts';
import type { ColumnRoom, Placed } from '../terminal/room.ts';
import type { Style } from '../terminal/style.ts';
import { shrunk, sparkText } from './spark-text.ts';

/** What a cell needs beside its row. */
export interface Drawing {
  readonly nowMs: number;
  readonly isUtf8: boolean;
  /** For text that does not move: without bars, and with the id of a device that has another name. `all`: no cell is cut. */
  readonly text?: 'all' | 'fits';
  /** All facts of the devices and all holders. */
  readonly isWide?: boolean;
  /** There is room for the age of each state and for a history. */
  readonly isRoomy?: boolean;
  /** The first reading of each device in the last half hour. A device without a history is absent. */
  readonly trends?: Trends | undefined;
}

/** A list of so many columns is roomy. */
export const ROOMY_COLUMNS = 120;
const HISTORY_CELLS = 16;

export interface Column extends ColumnRoom {
  readonly head: string;
  cell(row: ViewRow, width: number): Line;
}

/** Shapes of the states, as on the page. */
const SHAPES: Readonly<Record<Appearance, readonly [utf8: string, ascii: string]>> = {
  healthy: ['●', '.'],
  recovering: ['○', 'o'],
  pending: ['◐', '~'],
  degraded: ['▲', '^'],
  unknown: ['◇', '?'],
  missing: ['□', 'x'],
  unhealthy: ['■', '#'],
};

export const STATE_STYLES: Readonly<Record<Appearance, Style>> = {
  healthy: 'good',
  degraded: 'mild',
  unhealthy: 'bad',
  missing: 'bad',
  unknown: 'doubtful',
  pending: 'mild',
  recovering: 'good',
};

const BAR_CELLS = 5;
/** Shows a name in full, mostly. */
const GOOD_CELLS = 28;
/** A short label and a number, without their bar. */
const FIRST_READING_CELLS = 14;
/** The name of most conditions. */
const CONDITION_CELLS = 19;
/** `Memory 48.1 GiB of 80 GiB`, without its bar. */
const OTHER_READING_CELLS = 26;
const LONGEST_NAME = 32;
const LONGEST_MODEL = 26;
const LONGEST_HOLDER = 60;
const LONGEST_CONDITION = 120;

/** All columns that these rows can fill, in the order of the screen. */
export function columnsOf(rows: readonly ViewRow[], drawing: Drawing): readonly Column[] {
  const { nowMs, text, isWide = false } = drawing;
  const texts = (
    head: string,
    rank: number,
    least: number,
    limit: number,
    textOf: (row: ViewRow) => string,
    style: Style | ((row: ViewRow) => Style),
  ): Column[] => {
    const longest = Math.max(0, ...rows.map((row) => widthOf(textOf(row))));
    if (longest === 0) return [];
    const most = Math.max(widthOf(head), text === 'all' ? longest : Math.min(limit, longest));
    const good = Math.min(most, GOOD_CELLS);
    return [
      {
        head,
        rank,
        least: Math.min(least, most),
        good,
        most,
        cell: (row) => [span(textOf(row), typeof style === 'string' ? style : style(row))],
      },
    ];
  };
  const facts = (head: string, textOf: (device: DeviceView) => string | undefined): Column[] =>
    texts(head, LAST_RANK, 8, LONGEST_HOLDER, ({ row }) => textOf(row) ?? '', 'faint');
  const state = ({ row }: ViewRow): Line => {
    const shown = appearanceOf(row);
    const shape = text === undefined ? `${SHAPES[shown][drawing.isUtf8 ? 0 : 1]} ` : '';
    return [span(`${shape}${STATE_NAMES[shown]}`, STATE_STYLES[shown])];
  };
  const stateCells = text === undefined ? 12 : 10;
  return [
    { head: 'STATE', rank: 0, least: Math.min(stateCells, 11), good: stateCells, most: stateCells, cell: state },
    // A text that is compared with the one before must not change with the time alone.
    ...(text === 'all' && !isWide
      ? []
      : texts('FOR', drawing.isRoomy === true ? 4 : 5, 6, 6, ({ row }) => ageText(appearedAt(row), nowMs), 'faint')),
    ...texts('DEVICE', 1, 14, LONGEST_NAME, nameText, 'strong'),
    ...texts('HELD BY', 3, 14, LONGEST_HOLDER, ({ row }) => useText(row, isWide), 'text').map((column) =>
      text === undefined ? { ...column, cell: ({ row }: ViewRow, width: number) => [span(shortUseText(row, width))] } : column,
    ),
    ...[0, 1, 2].flatMap((slot) => readingColumn(rows, slot, drawing)),
    ...historyColumn(rows, drawing),
    ...texts('CONDITION', 2, 14, LONGEST_CONDITION, ({ row }) => conditionCell(row, text), conditionStyle).map((column) => ({
      ...column,
      soon: Math.min(CONDITION_CELLS, column.most),
    })),
    ...texts('PLACE', 4, 20, LONGEST_HOLDER, ({ distance = '' }) => distance, 'faint'),
    ...texts('MODEL', 7, 12, LONGEST_MODEL, ({ row }) => modelText(row) ?? '', 'faint'),
    ...(text === undefined ? [] : facts('ID', ({ id, name }) => (id === name ? '' : id))),
    ...(isWide ? WIDE.flatMap(([head, textOf]) => facts(head, textOf)) : []),
  ];
}

/** Facts that only the wide form of the text has. */
const WIDE: readonly (readonly [head: string, textOf: (device: DeviceView) => string | undefined])[] = [
  ['KIND', ({ kind }) => kind],
  ['PARENT', ({ parent }) => parent],
  ['NUMA', ({ numaNode }) => numaNode?.toString()],
  ['PCI', ({ pciAddress }) => pciAddress],
  ['DRIVER', ({ driver }) => driver],
  ['FIRMWARE', ({ firmware }) => firmware],
  ['FARTHEST', ({ farthest }) => farthest],
];
const LAST_RANK = 9;

const nameText = ({ row, depth }: ViewRow): string => `${depth === 0 ? '' : `${'  '.repeat(depth - 1)}└ `}${row.name}`;

/** `12 min`: the larger one of the two units. */
function ageText(since: string | undefined, nowMs: number): string {
  return since === undefined
    ? ''
    : durationText(nowMs - Date.parse(since))
        .split(' ')
        .slice(0, 2)
        .join(' ');
}

/** Who holds the device, and who uses it without holding it. A device whose parts are held is not free. */
export function useText(device: DeviceView, isWhole = false): string {
  const users = isWhole ? device.users?.map((user) => `used by ${userName(user)}`).join(' ') : usersText(device);
  return [device.use === 'used' ? undefined : holdersText(device, isWhole), users].filter((text) => text !== undefined).join(', ');
}

function holdersText(device: DeviceView, isWhole: boolean): string {
  const { use, holders } = device;
  const names = [...new Set(holders.map(({ namespace, pod, container }) => `${namespace}/${pod}/${container}`))];
  const [first, ...others] = names;
  if (first === undefined) return isWhole ? noHolderText(device) : use;
  const all = isWhole ? names.join(' ') : `${first}${moreText(others)}`;
  return use === 'held by parts' ? `by parts: ${all}` : all;
}

/** Who holds the device, as far as there is room: the pod says more than its namespace and its container. */
function shortUseText(device: DeviceView, width: number): string {
  const { use, holders } = device;
  const whole = useText(device);
  const pods = [...new Map(holders.map((one) => [`${one.namespace}/${one.pod}`, one])).values()];
  const [first] = pods;
  if (first === undefined || widthOf(whole) <= width) return whole;
  const more = moreText(pods.slice(1));
  const names = [`${first.namespace}/${first.pod}${more}`, `${first.pod}${more}`];
  const texts = use === 'held by parts' ? [...names.map((name) => `by parts: ${name}`), `parts: ${first.pod}${more}`] : names;
  return texts.find((text) => widthOf(text) <= width) ?? (texts.at(-1) as string);
}

/** A note about a missing check needs no action, so it is not amber. */
const conditionStyle = ({ row }: ViewRow): Style => (conditionsOf(row).length > 0 || row.stale ? 'mild' : 'faint');

const moreText = ({ length }: readonly unknown[]): string => (length === 0 ? '' : ` +${length}`);

/** The worst condition, what qualifies it, and how many others there are; or what else keeps the device from being well. */
function conditionCell(device: DeviceView, form: Drawing['text']): string {
  const [first, ...others] = conditionsOf(device);
  if (first !== undefined) {
    const phases = phasesOf(first);
    const name = [nameWithInstance(first), phases.join(', ')].filter((part) => part !== '').join(' ');
    // The line below the row has the rest.
    if (form === undefined) return `${name}${moreText(others)}`;
    const advice = REMEDY_TEXTS[remedyOf(device) ?? 'none'];
    return `${name}${moreText(others)}: ${shortMessage(first)}${advice === undefined ? '' : ` · ${advice}`}`;
  }
  const { unchecked } = device.health;
  if (device.stale && stateOf(device) !== 'missing') return 'last read too old';
  return unchecked === undefined ? '' : `not checked: ${unchecked.join(' ')}`;
}

function readingColumn(rows: readonly ViewRow[], slot: number, { isUtf8, text: form }: Drawing): Column[] {
  const present = rows.flatMap(({ row }) => row.shown[slot] ?? []);
  if (present.length === 0) return [];
  const hasBars = form === undefined && present.some(({ ratio }) => ratio !== undefined);
  // Beside a bar the limit is the length of the bar, as on the page.
  const valueText = (reading: DisplayReading): string => (hasBars ? presentText(reading) : reading.text);
  const text = (reading: DisplayReading): string => `${reading.label} ${valueText(reading)}`;
  const isFirst = slot === 0;
  const head = isFirst ? 'READINGS' : '';
  const longest = Math.max(widthOf(head), ...present.map((reading) => widthOf(text(reading))));
  const most = longest + (hasBars ? BAR_CELLS + 1 : 0);
  const cell = ({ row }: ViewRow, width: number): Line => {
    const reading = row.shown[slot];
    if (reading === undefined) return [];
    const { ratio } = reading;
    // The number says more than its label, too.
    if (widthOf(text(reading)) > width) return [span(valueText(reading))];
    /** Numbers end at one place: the eye compares them by their length. */
    const aligned = (room: number): string => `${reading.label} ${valueText(reading).padStart(room - widthOf(reading.label) - 1)}`;
    // The numbers say more than the bars, which all rows have or none.
    if (!hasBars || width < most) return [span(aligned(Math.min(width, longest)))];
    const bar = ratio === undefined ? ' '.repeat(BAR_CELLS) : barText(ratio, BAR_CELLS, isUtf8);
    return [span(`${bar} `, 'bar'), span(aligned(longest))];
  };
  const least = Math.min(most, isFirst ? FIRST_READING_CELLS : OTHER_READING_CELLS);
  return [{ head, rank: isFirst ? 4 : 5 + slot, least, ...(isFirst ? { soon: most } : {}), good: most, most, cell }];
}

function historyColumn(rows: readonly ViewRow[], { trends, isRoomy, isUtf8 }: Drawing): Column[] {
  if (trends === undefined || isRoomy !== true || !isUtf8 || rows.every(({ row }) => trends[row.key] === undefined)) return [];
  const cell = ({ row }: ViewRow): Line => {
    const [trend, reading] = [trends[row.key], row.shown[0]];
    return trend === undefined || reading === undefined
      ? []
      : [span(sparkText(shrunk(trend, HISTORY_CELLS), reading.limit, HISTORY_CELLS), 'bar')];
  };
  return [{ head: 'HISTORY', rank: 4, least: HISTORY_CELLS, good: HISTORY_CELLS, most: HISTORY_CELLS, cell }];
}

/** The line of one row, or of the heads. */
export function rowLine(places: readonly Placed<Column>[], gap: number, cellOf: (column: Column, width: number) => Line): Line {
  return places.flatMap(({ column, width }, at) => {
    const cut = fitLine(cellOf(column, width), width);
    return at === 0 ? cut : [span(' '.repeat(gap)), ...cut];
  });
}

/** Signs for one to eight eighths of a cell. */
const EIGHTHS = '▏▎▍▌▋▊▉█';

/** A bar of `cells` signs for a share from 0 to 1. A share above 0 always shows something. */
export function barText(ratio: number, cells: number, isUtf8: boolean): string {
  const share = Math.max(0, Math.min(1, ratio));
  if (!isUtf8) {
    const full = share === 0 ? 0 : Math.max(1, Math.round(share * cells));
    return '#'.repeat(full) + '-'.repeat(cells - full);
  }
  const eighths = share === 0 ? 0 : Math.max(1, Math.round(share * cells * 8));
  const full = Math.floor(eighths / 8);
  const part = eighths % 8 === 0 ? '' : (EIGHTHS[(eighths % 8) - 1] ?? '');
  return '█'.repeat(full) + part + '░'.repeat(cells - full - part.length);
}
