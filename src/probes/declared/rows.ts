import { normalizePciAddress } from '../../host/pci/pci.ts';
import type { DeclaredCommand } from './declaration.ts';

/** Limit of rows of one output: one more than devices, so that it shows when devices are left out. */
const MOST_ROWS = 1_025;

/** One row of a command's output: an object of JSON, or the cells of a CSV line by column. */
export type Row = Readonly<Record<string, unknown>>;

/** Parses an output; undefined when it does not have the declared form. */
export function rowsOf(output: string, command: DeclaredCommand): readonly Row[] | undefined {
  return command.format === 'json' ? jsonRows(output, command.rows ?? '') : csvRows(output, command);
}

function jsonRows(output: string, pointer: string): readonly Row[] | undefined {
  let document: unknown;
  try {
    document = JSON.parse(output);
  } catch {
    return undefined;
  }
  const rows = at(document, pointer);
  if (!Array.isArray(rows)) return undefined;
  return rows.slice(0, MOST_ROWS).filter((row): row is Row => typeof row === 'object' && row !== null && !Array.isArray(row));
}

function csvRows(output: string, { columns, separator = ',' }: DeclaredCommand): readonly Row[] | undefined {
  const lines = output
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  const cells = (line: string): string[] => line.split(separator).map((cell) => cell.trim());
  const names = columns ?? cells(lines.shift() ?? '');
  const rows = lines.slice(0, MOST_ROWS).map(cells);
  // A line with another number of cells is a message or another version of the program, whose cells would be mistaken.
  if (rows.some((row) => row.length !== names.length)) return undefined;
  return rows.map((row) => Object.fromEntries(names.map((name, n) => [name, row[n]])));
}

/** The text of a cell: a JSON pointer, or a column. Undefined for an absent cell, null, an object or a list. */
export function cellOf(row: Row, place: string): string | undefined {
  return textOf(place.startsWith('/') ? at(row, place) : own(row, place));
}

const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? String(value) : undefined;

/** The texts of a cell; a list gives each of its cells. */
export function cellsOf(row: Row, place: string): readonly string[] {
  const value = place.startsWith('/') ? at(row, place) : own(row, place);
  return (Array.isArray(value) ? value : [value]).map(textOf).filter((text) => text !== undefined);
}

/** The row whose key cell has a text. PCI addresses are equal in every spelling. */
export function rowWith(rows: readonly Row[], key: string, text: string): Row | undefined {
  const wanted = normalizePciAddress(text) ?? text;
  const fitting = rows.filter((row) => {
    const cell = cellOf(row, key);
    return cell !== undefined && (cell === text || normalizePciAddress(cell) === wanted);
  });
  // Two rows for one device contradict each other.
  return fitting.length === 1 ? fitting[0] : undefined;
}

function at(document: unknown, pointer: string): unknown {
  let value = document;
  for (const step of pointer.split('/').slice(1)) value = own(value, step.replaceAll('~1', '/').replaceAll('~0', '~'));
  return value;
}

const own = (value: unknown, key: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, key) ? (value as Readonly<Record<string, unknown>>)[key] : undefined;
