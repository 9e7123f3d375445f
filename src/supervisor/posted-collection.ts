import { isDeepStrictEqual } from 'node:util';
import type { Collection, DeviceRead, DeviceReport, SideReport } from '../model/collection.ts';
import { areSameFindings, type Finding } from '../model/health.ts';
import type { Reading, Value } from '../model/metric.ts';
import { areSameFields, Readings, type Series, seriesOfOne, type ValueTimes } from '../model/readings.ts';
import { SAME_IDENTITY } from './probe-look.ts';

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
export interface PostedCollection extends Omit<Collection, 'reports'>, PostedColumns {
  /** Undefined: as at the same place in the message before, except the values. */
  readonly reports: readonly (PostedReport | undefined)[];
}

interface PostedColumns {
  readonly values: Float64Array;
  /** Values that are no exact `number`, and their places: place and value, one after the other. Absent without one. */
  readonly exact?: readonly (number | bigint)[];
  /** Stretches of values that an earlier read gave: index of the first, number, and time of that read, one after the other. Absent without one. */
  readonly kept?: readonly number[];
}

/** New reads of some devices of the collection before, as one thread posts them to another. */
export interface PostedReads extends PostedColumns {
  /** The places of the devices in that collection. */
  readonly places: readonly number[];
  readonly reads: readonly PostedSource[];
}

/** All reports of the collection before, with new reads of the devices `ids`. */
export interface ReadAgain {
  readonly reports: readonly DeviceReport<Readings>[];
  readonly ids: readonly string[];
}

/** Works in the probe's thread. */
export class CollectionSender {
  /**
   * What was posted at each place. It keeps the first objects of those that say the same: a probe makes new ones at each read, which the
   * garbage collector frees cheaply only while nobody keeps them until the next read.
   */
  #posted: readonly DeviceReport[] = [];
  /** Some devices have findings of others. */
  #isShared = false;

  encode({ reports, ...rest }: Collection): PostedCollection {
    const column = new Column(countOf(reports));
    const posted: (PostedReport | undefined)[] = [];
    this.#posted = reports.map((report, at) => {
      const before = this.#posted[at];
      const { device, read, outOfBand, faults } = report;
      if (read !== undefined) column.add(read.readings);
      if (outOfBand !== undefined) column.add(outOfBand.readings);
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
    this.#isShared = rest.problems.some(({ code }) => code === SAME_IDENTITY);
    return { ...rest, reports: posted, ...column.posted };
  }

  /** Undefined when the collection before has no read of one of the devices, or more than the reads of a device depends on them. */
  encodeReads(reports: readonly DeviceReport[] | undefined): PostedReads | undefined {
    if (reports === undefined || this.#isShared) return undefined;
    const posted = [...this.#posted];
    const column = new Column(reports.reduce((sum, { read }) => sum + (read?.readings.length ?? 0), 0));
    const [places, reads]: [number[], PostedSource[]] = [[], []];
    for (const { device, read } of reports) {
      const isOfDevice = (one: DeviceReport): boolean => one.device.id === device.id;
      const at = posted.findIndex(isOfDevice);
      const before = posted[at];
      if (read === undefined || before?.read === undefined || !areSameDevices(before.device, device)) return undefined;
      if (at !== posted.findLastIndex(isOfDevice)) return undefined;
      const changes = changesOf(read, before.read);
      column.add(read.readings);
      places.push(at);
      reads.push(changes);
      posted[at] = { ...before, read: withChanges(read, before.read, changes) };
    }
    this.#posted = posted;
    return { places, reads, ...column.posted };
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

/** The values of a message while it is made. */
class Column {
  readonly values: Float64Array;
  readonly exact: (number | bigint)[] = [];
  readonly kept: number[] = [];
  #end = 0;

  constructor(length: number) {
    this.values = new Float64Array(length);
  }

  get posted(): PostedColumns {
    const { values, exact, kept } = this;
    return { values, ...(exact.length === 0 ? {} : { exact }), ...(kept.length === 0 ? {} : { kept }) };
  }

  /** The values of one source stand together, so that the stretches of {@link PostedCollection.kept} are few. */
  add(readings: readonly Reading[]): void {
    const { values, kept } = this;
    for (let at = 0; at < readings.length; at += 1) {
      const { value, readMs } = readings[at] as Reading;
      const place = this.#end;
      if (readMs !== undefined) {
        const isNext = readMs === kept.at(-1) && (kept.at(-3) as number) + (kept.at(-2) as number) === place;
        if (isNext) kept[kept.length - 2] = (kept.at(-2) as number) + 1;
        else kept.push(place, 1, readMs);
      }
      if (typeof value === 'number') values[place] = value;
      else this.exact.push(place, value);
      this.#end += 1;
    }
  }
}

const countOf = (reports: readonly DeviceReport[]): number =>
  reports.reduce((sum, { read, outOfBand }) => sum + (read?.readings.length ?? 0) + (outOfBand?.readings.length ?? 0), 0);

function changesOf(source: DeviceRead, before: SideReport | undefined): PostedSource {
  const { readings, findings } = source;
  const isSameRest = before !== undefined && areSameRest(source, before);
  return {
    ...(before !== undefined && areSameSeries(before.readings, readings) ? {} : { series: readings.map(seriesOfOne) }),
    ...(areSameFindings(before?.findings, findings) ? {} : { findings }),
    ...(isSameRest ? {} : { rest: restOf(source) }),
  };
}

function restOf({ readings: _, findings: __, ...rest }: DeviceRead<unknown>): Rest {
  return rest;
}

function areSameRest(a: DeviceRead & SideReport, b: DeviceRead & SideReport): boolean {
  if (a.areFaultsRead !== b.areFaultsRead) return false;
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
 * object as in the collection before: devices, series, readings, findings, and whole reports.
 */
export class CollectionReceiver {
  #reports: readonly DeviceReport<Readings>[] = [];

  /** Throws when a part was never posted. */
  decode(message: PostedCollection): Collection<Readings> {
    const { reports, values: _, exact: __, kept: ___, ...rest } = message;
    const posted = postedValues(message);
    this.#reports = reports.map((report, at) => reportOf(report, this.#reports[at], posted));
    checkAllTaken(posted);
    return { ...rest, reports: this.#reports };
  }

  decodeReads({ places, reads, ...columns }: PostedReads): ReadAgain {
    const posted = postedValues(columns);
    const reports = [...this.#reports];
    for (const [n, place] of places.entries()) {
      const before = reports[place] as DeviceReport<Readings>;
      const read = sourceOf(reads[n], before.read, posted);
      if (read !== before.read) reports[place] = { ...before, read };
    }
    checkAllTaken(posted);
    this.#reports = reports;
    return { reports, ids: places.map((place) => (reports[place] as DeviceReport<Readings>).device.id) };
  }
}

/** The values that are not yet taken begin at `at`, and what belongs to them in the lists beside them. */
interface PostedValues extends Required<PostedColumns> {
  at: number;
  exactAt: number;
  keptAt: number;
}

const postedValues = ({ values, exact = [], kept = [] }: PostedColumns): PostedValues => {
  return { values, exact, kept, at: 0, exactAt: 0, keptAt: 0 };
};

function checkAllTaken({ values, at }: PostedValues): void {
  if (at !== values.length) throw new Error(`of ${values.length} values, ${values.length - at} belong to no posted series`);
}

function reportOf(
  posted: PostedReport | undefined,
  before: DeviceReport<Readings> | undefined,
  values: PostedValues,
): DeviceReport<Readings> {
  const device = posted?.device ?? before?.device;
  if (device === undefined) throw new Error('a device was never posted');
  const hasRead = posted === undefined ? before?.read !== undefined : posted.read !== undefined;
  const hasOutOfBand = posted === undefined ? before?.outOfBand !== undefined : posted.outOfBand !== undefined;
  const read = hasRead ? sourceOf(posted?.read, before?.read, values) : undefined;
  const outOfBand = hasOutOfBand ? sourceOf(posted?.outOfBand, before?.outOfBand, values) : undefined;
  if (posted === undefined && before !== undefined && read === before.read && outOfBand === before.outOfBand) return before;
  return {
    device,
    ...(read === undefined ? {} : { read }),
    ...(outOfBand === undefined ? {} : { outOfBand }),
    ...(posted?.faults === undefined ? {} : { faults: posted.faults }),
  };
}

type Read = DeviceRead<Readings>;

function sourceOf(posted: PostedSource = {}, before: Read | undefined, values: PostedValues): Read {
  const series = posted.series ?? before?.readings.series;
  const findings = posted.findings ?? before?.findings;
  const rest = posted.rest ?? (before && restOf(before));
  if (series === undefined || findings === undefined || rest === undefined) throw new Error('the series of a device were never posted');
  const readings = readingsOf(series, before?.readings, values);
  const isSame = readings === before?.readings && findings === before.findings && posted.rest === undefined;
  return isSame ? before : { ...rest, readings, findings };
}

/** The next values of the message; the readings of before while no value and no time changed. */
function readingsOf(series: readonly Series[], before: Readings | undefined, posted: PostedValues): Readings {
  const first = posted.at;
  const end = first + series.length;
  if (end > posted.values.length) throw new Error('values of a device were never posted');
  posted.at = end;
  const times = timesOf(first, end, posted);
  const exact: Value[] | undefined =
    (posted.exact[posted.exactAt] as number) < end ? Array.from(posted.values.subarray(first, end)) : undefined;
  for (; (posted.exact[posted.exactAt] as number) < end; posted.exactAt += 2)
    (exact as Value[])[(posted.exact[posted.exactAt] as number) - first] = posted.exact[posted.exactAt + 1] as bigint;
  const isSame = before !== undefined && before.series === series && areSame(before.times, times, 0, series.length);
  if (
    isSame &&
    (exact === undefined ? areSame(before.values, posted.values, first, series.length) : areSame(before.values, exact, 0, series.length))
  )
    return before;
  // A copy, so that a device which seldom changes does not keep the values of all others.
  return new Readings(series, exact ?? posted.values.slice(first, end), times);
}

/** Whether both columns hold the same. `from`: place of the first value in the second one. */
function areSame(a: ArrayLike<unknown> | undefined, b: ArrayLike<unknown> | undefined, from: number, length: number): boolean {
  if (a === undefined || b === undefined) return a === b;
  for (let at = 0; at < length; at += 1) if (a[at] !== b[from + at]) return false;
  return true;
}

/** Times of the values from `first` to `end`; undefined when the read of the device gave all of them. */
function timesOf(first: number, end: number, posted: PostedValues): ValueTimes {
  const { kept } = posted;
  let times: (number | undefined)[] | undefined;
  while ((kept[posted.keptAt] as number) < end) {
    const [begin = 0, length = 0, readMs] = kept.slice(posted.keptAt, posted.keptAt + 3);
    times ??= new Array<undefined>(end - first).fill(undefined);
    times.fill(readMs, Math.max(first, begin) - first, Math.min(end, begin + length) - first);
    // A stretch can go on in the next source.
    if (begin + length > end) break;
    posted.keptAt += 3;
  }
  return times;
}
