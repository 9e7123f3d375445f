import type { Host } from '../../host/host.ts';
import type { KmsgRecord } from '../../host/kernel-log/record.ts';
import type { DeviceReport, Problem } from '../../model/collection.ts';
import { type Fault, isAfter } from '../../model/fault.ts';
import type { ConditionSpec, Finding } from '../../model/health.ts';
import type { Labels, MetricSpec, Reading } from '../../model/metric.ts';
import { type Growing, raiseGrowth } from './finding.ts';
import { type DatedRecord, KernelLog } from './kernel-log.ts';

/**
 * A line of a driver and what it means. A family declares its rows, and the first one that fits a record decides. Only a record of the
 * kernel counts. It belongs to the device that the kernel added to it (`dev_printk`), which no process can imitate.
 */
export interface LogRow {
  /** Unique in the family. */
  readonly name: string;
  readonly drivers: readonly string[];
  /** Form of the text behind `<driver> <device>: `. Its groups go to the functions below. */
  readonly text: RegExp;
  /**
   * The driver prints the line without a device: `text` is the form of all of it, and its first group the PCI address. Only for a form that
   * begins with more fixed bytes than the name of a process can have, 15.
   */
  readonly isWithoutDevice?: true;
  /** Findings from this line on, until another line changes the condition. */
  readonly findings?: (groups: readonly string[]) => readonly Finding[];
  /** Counter of these lines since the machine booted. */
  readonly counts?: LogCounter;
  /** The line is a fault of its own, for the containers that hold the device. */
  readonly fault?: (groups: readonly string[]) => Pick<Fault, 'type' | 'code' | 'reason' | 'severity' | 'remedy' | 'message'>;
}

export interface LogCounter {
  readonly metric: MetricSpec;
  readonly labels?: Labels;
  /** Condition that judges the growth of the counter. `what`: what is counted. */
  readonly growth?: { readonly condition: Growing; readonly what: string };
}

/** A record that a row explains. */
export interface LogLine {
  readonly row: LogRow;
  /** PCI address of the device. */
  readonly address: string;
  readonly groups: readonly string[];
}

/** Parses one record; undefined for one that means nothing to the rows. */
export function logLineOf(
  rows: readonly LogRow[],
  { origin, text, subsystem, device }: Pick<KmsgRecord, 'origin' | 'text' | 'subsystem' | 'device'>,
): LogLine | undefined {
  if (origin !== 'kernel') return undefined;
  const told = subsystem === 'pci' && device?.startsWith('+pci:') === true ? device.slice('+pci:'.length) : undefined;
  for (const row of rows) {
    if (row.isWithoutDevice === true) {
      const [, address, ...groups] = row.text.exec(text) ?? [];
      if (address !== undefined) return { row, address, groups };
      continue;
    }
    const begin = row.drivers.map((driver) => `${driver} ${told}: `).find((each) => told !== undefined && text.startsWith(each));
    const groups = begin === undefined ? null : row.text.exec(text.slice(begin.length));
    if (told !== undefined && groups !== null) return { row, address: told, groups: groups.slice(1) };
  }
  return undefined;
}

/** What the log reported about one device since the machine booted, or since its oldest record. */
export interface LogState {
  /** Keyed by condition. */
  readonly findings: ReadonlyMap<string, Finding>;
  /** Number of lines, keyed by row. */
  readonly counts: ReadonlyMap<string, number>;
}

export const NOTHING_LOGGED: LogState = { findings: new Map(), counts: new Map() };

/** Adds one line. Pure. */
export function withLine({ findings, counts }: LogState, { row, groups }: LogLine): LogState {
  const told = row.findings?.(groups) ?? [];
  return {
    findings: told.length === 0 ? findings : new Map([...findings, ...told.map((finding) => [finding.type, finding] as const)]),
    counts: row.counts === undefined ? counts : new Map([...counts, [row.name, (counts.get(row.name) ?? 0) + 1]]),
  };
}

/** Forgets that all was well, because lines are lost. What was wrong stays. Pure. */
export const afterGap = ({ findings, counts }: LogState): LogState => ({
  findings: new Map([...findings].filter(([, { status }]) => status === true)),
  counts,
});

/** What the log reports about a part of a device: a fault of the device is also a fault of the part, and the counts belong to the device. Pure. */
export const ofPart = (own: LogState, device: LogState): LogState => ({
  findings: new Map([...own.findings, ...afterGap(device).findings]),
  counts: new Map(),
});

/** Report on one device; undefined when the log reports nothing. Findings in the order of `conditions`. `counts`: whether they are known. Pure. */
export function logReport(
  rows: readonly LogRow[],
  conditions: readonly ConditionSpec[],
  state: LogState,
  hasCounts: boolean,
): DeviceReport['outOfBand'] {
  const counters = hasCounts
    ? rows.flatMap(({ name, counts }) => (counts === undefined ? [] : [{ ...counts, value: state.counts.get(name) ?? 0 }]))
    : [];
  const findings = [
    ...conditions.flatMap(({ type }) => state.findings.get(type) ?? []),
    ...counters.flatMap(({ growth, value }) =>
      growth === undefined ? [] : raiseGrowth(growth.condition, value, `${growth.what}: ${value}`),
    ),
  ];
  if (findings.length === 0) return undefined;
  const readings = counters.map(
    ({ metric, labels, value }): Reading => ({ metric: metric.name, ...(labels !== undefined && { labels }), value }),
  );
  return { findings, readings };
}

/** Devices that are remembered. */
const MOST_DEVICES = 256;
/** A fault stays in the collections for this time, so that at least one snapshot takes it. */
const REPORTED_MS = 60_000;
/** Faults of that time. Further ones of a row and device are repeats of its latest one. */
const MOST_FAULTS = 256;

/** Follows the log for a family that only declares rows. */
export class RowLog {
  readonly #rows: readonly LogRow[];
  readonly #conditions: readonly ConditionSpec[];
  readonly #host: Host;
  readonly #log: KernelLog;
  readonly #states = new Map<string, LogState>();
  #faults: { readonly address: string; readonly atMs: number; fault: Fault }[] = [];

  constructor(host: Host, rows: readonly LogRow[], conditions: readonly ConditionSpec[]) {
    this.#host = host;
    this.#rows = rows;
    this.#conditions = conditions;
    this.#log = new KernelLog(host, { take: (record, isBehindGap) => this.#take(record, isBehindGap) }, host.kmsg);
  }

  poll(): void {
    this.#log.poll();
    const { nowMs } = this.#log;
    this.#faults = this.#faults.filter(({ atMs }) => nowMs - atMs < REPORTED_MS);
  }

  watch(wake: () => void): () => void {
    return this.#log.watch(wake);
  }

  close(): void {
    this.#log.close();
  }

  get problems(): readonly Problem[] {
    return this.#log.problems;
  }

  /** Adds what the log reports of the device. While it cannot be read, that is only what is wrong. A virtual function has the faults of its card. */
  withLog(report: DeviceReport): DeviceReport {
    const { pciAddress, physicalFunction } = report.device;
    const { isReadable } = this.#log;
    const told = (address = ''): LogState => {
      const state = this.#states.get(address) ?? NOTHING_LOGGED;
      return isReadable ? state : afterGap(state);
    };
    const isPart = physicalFunction !== undefined;
    const state = isPart ? ofPart(told(pciAddress), told(physicalFunction)) : told(pciAddress);
    const outOfBand = logReport(this.#rows, this.#conditions, state, isReadable && !isPart);
    const faults = this.#faults.filter(({ address }) => address === pciAddress).map(({ fault }) => fault);
    return { ...report, ...(outOfBand !== undefined && { outOfBand }), ...(faults.length > 0 && { faults }) };
  }

  #take(record: DatedRecord, isBehindGap: boolean): boolean {
    if (isBehindGap) for (const [address, state] of this.#states) this.#states.set(address, afterGap(state));
    const line = logLineOf(this.#rows, record);
    if (line === undefined || (this.#states.size >= MOST_DEVICES && !this.#states.has(line.address))) return false;
    this.#states.set(line.address, withLine(this.#states.get(line.address) ?? NOTHING_LOGGED, line));
    this.#addFault(line, record);
    return true;
  }

  #addFault({ row: { fault, counts }, address, groups }: LogLine, { seq, timeUsec, wallMs, text }: DatedRecord): void {
    const place = { seq, usec: timeUsec };
    if (fault === undefined || counts === undefined || !isAfter(place, this.#host.counted)) return;
    const { nowMs } = this.#log;
    const told = fault(groups);
    const same = this.#faults.findLast((one) => one.address === address && one.fault.code === told.code);
    const times = wallMs === undefined ? {} : { timeMs: wallMs, lastMs: wallMs };
    if (this.#faults.length >= MOST_FAULTS) {
      if (same !== undefined)
        same.fault = {
          ...same.fault,
          last: place,
          count: same.fault.count + 1,
          isRepeat: true,
          ...(wallMs !== undefined && { lastMs: wallMs }),
        };
      return;
    }
    const counter = { metric: counts.metric.name, labels: counts.labels ?? {} };
    this.#faults.push({
      address,
      atMs: nowMs,
      fault: { witness: 'log', epoch: '', first: place, last: place, ...told, ...times, count: 1, lines: [text], counter },
    });
  }
}
