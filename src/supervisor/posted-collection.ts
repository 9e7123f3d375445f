import { isDeepStrictEqual } from 'node:util';
import type { Collection, DeviceRead, DeviceReport, SideReport } from '../model/collection.ts';
import { areSameFindings, type Finding } from '../model/health.ts';
import type { Reading, Value } from '../model/metric.ts';
import { areSameFields, ofSeries, type Series, seriesOf, seriesOfOne } from '../model/readings.ts';

type Rest = Omit<DeviceRead, 'readings' | 'findings'>;

/** A report of one source without its values. What is absent is that of the same source at the same place in the message before. */
interface PostedSource {
  readonly series?: readonly Series[];
  readonly findings?: readonly Finding[];
  readonly rest?: Rest;
}

/** A source is absent when the report has none. */
interface PostedReport extends Pick<DeviceReport, 'faults'> {
  readonly device?: DeviceReport['device'];
  readonly read?: PostedSource;
  readonly outOfBand?: PostedSource;
}

/**
 * A collection as one thread posts it to another. The values of all readings are one list. Devices, series and findings are posted only
 * when they changed, because copying thousands of strings from thread to thread costs more than reading the files.
 */
export interface PostedCollection extends Omit<Collection, 'reports'> {
  /** Undefined: as at the same place in the message before, except the values. */
  readonly reports: readonly (PostedReport | undefined)[];
  readonly values: readonly Value[];
  /** Stretches of values that an earlier read gave: index of the first, number, and time of that read, one after the other. Absent without one. */
  readonly kept?: readonly number[];
}

/** Works in the probe's thread. */
export class CollectionSender {
  /**
   * What was posted at each place. It keeps the first objects of those that say the same: a probe makes new ones at each read, which the
   * garbage collector frees cheaply only while nobody keeps them until the next read.
   */
  #posted: readonly DeviceReport[] = [];

  encode({ reports, ...rest }: Collection): PostedCollection {
    const values: Value[] = [];
    const kept: number[] = [];
    const posted: (PostedReport | undefined)[] = [];
    this.#posted = reports.map((report, at) => {
      const before = this.#posted[at];
      const { device, read, outOfBand, faults } = report;
      if (read !== undefined) addValues(read.readings, values, kept);
      if (outOfBand !== undefined) addValues(outOfBand.readings, values, kept);
      const sources = {
        ...(read === undefined ? {} : { read: changesOf(read, before?.read) }),
        ...(outOfBand === undefined ? {} : { outOfBand: changesOf(outOfBand, before?.outOfBand) }),
      };
      const isSameDevice = before !== undefined && areSameDevices(before.device, device);
      const isQuiet = isSameDevice && isSame(sources.read, before.read) && isSame(sources.outOfBand, before.outOfBand);
      const isNothingNew = isQuiet && faults === undefined && before.faults === undefined;
      posted.push(
        isNothingNew ? undefined : { ...(isSameDevice ? {} : { device }), ...sources, ...(faults === undefined ? {} : { faults }) },
      );
      if (isNothingNew || before === undefined) return before ?? report;
      return {
        ...report,
        ...(isSameDevice ? { device: before.device } : {}),
        ...(read === undefined ? {} : { read: withChanges(read, before.read, sources.read) }),
        ...(outOfBand === undefined ? {} : { outOfBand: withChanges(outOfBand, before.outOfBand, sources.outOfBand) }),
      };
    });
    return { ...rest, reports: posted, values, ...(kept.length === 0 ? {} : { kept }) };
  }
}

/** The source with the objects of before for what it did not change. */
function withChanges(source: DeviceRead, before: DeviceRead | undefined, changes: PostedSource = {}): DeviceRead {
  if (before === undefined) return source;
  return {
    ...(changes.rest ?? restOf(before)),
    readings: changes.series === undefined ? before.readings : source.readings,
    findings: changes.findings ?? before.findings,
  };
}

/** See {@link PostedCollection.kept}. The values of one source stand together, so that the stretches are few. */
function addValues(readings: readonly Reading[], values: Value[], kept: number[]): void {
  for (let at = 0; at < readings.length; at += 1) {
    const { value, readMs } = readings[at] as Reading;
    if (readMs !== undefined) {
      const isNext = readMs === kept.at(-1) && (kept.at(-3) as number) + (kept.at(-2) as number) === values.length;
      if (isNext) kept[kept.length - 2] = (kept.at(-2) as number) + 1;
      else kept.push(values.length, 1, readMs);
    }
    values.push(value);
  }
}

function changesOf(source: DeviceRead, before: SideReport | undefined): PostedSource {
  const { readings, findings } = source;
  const isSameRest = before !== undefined && areSameRest(source, before);
  return {
    ...(before !== undefined && areSameSeries(before.readings, readings) ? {} : { series: readings.map(seriesOfOne) }),
    ...(areSameFindings(before?.findings, findings) ? {} : { findings }),
    ...(isSameRest ? {} : { rest: restOf(source) }),
  };
}

function restOf({ readings: _, findings: __, ...rest }: DeviceRead): Rest {
  return rest;
}

function areSameRest(a: DeviceRead, b: DeviceRead): boolean {
  return a.hasAllProcesses === b.hasAllProcesses && (a.processes === b.processes || isDeepStrictEqual(a.processes, b.processes));
}

/** Whether a source says nothing new. One that told something before and is silent now is another report. */
function isSame(changes: PostedSource | undefined, before: SideReport | undefined): boolean {
  if (changes === undefined || before === undefined) return changes === before;
  for (const _ in changes) return false;
  return true;
}

function areSameDevices(a: DeviceReport['device'], b: DeviceReport['device']): boolean {
  return a === b || isDeepStrictEqual(a, b);
}

function areSameSeries(before: readonly Reading[], now: readonly Reading[]): boolean {
  if (before === now) return true;
  if (before.length !== now.length) return false;
  for (let at = 0; at < now.length; at += 1) {
    const [a, b] = [before[at] as Reading, now[at] as Reading];
    if (a === b) continue;
    if (a.metric !== b.metric || a.wrapsAt !== b.wrapsAt) return false;
    if (a.labels !== b.labels && !areSameFields(a.labels, b.labels)) return false;
  }
  return true;
}

/**
 * Works in the thread that owns the probe's thread. It understands one sender, from the first message on. What did not change is the same
 * object as in the collection before: devices, readings, findings, and whole reports.
 */
export class CollectionReceiver {
  #reports: readonly DeviceReport[] = [];

  /** Throws when a part was never posted. */
  decode({ reports, values, kept, ...rest }: PostedCollection): Collection {
    const column: Column = { values, times: timesOf(kept, values.length), at: 0 };
    const decoded = reports.map((posted, at) => reportOf(posted, this.#reports[at], column));
    if (column.at !== values.length) throw new Error(`of ${values.length} values, ${values.length - column.at} belong to no posted series`);
    this.#reports = decoded;
    return { ...rest, reports: decoded };
  }
}

/** The values that are not yet taken begin at `at`. */
interface Column {
  readonly values: readonly Value[];
  /** Absent when the read of the device gave all values. */
  readonly times: readonly (number | undefined)[] | undefined;
  at: number;
}

function timesOf(kept: readonly number[] | undefined, count: number): Column['times'] {
  if (kept === undefined) return undefined;
  const times = new Array<number | undefined>(count).fill(undefined);
  for (let at = 0; at < kept.length; at += 3) {
    const [first = 0, length = 0, readMs] = kept.slice(at, at + 3);
    times.fill(readMs, first, first + length);
  }
  return times;
}

function reportOf(posted: PostedReport | undefined, before: DeviceReport | undefined, column: Column): DeviceReport {
  const device = posted?.device ?? before?.device;
  if (device === undefined) throw new Error('a device was never posted');
  const hasRead = posted === undefined ? before?.read !== undefined : posted.read !== undefined;
  const hasOutOfBand = posted === undefined ? before?.outOfBand !== undefined : posted.outOfBand !== undefined;
  const read = hasRead ? sourceOf(posted?.read, before?.read, column) : undefined;
  const outOfBand = hasOutOfBand ? sourceOf(posted?.outOfBand, before?.outOfBand, column) : undefined;
  if (posted === undefined && read === before?.read && outOfBand === before?.outOfBand) return before as DeviceReport;
  return {
    device,
    ...(read === undefined ? {} : { read }),
    ...(outOfBand === undefined ? {} : { outOfBand }),
    ...(posted?.faults === undefined ? {} : { faults: posted.faults }),
  };
}

function sourceOf(posted: PostedSource = {}, before: DeviceRead | undefined, column: Column): DeviceRead {
  const series = posted.series ?? (before && seriesOf(before.readings));
  const findings = posted.findings ?? before?.findings;
  const rest = posted.rest ?? (before && restOf(before));
  if (series === undefined || findings === undefined || rest === undefined) throw new Error('the series of a device were never posted');
  const readings = readingsOf(series, before?.readings ?? [], column);
  const isSame = readings === before?.readings && findings === before.findings && posted.rest === undefined;
  return isSame ? before : { ...rest, readings, findings };
}

/** The objects of the read before, of which only those are new whose value or time changed; when none is, the same list. */
function readingsOf(series: readonly Series[], before: readonly Reading[], column: Column): readonly Reading[] {
  const { values, times, at: first } = column;
  column.at += series.length;
  if (column.at > values.length) throw new Error('values of a device were never posted');
  const isOfSeries = before.length === series.length && seriesOf(before) === series;
  let readings: Reading[] | undefined = isOfSeries ? undefined : [];
  for (let at = 0; at < series.length; at += 1) {
    const value = values[first + at] as Value;
    const readMs = times?.[first + at];
    const known = isOfSeries ? before[at] : undefined;
    if (known !== undefined && known.value === value && known.readMs === readMs) readings?.push(known);
    else {
      readings ??= before.slice(0, at);
      readings.push(readingOf(series[at] as Series, value, readMs));
    }
  }
  return readings === undefined ? before : ofSeries(series, readings);
}

/** Without a spread, which costs three times as much, and a node can have ten thousand readings. */
function readingOf({ metric, labels, wrapsAt }: Series, value: Value, readMs: number | undefined): Reading {
  const reading: { -readonly [K in keyof Reading]: Reading[K] } = { metric, value };
  if (labels !== undefined) reading.labels = labels;
  if (wrapsAt !== undefined) reading.wrapsAt = wrapsAt;
  if (readMs !== undefined) reading.readMs = readMs;
  return reading;
}
