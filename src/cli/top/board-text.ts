import type { Board } from '../../board/board.ts';
import type { ViewGroup } from '../../board/view.ts';
import { visible } from '../../model/one-line.ts';
import type { Line } from '../terminal/frame.ts';
import { placed } from '../terminal/room.ts';
import { columnsOf, type Drawing, rowLine } from './columns.ts';
import { itemsOf } from './items.ts';

const GAP = 2;

export interface TextForm {
  /** All facts, and nothing cut. */
  readonly isWide: boolean;
  readonly group: ViewGroup;
  /** Cells of the terminal; absent where the output is no terminal, so that nothing is cut. */
  readonly columns?: number | undefined;
}

/** One frame of the board as plain text: heads and rows, and below them problems and allocations without a device. */
export function boardText(board: Board, { isWide, group, columns = Number.POSITIVE_INFINITY }: TextForm): string {
  // A name of somebody else must not break the lines.
  const shown = withVisibleTexts(board);
  const items = itemsOf(shown, { filter: '', sort: 'attention', group });
  const drawing: Drawing = {
    nowMs: Date.parse(shown.now),
    isUtf8: true,
    text: isWide || columns === Number.POSITIVE_INFINITY ? 'all' : 'fits',
    isWide,
  };
  const rows = items.flatMap(({ row }) => row ?? []);
  const places = placed(columnsOf(rows, drawing), isWide ? Number.POSITIVE_INFINITY : columns, GAP);
  const textOf = (line: Line): string => line.map(({ text }) => text).join('');
  const lines = items.map(({ row, title, note = '' }) =>
    row === undefined ? (title ?? note) : textOf(rowLine(places, GAP, (column, width) => column.cell(row, width))),
  );
  const heads = rows.length === 0 ? [] : [textOf(rowLine(places, GAP, ({ head }) => [{ text: head, style: 'text' }]))];
  return [...heads, ...lines].map((line) => `${line.trimEnd()}\n`).join('');
}

function withVisibleTexts<T>(value: T): T {
  if (typeof value === 'string') return visible(value) as T;
  if (Array.isArray(value)) return value.map(withVisibleTexts) as T;
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, withVisibleTexts(one)])) as T;
}
