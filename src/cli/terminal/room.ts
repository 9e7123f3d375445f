/** How many cells of a line a column needs. */
export interface ColumnRoom {
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
}

/** A column with the cells that it gets. */
export interface Placed<C extends ColumnRoom> {
  readonly column: C;
  readonly width: number;
}

/** Columns of a higher rank are there only when these show what matters. */
const LAST_ESSENTIAL = 4;

/** Chooses the columns that fit side by side, and shares the room among them. */
export function placed<C extends ColumnRoom>(columns: readonly C[], room: number, gap: number): readonly Placed<C>[] {
  const ranked = columns.toSorted((a, b) => a.rank - b.rank);
  const chosen: { column: C; width: number }[] = [];
  let left = room + gap;
  const choose = (column: C): void => {
    // Without state and name, a row says nothing: they are there even when they are cut.
    const isNeeded = column.rank <= 1 && left - gap > 0;
    if (column.least + gap > left && !isNeeded) return;
    const width = Math.min(column.least, left - gap);
    chosen.push({ column, width });
    left -= width + gap;
  };
  /** All columns grow alike until they have what they need, or no cell is left. */
  const grow = (need: 'soon' | 'good' | 'most'): void => {
    const lacks = ({ width, column }: Placed<C>): boolean => width < (column[need] ?? column.least);
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
