import { visible } from '../model/one-line.ts';

/** Formats rows as aligned columns, two spaces apart, without spaces at line ends. Empty cells show as `-`. */
export function textTable(rows: readonly (readonly string[])[]): string {
  const widths: number[] = [];
  for (const row of rows) {
    row.forEach((cell, column) => {
      widths[column] = Math.max(widths[column] ?? 0, width(shown(cell)));
    });
  }
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) => shown(cell) + ' '.repeat((widths[column] ?? 0) - width(shown(cell))))
      .join('  ')
      .trimEnd();
  return rows.map((row) => `${line(row)}\n`).join('');
}

/** A cell as it is printed. */
export function shown(cell: string): string {
  return cell === '' ? '-' : visible(cell);
}

function width(text: string): number {
  return [...text].length;
}
