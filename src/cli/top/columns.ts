import type { BoardRow, RowReading } from '../../board/row.ts';
import { durationText } from '../../board/units.ts';
import type { ViewRow } from '../../board/view.ts';
import { STATE_NAMES } from '../../board/words.ts';
import type { Line } from '../terminal/frame.ts';
import { fitLine, span, widthOf } from '../terminal/frame.ts';
import type { Style } from '../terminal/style.ts';
import { barText } from './bar.ts';

/** What a cell needs beside its row. */
export interface Drawing {
  readonly nowMs: number;
  readonly isUtf8: boolean;
}

export interface Column {
  readonly head: string;
  /** Cells below which the column is left out. */
  readonly least: number;
  /** Cells that it gets before any other column grows. Absent: its least. */
  readonly soon?: number;
  /** Cells that show what matters. They are given before any column shows more. */
  readonly good: number;
  /** Cells that show everything. */
  readonly most: number;
  /** Columns with a small rank are kept in a narrow terminal. */
  readonly rank: number;
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

/** A column with the cells that it gets. */
export interface Placed {
  readonly column: Column;
  readonly width: number;
}

/** Columns of a higher rank are there only when these show what matters. */
const LAST_ESSENTIAL = 4;

/** Chooses the columns that fit side by side, and shares the room among them. */
export function placed(columns: readonly Column[], room: number, gap: number): readonly Placed[] {
  const ranked = columns.toSorted((a, b) => a.rank - b.rank);
  const chosen: { column: Column; width: number }[] = [];
  let left = room + gap;
  const choose = (column: Column): void => {
    // Without state and name, a row says nothing: they are there even when they are cut.
    const isNeeded = column.rank <= 1 && left - gap > 0;
    if (column.least + gap > left && !isNeeded) return;
    const width = Math.min(column.least, left - gap);
    chosen.push({ column, width });
    left -= width + gap;
  };
  /** All columns grow alike until they have what they need, or no cell is left. */
  const grow = (need: 'soon' | 'good' | 'most'): void => {
    const lacks = ({ width, column }: Placed): boolean => width < (column[need] ?? column.least);
    for (let lacking = chosen; left > 0 && lacking.length > 0; lacking = lacking.filter(lacks)) {
      for (const one of lacking) {
        if (left <= 0 || !lacks(one)) continue;
        one.width += 1;
        left -= 1;
      }
    }
  };
  ranked.filter(({ rank }) => rank <= LAST_ESSENTIAL).forEach(choose);
  grow('soon');
  grow('good');
  ranked.filter(({ rank }) => rank > LAST_ESSENTIAL).forEach(choose);
  grow('good');
  grow('most');
  return columns.flatMap((column) => chosen.filter((one) => one.column === column));
}

/** The line of one row, or of the heads. */
export function rowLine(places: readonly Placed[], gap: number, cellOf: (column: Column, width: number) => Line): Line {
  return places.flatMap(({ column, width }, at) => {
    const cut = fitLine(cellOf(column, width), width);
    return at === 0 ? cut : [span(' '.repeat(gap)), ...cut];
  });
}
