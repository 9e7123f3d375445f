import type { Collection, DeviceRead, DeviceReport, SideReport } from '../model/collection.ts';
import type { Finding } from '../model/health.ts';
import type { Reading, Value } from '../model/metric.ts';

/** One reading without its value and its time. */
type Series = Omit<Reading, 'value' | 'readMs'>;

/** A report of one source without its values. */
type Posted = Omit<DeviceRead, 'readings' | 'findings'> & {
  /** Number of posted values that belong to it. */
  readonly readings: number;
  /** Absent when they are those of the same place in the message before. */
  readonly findings?: readonly Finding[];
};

type PostedReport = Omit<DeviceReport, 'read' | 'outOfBand'> & {
  readonly read?: Posted;
  readonly outOfBand?: Posted;
};

/**
 * A collection as one thread posts it to another. The values of all readings are one list. The list of their series and the
 * findings are posted only when they changed, because copying thousands of strings from thread to thread costs more than reading the files.
 */
export interface PostedCollection extends Omit<Collection, 'reports'> {
  readonly reports: readonly PostedReport[];
  readonly values: readonly Value[];
  /** Stretches of values that an earlier read gave: index of the first, number, and time of that read, one after the other. Absent without one. */
  readonly kept?: readonly number[];
  /** Number of the list of series. */
  readonly version: number;
  /** Absent when the receiver has the list of that number. */
  readonly series?: readonly Series[];
}

/** Works in the probe's thread. */
export class CollectionSender {
  #series: readonly Series[] = [];
  #version = 0;
  #reports: readonly DeviceReport[] = [];

  encode({ reports, ...rest }: Collection): PostedCollection {
    const lists: (readonly Reading[])[] = [];
    const post = (report: DeviceRead, before: SideReport | undefined): Posted => {
      lists.push(report.readings);
      const { findings, ...others } = report;
      const isKnown = findings.length === before?.findings.length && findings.every((one, at) => areSameFields(before.findings[at], one));
      return { ...others, ...(isKnown ? {} : { findings }), readings: report.readings.length };
    };
    const posted = reports.map(
      ({ read, outOfBand, ...report }, at): PostedReport => ({
        ...report,
        ...(read === undefined ? {} : { read: post(read, this.#reports[at]?.read) }),
        ...(outOfBand === undefined ? {} : { outOfBand: post(outOfBand, this.#reports[at]?.outOfBand) }),
      }),
    );
    this.#reports = reports;
    const readings = lists.flat();
    const isSame = this.#version > 0 && areSame(this.#series, readings);
    if (!isSame) {
      this.#series = readings.map(({ value: _, readMs: _time, ...series }) => series);
      this.#version += 1;
    }
    const values = readings.map(({ value }) => value);
    const kept = keptOf(readings);
    return {
      ...{ ...rest, reports: posted, values, version: this.#version },
      ...(kept.length === 0 ? {} : { kept }),
      ...(isSame ? {} : { series: this.#series }),
    };
  }
}

/** See {@link PostedCollection.kept}. The values of one source stand together, so that the stretches are few. */
function keptOf(readings: readonly Reading[]): readonly number[] {
  const kept: number[] = [];
  let before: number | undefined;
  for (let at = 0; at < readings.length; at += 1) {
    const { readMs } = readings[at] as Reading;
    if (readMs !== undefined) {
      if (readMs === before) kept[kept.length - 2] = (kept.at(-2) as number) + 1;
      else kept.push(at, 1, readMs);
    }
    before = readMs;
  }
  return kept;
}

/** Works in the thread that owns the probe's thread. It understands one sender, from the first message on. */
export class CollectionReceiver {
  #series: readonly Series[] = [];
  #version = 0;
  #reports: readonly DeviceReport[] = [];

  /** Throws when the list of series was never posted. */
  decode({ reports, values, version, series, kept = [], ...rest }: PostedCollection): Collection {
    if (series !== undefined) [this.#series, this.#version] = [series, version];
    if (version !== this.#version || values.length !== this.#series.length)
      throw new Error(`the series of version ${version} were never posted`);
    const readings = values.map((value, at) => readingOf(this.#series[at] as Series, value));
    for (let at = 0; at < kept.length; at += 3) {
      const [first = 0, count = 0, readMs = 0] = kept.slice(at, at + 3);
      for (const reading of readings.slice(first, first + count)) Object.assign(reading, { readMs });
    }
    let at = 0;
    const next = (count: number): readonly Reading[] => {
      at += count;
      return readings.slice(at - count, at);
    };
    const received = (report: Posted, before: SideReport | undefined): DeviceRead => {
      const findings = report.findings ?? before?.findings;
      if (findings === undefined) throw new Error('the findings of a device were never posted');
      return { ...report, findings, readings: next(report.readings) };
    };
    const decoded = reports.map(
      ({ read, outOfBand, ...report }, place): DeviceReport => ({
        ...report,
        ...(read === undefined ? {} : { read: received(read, this.#reports[place]?.read) }),
        ...(outOfBand === undefined ? {} : { outOfBand: received(outOfBand, this.#reports[place]?.outOfBand) }),
      }),
    );
    this.#reports = decoded;
    return { ...rest, reports: decoded };
  }
}

function areSame(series: readonly Series[], readings: readonly Reading[]): boolean {
  return (
    series.length === readings.length &&
    series.every(({ metric, labels, wrapsAt }, at) => {
      const now = readings[at];
      return metric === now?.metric && wrapsAt === now.wrapsAt && areSameFields(labels, now.labels);
    })
  );
}

/** Without a spread, which costs three times as much, and a node can have ten thousand readings. */
function readingOf({ metric, labels, wrapsAt }: Series, value: Value): Reading {
  const reading: { -readonly [K in keyof Reading]: Reading[K] } = { metric, value };
  if (labels !== undefined) reading.labels = labels;
  if (wrapsAt !== undefined) reading.wrapsAt = wrapsAt;
  return reading;
}

/** Of flat objects. */
function areSameFields<T extends object>(a: T | undefined, b: T | undefined): boolean {
  if (a === b) return true;
  if (a === undefined || b === undefined) return false;
  const [names, others] = [Object.keys(a), Object.keys(b)];
  return names.length === others.length && names.every((name, at) => name === others[at] && a[name as keyof T] === b[name as keyof T]);
}
