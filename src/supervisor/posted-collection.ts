import type { Collection, DeviceReport } from '../model/collection.ts';
import type { Labels, Reading, Value } from '../model/metric.ts';

/** One reading without its value. */
type Series = Omit<Reading, 'value'>;

/** A report without its values. `readings` is the number of posted values that belong to it. */
type PostedReport = Omit<DeviceReport, 'read' | 'outOfBand'> & {
  readonly read?: Omit<NonNullable<DeviceReport['read']>, 'readings'> & { readonly readings: number };
  readonly outOfBand?: Omit<NonNullable<DeviceReport['outOfBand']>, 'readings'> & { readonly readings: number };
};

/**
 * A collection as one thread posts it to another. The values of all readings are one list. The list of their series is posted only when it
 * changed, because copying thousands of strings from thread to thread costs more than reading the files.
 */
export interface PostedCollection extends Omit<Collection, 'reports'> {
  readonly reports: readonly PostedReport[];
  readonly values: readonly Value[];
  /** Number of the list of series. */
  readonly version: number;
  /** Absent when the receiver has the list of that number. */
  readonly series?: readonly Series[];
}

/** Works in the probe's thread. */
export class CollectionSender {
  #series: readonly Series[] = [];
  #version = 0;

  encode({ reports, ...rest }: Collection): PostedCollection {
    const readings = reports.flatMap(({ read, outOfBand }) => [...(read?.readings ?? []), ...(outOfBand?.readings ?? [])]);
    const isSame = this.#version > 0 && areSame(this.#series, readings);
    if (!isSame) {
      this.#series = readings.map(({ value: _, ...series }) => series);
      this.#version += 1;
    }
    const posted = reports.map(
      ({ read, outOfBand, ...report }): PostedReport => ({
        ...report,
        ...(read === undefined ? {} : { read: { ...read, readings: read.readings.length } }),
        ...(outOfBand === undefined ? {} : { outOfBand: { ...outOfBand, readings: outOfBand.readings.length } }),
      }),
    );
    const values = readings.map(({ value }) => value);
    return { ...rest, reports: posted, values, version: this.#version, ...(isSame ? {} : { series: this.#series }) };
  }
}

/** Works in the thread that owns the probe's thread. It understands one sender, from the first message on. */
export class CollectionReceiver {
  #series: readonly Series[] = [];
  #version = 0;

  /** Throws when the list of series was never posted. */
  decode({ reports, values, version, series, ...rest }: PostedCollection): Collection {
    if (series !== undefined) [this.#series, this.#version] = [series, version];
    if (version !== this.#version || values.length !== this.#series.length)
      throw new Error(`the series of version ${version} were never posted`);
    let at = 0;
    const next = (count: number): readonly Reading[] => {
      const own = this.#series.slice(at, at + count).map((one, n): Reading => ({ ...one, value: values[at + n] as Value }));
      at += count;
      return own;
    };
    const decoded = reports.map(
      ({ read, outOfBand, ...report }): DeviceReport => ({
        ...report,
        ...(read === undefined ? {} : { read: { ...read, readings: next(read.readings) } }),
        ...(outOfBand === undefined ? {} : { outOfBand: { ...outOfBand, readings: next(outOfBand.readings) } }),
      }),
    );
    return { ...rest, reports: decoded };
  }
}

function areSame(series: readonly Series[], readings: readonly Reading[]): boolean {
  return (
    series.length === readings.length &&
    series.every(({ metric, labels, wrapsAt }, at) => {
      const now = readings[at];
      return metric === now?.metric && wrapsAt === now.wrapsAt && areSameLabels(labels, now.labels);
    })
  );
}

function areSameLabels(a: Labels | undefined, b: Labels | undefined): boolean {
  if (a === b) return true;
  if (a === undefined || b === undefined) return false;
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => a[name] === b[name]);
}
