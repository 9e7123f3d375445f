import type { BoardRow, RowReading } from '../../board/row.ts';
import { durationText } from '../../board/units.ts';
import type { ViewRow } from '../../board/view.ts';
import { STATE_NAMES } from '../../board/words.ts';
import type { Line } from '../terminal/frame.ts';
import { fitLine, span, widthOf } from '../terminal/frame.ts';
import type { ColumnRoom, Placed } from '../terminal/room.ts';
import type { Style } from '../terminal/style.ts';
import { barText } from './bar.ts';

/** What a cell needs beside its row. */
export interface Drawing {
  readonly nowMs: number;
  readonly isUtf8: boolean;
}

export interface Column extends ColumnRoom {
  readonly head: string;
  cell(row: ViewRow, width: number): Line;
}

export const STATE_STYLES: Readonly<Record<BoardRow['state'], Style>> = {
  healthy: 'good',
  degraded: 'mild',
  unhealthy: 'bad',
  missing: 'bad',
  unknown: 'doubtful',
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
const LONGEST_CONDITION = 70;

/** All columns that these rows can fill, in the order of the screen. */
export function columnsOf(rows: readonly ViewRow[], drawing: Drawing): readonly Column[] {
  const texts = (head: string, rank: number, least: number, limit: number, text: (row: ViewRow) => string, style: Style): Column[] => {
    const longest = Math.max(0, ...rows.map((row) => widthOf(text(row))));
    if (longest === 0) return [];
    const most = Math.max(widthOf(head), Math.min(limit, longest));
    const good = Math.min(most, GOOD_CELLS);
    return [{ head, rank, least: Math.min(least, most), good, most, cell: (row) => [span(text(row), style)] }];
  };
  const readings = [0, 1, 2].flatMap((slot) => readingColumn(rows, slot, drawing));
  return [
    { head: 'STATE', rank: 0, least: 9, good: 9, most: 9, cell: ({ row }) => [span(STATE_NAMES[row.state], STATE_STYLES[row.state])] },
    ...texts('FOR', 5, 6, 6, ({ row }) => ageText(row.sinceMs, drawing.nowMs), 'faint'),
    ...texts('DEVICE', 1, 14, LONGEST_NAME, nameText, 'strong'),
    ...texts('HELD BY', 3, 14, LONGEST_HOLDER, ({ row }) => useText(row), 'text'),
    ...readings,
    ...texts('CONDITION', 2, 14, LONGEST_CONDITION, ({ row }) => conditionText(row), 'mild').map((column) => ({
      ...column,
      soon: Math.min(CONDITION_CELLS, column.most),
    })),
    ...texts('PLACE', 4, 20, LONGEST_HOLDER, ({ distance = '' }) => distance, 'faint'),
    ...texts('MODEL', 7, 12, LONGEST_MODEL, ({ row }) => row.model ?? '', 'faint'),
  ];
}

const nameText = ({ row, depth }: ViewRow): string => `${depth === 0 ? '' : `${'  '.repeat(depth - 1)}└ `}${row.name}`;

/** `12 min`: the larger one of the two units. */
export function ageText(sinceMs: number | undefined, nowMs: number): string {
  return sinceMs === undefined
    ? ''
    : durationText(nowMs - sinceMs)
        .split(' ')
        .slice(0, 2)
        .join(' ');
}

/** Who holds the device. A device whose parts are held is not free. */
export function useText({ use, holders }: BoardRow): string {
  const names = [...new Set(holders.map(({ namespace, pod, container }) => `${namespace}/${pod}/${container}`))];
  const [first, ...others] = names;
  if (first === undefined) return use;
  const more = others.length === 0 ? '' : ` +${others.length}`;
  return use === 'held by parts' ? `by parts: ${first}${more}` : `${first}${more}`;
}

/** The worst condition, what qualifies it, and how many others there are. */
function conditionText({ conditions, state, isStale }: BoardRow): string {
  const [first, ...others] = conditions;
  if (first === undefined) return isStale === true && state !== 'missing' ? 'last read too old' : '';
  const more = others.length === 0 ? '' : ` +${others.length}`;
  const head = [first.name, ...first.standing].join(' ') + more;
  return `${head}: ${first.message}`;
}

function readingColumn(rows: readonly ViewRow[], slot: number, { isUtf8 }: Drawing): Column[] {
  const present = rows.flatMap(({ row }) => row.readings[slot] ?? []);
  if (present.length === 0) return [];
  const hasBars = present.some(({ ratio }) => ratio !== undefined);
  const text = ({ label, text: value }: RowReading): string => `${label} ${value}`;
  const longest = Math.max(...present.map((reading) => widthOf(text(reading))));
  const most = longest + (hasBars ? BAR_CELLS + 1 : 0);
  const cell = ({ row }: ViewRow, width: number): Line => {
    const reading = row.readings[slot];
    if (reading === undefined) return [];
    const { ratio } = reading;
    // The number says more than its label, too.
    if (widthOf(text(reading)) > width) return [span(reading.text)];
    // The number says more than the bar.
    if (!hasBars || widthOf(text(reading)) + BAR_CELLS + 1 > width) return [span(text(reading))];
    const bar = ratio === undefined ? ' '.repeat(BAR_CELLS) : barText(ratio, BAR_CELLS, isUtf8);
    return [span(`${bar} `, 'bar'), span(text(reading))];
  };
  const isFirst = slot === 0;
  const least = Math.min(most, isFirst ? FIRST_READING_CELLS : OTHER_READING_CELLS);
  return [{ head: isFirst ? 'READINGS' : '', rank: isFirst ? 4 : 5 + slot, least, good: most, most, cell }];
}

/** The line of one row, or of the heads. */
export function rowLine(places: readonly Placed<Column>[], gap: number, cellOf: (column: Column, width: number) => Line): Line {
  return places.flatMap(({ column, width }, at) => {
    const cut = fitLine(cellOf(column, width), width);
    return at === 0 ? cut : [span(' '.repeat(gap)), ...cut];
  });
}
