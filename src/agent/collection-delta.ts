import type { Collection, DeviceReport } from '../model/collection.ts';
import type { Finding } from '../model/health.ts';
import type { Reading } from '../model/metric.ts';
import { arePlainEqual } from './plain-equal.ts';

/** A collection as the difference to the one before it: most of what a probe tells is what it told before. */
export interface CollectionDelta {
  /** How many reports the collection has. */
  readonly count: number;
  /** Reports that are new, or differ in more than values and findings. */
  readonly reports: readonly (readonly [report: number, content: DeviceReport])[];
  /** Changed values, three numbers each: place of the report, place of the reading in it, value. */
  readonly values: readonly number[];
  /** Changed values beyond 2^53. */
  readonly largeValues: readonly (readonly [report: number, reading: number, value: bigint])[];
  readonly findings: readonly (readonly [report: number, content: readonly Finding[]])[];
  /** The rest of the collection; absent: as before. */
  readonly rest?: Rest;
}

type Rest = Omit<Collection, 'reports'>;

/** Makes differences, each to the collection encoded before it. */
export class CollectionEncoder {
  #reports: readonly DeviceReport[] = [];
  #rest: Rest | undefined;

  encode({ reports, ...rest }: Collection): CollectionDelta {
    const changed: [number, DeviceReport][] = [];
    const findings: [number, readonly Finding[]][] = [];
    const values = new ChangedValues();
    for (let place = 0; place < reports.length; place += 1) {
      const [before, report] = [this.#reports[place], reports[place] as DeviceReport];
      if (before === report) continue;
      if (before === undefined || !haveSameSeries(before, report)) {
        changed.push([place, report]);
        continue;
      }
      values.compare(place, before.readings, report.readings);
      if (before.findings !== report.findings && !arePlainEqual(before.findings, report.findings)) findings.push([place, report.findings]);
    }
    const isSame = this.#rest !== undefined && arePlainEqual(this.#rest, rest);
    this.#reports = reports;
    this.#rest = rest;
    const delta = { count: reports.length, reports: changed, findings, values: values.small, largeValues: values.large };
    return isSame ? delta : { ...delta, rest };
  }
}

class ChangedValues {
  readonly small: number[] = [];
  readonly large: [number, number, bigint][] = [];

  compare(report: number, before: readonly Reading[], now: readonly Reading[]): void {
    for (let place = 0; place < now.length; place += 1) {
      if (now[place] === before[place]) continue;
      const { value } = now[place] as Reading;
      if (value === (before[place] as Reading).value) continue;
      if (typeof value === 'bigint') this.large.push([report, place, value]);
      else this.small.push(report, place, value);
    }
  }
}

/** Whether two reports are of the same device with the same series in the same order. */
function haveSameSeries(a: DeviceReport, b: DeviceReport): boolean {
  if (a.readings.length !== b.readings.length) return false;
  for (let place = 0; place < a.readings.length; place += 1) {
    const [before, now] = [a.readings[place] as Reading, b.readings[place] as Reading];
    if (before === now) continue;
    if (before.metric !== now.metric || !(before.labels === now.labels || arePlainEqual(before.labels, now.labels))) return false;
  }
  return arePlainEqual(a.device, b.device) && arePlainEqual(a.processes, b.processes);
}

/**
 * Makes collections again of the differences of one encoder, given in order. What did not change is the same object as before:
 * readings, their labels, findings, devices, reports, the collection itself.
 */
export class CollectionDecoder {
  #latest: Collection = { reports: [], problems: [] };

  decode(delta: CollectionDelta): Collection {
    const reports = this.#reports(delta);
    if (delta.rest !== undefined) this.#latest = { reports, ...delta.rest };
    else if (reports !== this.#latest.reports) this.#latest = { ...this.#latest, reports };
    return this.#latest;
  }

  #reports(delta: CollectionDelta): readonly DeviceReport[] {
    const before = this.#latest.reports;
    const { count, values, largeValues } = delta;
    const isSame = count === before.length && delta.reports.length + delta.findings.length + values.length + largeValues.length === 0;
    if (isSame) return before;
    const reports = before.slice(0, count);
    for (const [place, report] of delta.reports) reports[place] = report;
    for (const [place, findings] of delta.findings) reports[place] = { ...(reports[place] as DeviceReport), findings };
    const edited = new Map<number, Reading[]>();
    for (let at = 0; at < values.length; at += 3) {
      edit(reports, edited, values[at] as number, values[at + 1] as number, values[at + 2] as number);
    }
    for (const [report, reading, value] of largeValues) edit(reports, edited, report, reading, value);
    return reports;
  }
}

/** Puts a value into a copy of a report's readings, made at the first value: what was handed out is never changed. */
function edit(reports: DeviceReport[], edited: Map<number, Reading[]>, place: number, reading: number, value: number | bigint): void {
  let readings = edited.get(place);
  if (readings === undefined) {
    const report = reports[place] as DeviceReport;
    readings = report.readings.slice();
    edited.set(place, readings);
    reports[place] = { ...report, readings };
  }
  const { metric, labels } = readings[reading] as Reading;
  readings[reading] = labels === undefined ? { metric, value } : { metric, labels, value };
}
