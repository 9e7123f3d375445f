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

/** A cell as it is printed. Replaces control characters, because foreign text must not control the terminal or break the row. */
export function shown(cell: string): string {
  return cell === '' ? '-' : cell.replace(/\p{Cc}/gu, '\ufffd');
}

function width(text: string): number {
  return [...text].length;
}
