import { isDeepStrictEqual } from 'node:util';
import type { Collection, DeviceRead, DeviceReport } from '../model/collection.ts';
import { defined } from '../model/defined.ts';
import { areSameFindings, type Finding } from '../model/health.ts';
import type { Value } from '../model/metric.ts';
import { Readings, type Series, type ValueTimes } from '../model/readings.ts';
import { columnsOf } from '../probes/kit/reading-writer.ts';
import { SAME_IDENTITY } from './probe-look.ts';

type Read = DeviceRead<Readings> & { readonly areFaultsRead?: true };
type Report = DeviceReport<Readings>;
type Rest = Omit<Read, 'readings' | 'findings'>;

/** A report of one source. What is absent is that of the same source at the same place in the message before. */
interface PostedSource {
  readonly series?: readonly Series[];
  /** The times of the values; empty when the read gave all. */
  readonly times?: readonly (number | undefined)[];
  readonly findings?: readonly Finding[];
  readonly rest?: Rest;
  /** The column has its values. */
  readonly hasValues?: true;
}

/** A source is absent when the report has none. */
interface PostedReport extends Pick<Report, 'faults'> {
  readonly device?: Report['device'];
  readonly read?: PostedSource;
  readonly outOfBand?: PostedSource;
}

/**
 * A collection as a reader sends it to the agent. The values that may be new are one column. Devices, series, times and findings are posted only
 * when they changed, because copying thousands of strings costs more than reading the files.
 */
export interface PostedCollection extends Omit<Collection, 'reports'>, PostedColumn {
  /** Undefined: as at the same place in the message before. */
  readonly reports: readonly (PostedReport | undefined)[];
}

interface PostedColumn {
  readonly values: Float64Array;
  /** Values that are no exact `number`, and their places: place and value, one after the other. Absent without one. */
  readonly exact?: readonly Value[];
}

/** New reads of some devices of the collection before, as a reader sends them. */
export interface PostedReads extends PostedColumn {
  /** The places of the devices in that collection. */
  readonly places: readonly number[];
  readonly reads: readonly (PostedReport | undefined)[];
}

/** All reports of the collection before, with new reads of the devices `ids`. */
export interface ReadAgain {
  readonly reports: readonly Report[];
  readonly ids: readonly string[];
}

/** Works in the reader. */
export class CollectionSender {
  /** The reports of the collection before: what a probe keeps is compared by its identity. */
  #posted: readonly Report[] = [];
  /** Some devices have findings of others. */
  #isShared = false;

  encode({ reports, ...rest }: Collection): PostedCollection {
    const before = this.#posted;
    this.#posted = reports.map((report, at) => inColumns(report, before[at]));
    this.#isShared = rest.problems.some(({ code }) => code === SAME_IDENTITY);
    const column: Readings[] = [];
    const posted = this.#posted.map((report, at) => changesOf(report, before[at], column));
    return { ...rest, reports: posted, ...postedColumn(column) };
  }

  /** Undefined when the collection before has no read of one of the devices, or more than the reads of a device depends on them. */
  encodeReads(reports: readonly DeviceReport[] | undefined): PostedReads | undefined {
    if (reports === undefined || this.#isShared) return undefined;
    const next = [...this.#posted];
    const places: number[] = [];
    for (const { device, read } of reports) {
      const isOfDevice = (one: Report): boolean => one.device.id === device.id;
      const at = next.findIndex(isOfDevice);
      const before = next[at];
      if (read === undefined || before?.read === undefined || !areSame(before.device, device)) return undefined;
      if (at !== next.findLastIndex(isOfDevice)) return undefined;
      places.push(at);
      next[at] = { ...before, read: sourceInColumns(read, before.read) };
    }
    const column: Readings[] = [];
    const reads = places.map((at) => changesOf(next[at] as Report, this.#posted[at], column));
    this.#posted = next;
    return { places, reads, ...postedColumn(column) };
  }
}

function inColumns({ read, outOfBand, ...report }: DeviceReport, before: Report | undefined): Report {
  return {
    ...report,
    ...defined({
      read: read && sourceInColumns(read, before?.read),
      outOfBand: outOfBand && sourceInColumns(outOfBand, before?.outOfBand),
    }),
  };
}

const sourceInColumns = (source: DeviceRead, before: Read | undefined): Read => ({
  ...source,
  readings: columnsOf(source.readings, before?.readings),
});

/** What is new in the report; undefined without news. `column` gets the readings whose values may be new. */
function changesOf({ device, read, outOfBand, faults }: Report, before: Report | undefined, column: Readings[]): PostedReport | undefined {
  const ofRead = read && changesOfSource(read, before?.read, column);
  const ofSide = outOfBand && changesOfSource(outOfBand, before?.outOfBand, column);
  const isSameDevice = before !== undefined && areSame(device, before.device);
  const isQuiet = isQuietSource(ofRead, before?.read) && isQuietSource(ofSide, before?.outOfBand);
  if (isSameDevice && isQuiet && faults === undefined && before.faults === undefined) return undefined;
  return {
    ...(isSameDevice ? {} : { device }),
    ...defined({ read: ofRead, outOfBand: ofSide, faults }),
  };
}

const NOTHING_NEW: PostedSource = {};
const ONLY_VALUES: PostedSource = { hasValues: true };

/** One that told something before and is silent now is another report. */
const isQuietSource = (changes: PostedSource | undefined, before: Read | undefined): boolean =>
  changes === (before === undefined ? undefined : NOTHING_NEW);

function changesOfSource(source: Read, before: Read | undefined, column: Readings[]): PostedSource {
  const { readings, findings } = source;
  const areNew = readings !== before?.readings;
  if (areNew) column.push(readings);
  const [isSameSeries, isSameTimes] = [readings.series === before?.readings.series, readings.times === before?.readings.times];
  const areFindingsSame = areSameFindings(before?.findings, findings);
  const isSameRest = before !== undefined && areSameRest(source, before);
  if (areFindingsSame && isSameSeries && isSameTimes && isSameRest) return areNew ? ONLY_VALUES : NOTHING_NEW;
  return {
    ...(isSameSeries ? {} : { series: readings.series }),
    ...(isSameTimes ? {} : { times: readings.times ?? [] }),
    ...(areFindingsSame ? {} : { findings }),
    ...(isSameRest ? {} : { rest: restOf(source) }),
    ...(areNew ? ONLY_VALUES : {}),
  };
}

function postedColumn(all: readonly Readings[]): PostedColumn {
  const column = new Float64Array(all.reduce((sum, { length }) => sum + length, 0));
  const exact: Value[] = [];
  let end = 0;
  for (const { values } of all) {
    if (values instanceof Float64Array) column.set(values, end);
    else
      for (const [at, value] of Array.from(values).entries()) {
        if (typeof value === 'number') column[end + at] = value;
        else exact.push(end + at, value);
      }
    end += values.length;
  }
  return { values: column, ...(exact.length === 0 ? {} : { exact }) };
}

function restOf({ readings: _, findings: __, ...rest }: Read): Rest {
  return rest;
}

function areSameRest(a: Read, b: Read): boolean {
  return a.areFaultsRead === b.areFaultsRead && a.hasAllProcesses === b.hasAllProcesses && areSame(a.processes, b.processes);
}

const areSame = (a: unknown, b: unknown): boolean => a === b || isDeepStrictEqual(a, b);

/**
 * Works in the agent. It understands one sender, from the first message on. What did not change is the same
 * object as in the collection before: devices, series, readings, findings, and whole reports.
 */
export class CollectionReceiver {
  #reports: readonly Report[] = [];

  /** Throws when a part was never posted. */
  decode({ reports, values, exact, ...rest }: PostedCollection): Collection<Readings> {
    const column = new Column(values, exact);
    this.#reports = reports.map((posted, at) => reportOf(posted, this.#reports[at], column));
    column.checkAllTaken();
    return { ...rest, reports: this.#reports };
  }

  decodeReads({ places, reads, values, exact }: PostedReads): ReadAgain {
    const column = new Column(values, exact);
    const reports = [...this.#reports];
    for (const [n, place] of places.entries()) reports[place] = reportOf(reads[n], reports[place], column);
    column.checkAllTaken();
    this.#reports = reports;
    return { reports, ids: places.map((place) => (reports[place] as Report).device.id) };
  }
}

/** The values of a message while they are taken, one source after the other. */
class Column {
  readonly #values: Float64Array;
  readonly #exact: readonly Value[];
  #end = 0;
  #exactEnd = 0;

  constructor(values: Float64Array, exact: readonly Value[] = []) {
    this.#values = values;
    this.#exact = exact;
  }

  /** A copy, so that a device which seldom changes does not keep the values of all others. */
  take(length: number): Readings['values'] {
    const begin = this.#end;
    this.#end += length;
    if (this.#end > this.#values.length) throw new Error('values of a device were never posted');
    const values = this.#values.slice(begin, this.#end);
    if (!this.#isExactNext()) return values;
    const exact: Value[] = Array.from(values);
    for (; this.#isExactNext(); this.#exactEnd += 2)
      exact[Number(this.#exact[this.#exactEnd]) - begin] = this.#exact[this.#exactEnd + 1] as Value;
    return exact;
  }

  #isExactNext(): boolean {
    return Number(this.#exact[this.#exactEnd]) < this.#end;
  }

  checkAllTaken(): void {
    const left = this.#values.length - this.#end;
    if (left > 0) throw new Error(`of ${this.#values.length} values, ${left} belong to no posted series`);
  }
}

function reportOf(posted: PostedReport | undefined, before: Report | undefined, column: Column): Report {
  if (posted === undefined && before !== undefined) return before;
  const { device = before?.device, read, outOfBand, faults } = posted ?? {};
  if (device === undefined) throw new Error('a device was never posted');
  return {
    device,
    ...defined({
      read: read && sourceOf(read, before?.read, column),
      outOfBand: outOfBand && sourceOf(outOfBand, before?.outOfBand, column),
      faults,
    }),
  };
}

function sourceOf(posted: PostedSource, before: Read | undefined, column: Column): Read {
  const { series = before?.readings.series, findings = before?.findings, rest = before && restOf(before) } = posted;
  if (series === undefined || findings === undefined || rest === undefined) throw new Error('the series of a device were never posted');
  const times: ValueTimes = posted.times === undefined ? before?.readings.times : posted.times.length === 0 ? undefined : posted.times;
  const readings = posted.hasValues === true ? new Readings(series, column.take(series.length), times) : before?.readings;
  if (readings === undefined) throw new Error('values of a device were never posted');
  const isSame = readings === before?.readings && findings === before.findings && posted.rest === undefined;
  return isSame ? before : { ...rest, readings, findings };
}
