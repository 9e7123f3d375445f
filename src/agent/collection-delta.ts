import type { Collection, DeviceReport } from '../model/collection.ts';
import type { Finding } from '../model/health.ts';
import type { SeriesId, Value } from '../model/metric.ts';
import { Readings } from '../model/readings.ts';
import { arePlainEqual } from './plain-equal.ts';
import type { SharedBoard } from './shared-board.ts';

/** What of a collection differs from the one before it, besides the values that stand on the board. Plain data. */
export interface CollectionDelta {
  /** How many reports the collection has. */
  readonly count: number;
  /** Reports that are new, differ in more than values and findings, or of which not all changed values fit on the board. */
  readonly reports: readonly (readonly [report: number, content: PlainReport])[];
  readonly findings: readonly (readonly [report: number, content: readonly Finding[]])[];
  /** The rest of the collection; absent: as before. */
  readonly rest?: Rest;
}

type Rest = Omit<Collection, 'reports'>;
type PlainReport = Omit<DeviceReport, 'readings'> & { readonly readings: Pick<Readings, 'series' | 'values'> };

/** Makes differences, each to the collection encoded before it: most of what a probe tells is what it told before. */
export class CollectionEncoder {
  readonly #board: SharedBoard;
  #latest: Collection | undefined;

  constructor(board: SharedBoard) {
    this.#board = board;
  }

  /** Writes changed values on the board. Undefined when that is all. */
  encode(collection: Collection): CollectionDelta | undefined {
    const { reports } = collection;
    const before = this.#latest?.reports ?? [];
    const changed: [number, DeviceReport][] = [];
    const findings: [number, readonly Finding[]][] = [];
    this.#board.count = 0;
    for (let place = 0; place < reports.length; place += 1) {
      const [old, report] = [before[place], reports[place] as DeviceReport];
      if (old === report) continue;
      if (old === undefined || !isSameBut(old, report) || !this.#tell(place, old.readings.values, report.readings.values)) {
        changed.push([place, report]);
      } else if (old.findings !== report.findings && !arePlainEqual(old.findings, report.findings)) {
        findings.push([place, report.findings]);
      }
    }
    const isSameRest = this.#latest !== undefined && haveSameRest(this.#latest, collection);
    this.#latest = collection;
    if (isSameRest && reports.length === before.length && changed.length + findings.length === 0) return undefined;
    const delta = { count: reports.length, reports: changed, findings };
    if (isSameRest) return delta;
    const { reports: _, ...rest } = collection;
    return { ...delta, rest };
  }

  /** False when they did not all fit: then none of them is told. */
  #tell(report: number, before: readonly Value[], now: readonly Value[]): boolean {
    if (before === now) return true;
    const { count } = this.#board;
    for (let place = 0; place < now.length; place += 1) {
      const value = now[place] as Value;
      if (value === before[place] || this.#board.add(report, place, value)) continue;
      this.#board.count = count;
      return false;
    }
    return true;
  }
}

/**
 * The type itself when these are the names of all its members, else none that anything fits: what is spelled out below, since it is done
 * at each refresh and copying any object takes twice the time, does not compile when a member is left out that would be lost on the way.
 */
type Spelled<T, Names extends keyof T> = [Exclude<keyof T, Names>] extends [never] ? T : never;
type SpelledCollection = Spelled<Collection, 'reports' | 'problems' | 'complete' | 'source'>;
type SpelledReport = Spelled<DeviceReport, 'device' | 'readings' | 'findings' | 'processes'>;

/** Whatever their reports. */
function haveSameRest(a: SpelledCollection, b: SpelledCollection): boolean {
  return a.complete === b.complete && a.source === b.source && arePlainEqual(a.problems, b.problems);
}

function withReports({ problems, complete, source }: SpelledCollection, reports: readonly DeviceReport[]): Collection {
  if (complete === undefined) return source === undefined ? { reports, problems } : { reports, problems, source };
  return source === undefined ? { reports, problems, complete } : { reports, problems, complete, source };
}

/** Whether two reports are of the same device with the same series in the same order, whatever their values and findings. */
function isSameBut(a: SpelledReport, b: SpelledReport): boolean {
  return (
    haveSameSeries(a.readings.series, b.readings.series) && arePlainEqual(a.device, b.device) && arePlainEqual(a.processes, b.processes)
  );
}

function withReadings({ device, findings, processes }: SpelledReport, readings: Readings): DeviceReport {
  return processes === undefined ? { device, readings, findings } : { device, readings, findings, processes };
}

function haveSameSeries(a: readonly SeriesId[], b: readonly SeriesId[]): boolean {
  if (a === b) return true;
  if (a.length !== b.length) return false;
  for (let place = 0; place < a.length; place += 1) {
    const [one, other] = [a[place] as SeriesId, b[place] as SeriesId];
    if (one === other) continue;
    if (one.metric !== other.metric || !(one.labels === other.labels || arePlainEqual(one.labels, other.labels))) return false;
  }
  return true;
}

/**
 * Makes collections again of the differences of one encoder, given in order. What did not change is the same object as before:
 * series, their labels, findings, devices, reports, the collection itself.
 */
export class CollectionDecoder {
  readonly #board: SharedBoard;
  #latest: Collection = { reports: [], problems: [] };

  constructor(board: SharedBoard) {
    this.#board = board;
  }

  decode(delta: CollectionDelta | undefined): Collection {
    const reports = this.#reports(delta);
    if (delta?.rest !== undefined) this.#latest = { reports, ...delta.rest };
    else if (reports !== this.#latest.reports) this.#latest = withReports(this.#latest, reports);
    return this.#latest;
  }

  #reports(delta: CollectionDelta | undefined): readonly DeviceReport[] {
    const before = this.#latest.reports;
    const isSame = delta === undefined || (delta.count === before.length && delta.reports.length + delta.findings.length === 0);
    if (isSame && this.#board.count === 0) return before;
    const reports = before.slice(0, delta?.count);
    for (const [place, { readings, ...report }] of delta?.reports ?? []) {
      reports[place] = { ...report, readings: new Readings(readings.series, readings.values) };
    }
    for (const [place, findings] of delta?.findings ?? []) reports[place] = { ...(reports[place] as DeviceReport), findings };
    this.#putValues(reports);
    return reports;
  }

  /** Puts values into copies: what was handed out is never changed. Those of one report stand together. */
  #putValues(reports: DeviceReport[]): void {
    const board = this.#board;
    let place = -1;
    let values: Value[] = [];
    for (let n = 0; n < board.count; n += 1) {
      if (board.reportOf(n) !== place) {
        place = board.reportOf(n);
        const report = reports[place] as DeviceReport;
        values = report.readings.values.slice();
        reports[place] = withReadings(report, new Readings(report.readings.series, values));
      }
      values[board.readingOf(n)] = board.valueOf(n);
    }
  }
}
