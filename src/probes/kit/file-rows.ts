import type { Labels, MetricSpec, Reading, Value } from '../../model/metric.ts';
import { type DeviceFiles, IMPOSSIBLE } from './device-files.ts';
import { ReadingSet } from './reading-set.ts';
import { parseCount, scaled } from './text.ts';

/** A value that a device has in a file of its own, and the series that it becomes. All that is known of the value stands here, and only here. */
export interface FileRow<V extends Value = Value> {
  /** Path below the directory of the device. */
  readonly file: string;
  readonly metric: Pick<MetricSpec, 'name'>;
  readonly labels?: Labels | undefined;
  /** Undefined: the text is no value, which is a problem of the device. Default: a count of up to 64 bits. */
  readonly parse?: ((text: string) => V | undefined) | undefined;
  /** What gives the unit of the metric when the parsed value is multiplied by it. A whole number loses no digit. */
  readonly scale?: number | undefined;
  /** Value, in the unit of the metric, that stands for none. */
  readonly absent?: V | undefined;
  /** Whether a working part can have the value. Another one is a problem of the device. Default: each value. */
  readonly isPossible?: ((value: V) => boolean) | undefined;
}

/** A value, or the reason why there is none: see {@link DeviceFiles}. */
export type RowValue<V extends Value = Value> =
  | { readonly value: V; readonly error?: undefined }
  | { readonly value?: undefined; readonly error: string };

/** Error of a file that holds the value that stands for none. */
export const ABSENT = 'absent';

/** `live`: the file is read at each refresh, and stays open. `once`: it is read rarely. */
export type RowPace = 'live' | 'once';

/** Reads one row. `what`: its name in problems. */
export function readRow<V extends Value = Value>(
  files: DeviceFiles,
  { file, parse = parseCount as (text: string) => V | undefined, scale = 1, absent, isPossible }: Omit<FileRow<V>, 'metric'>,
  pace: RowPace,
  what = file,
): RowValue<V> {
  const read = files[pace](file, parse, what);
  if (read.error !== undefined) return { error: read.error };
  const value = scaled(read.value, scale);
  if (value === absent) return { error: ABSENT };
  if (isPossible === undefined || isPossible(value)) return { value };
  files.note(what, IMPOSSIBLE);
  return { error: IMPOSSIBLE };
}

/** Adds what the rows say. A row without a value adds nothing. */
export function addRows(readings: ReadingSet, files: DeviceFiles, rows: readonly FileRow[], pace: RowPace = 'live'): void {
  for (const row of rows) readings.add(row.metric, readRow(files, row, pace).value, row.labels);
}

/** The rows whose file a directory of the device has. An absent file is never opened. */
export function listedRows<R extends FileRow>(files: DeviceFiles, rows: readonly R[], directory = '.'): readonly R[] {
  const placed = directory === '.' ? rows : rows.map((row) => ({ ...row, file: `${directory}/${row.file}` }));
  return placed.filter(({ file }) => files.has(file));
}

/** What the rows of a device say that rarely change. A value that cannot be read now stays as it was. */
export function readFacts(files: DeviceFiles, rows: readonly FileRow[], before: readonly Reading[] = []): readonly Reading[] {
  const readings = new ReadingSet();
  addRows(readings, files, listedRows(files, rows), 'once');
  readings.addAll(before);
  return readings.list();
}
