import { fitText, widthOf, wrapText } from '../terminal/frame.ts';
import { type ColumnRoom, placed } from '../terminal/room.ts';
import { shown } from '../text-table.ts';

/** A column of a table that must fit into a terminal. */
export interface FittedColumn extends Pick<ColumnRoom, 'rank'> {
  readonly head: string;
  /** Cells below which the column is left out. Absent: it is never cut. */
  readonly least?: number;
}

const GAP = 2;
const INDENT = '    ';

/**
 * Formats rows for a terminal of `room` cells: long cells are cut, and columns without a value or of a high rank are left out. `isComplete`:
 * what a row then lacks follows on lines of its own.
 */
export function fittedTable(
  columns: readonly FittedColumn[],
  rows: readonly (readonly string[])[],
  room: number,
  isComplete: boolean,
): string {
  const sized = columns.map(({ head, rank, least }, at) => {
    const most = Math.max(widthOf(head), ...rows.map((row) => widthOf(shown(row[at] ?? ''))));
    return { at, head, rank, least: Math.min(least ?? most, most), good: most, most };
  });
  const places = placed(
    sized.filter(({ at }) => rows.some((row) => hasValue(row, at))),
    room,
    GAP,
  );
  const line = (cellOf: (at: number) => string): string =>
    places
      .map(({ column, width }) => fitText(cellOf(column.at), width))
      .join(' '.repeat(GAP))
      .trimEnd();
  const details = (row: readonly string[]): readonly string[] => {
    const roomOf = (at: number): number => places.find(({ column }) => column.at === at)?.width ?? 0;
    const lacking = sized.filter(({ at }) => hasValue(row, at) && roomOf(at) < widthOf(shown(row[at] as string)));
    const text = lacking.map(({ at, head }) => `${head.toLowerCase()} ${shown(row[at] as string)}`).join(', ');
    return text === '' ? [] : wrapText(text, room - INDENT.length).map((one) => INDENT + one);
  };
  const lines = rows.flatMap((row) => [line((at) => shown(row[at] ?? '')), ...(isComplete ? details(row) : [])]);
  return [line((at) => columns[at]?.head ?? ''), ...lines].map((one) => `${one}\n`).join('');
}

const hasValue = (row: readonly string[], at: number): boolean => (row[at] ?? '') !== '';
