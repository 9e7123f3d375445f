import type { Host } from '../../host/host.ts';
import { kmsgForgeable, kmsgLost } from '../../host/kernel-log/problems.ts';
import { isPciAddress } from '../../host/pci/pci.ts';
import type { Collection, DeviceReport, Problem } from '../../model/collection.ts';
import { defined } from '../../model/defined.ts';
import type { Device } from '../../model/device.ts';
import { type Fault, type FaultProcess, isAfter } from '../../model/fault.ts';
import type { ConditionSpec, Finding } from '../../model/health.ts';
import type { Reading } from '../../model/metric.ts';
import { StepCache } from '../../model/step-cache.ts';
import { raiseGrowth } from './finding.ts';
import { type DatedRecord, KernelLog, type LogReach } from './kernel-log.ts';
import { ListedDevices } from './listed-devices.ts';
import { counterOf, type LogLine, type LogPlaces, type LogRow, logLineOf, meaningOf, sysfsPlaces } from './log-row.ts';
import { CperSections } from './pcie/log.ts';
import { ProcessFactsReader } from './process-facts.ts';
import { printsForProcesses } from './repeating-drivers.ts';

/** What the log reported about one device since the machine booted, or since its oldest record. */
export interface LogState {
  /** Keyed by condition and instance. */
  readonly findings: ReadonlyMap<string, Finding>;
  /** Number of lines, keyed by row. */
  readonly counts: ReadonlyMap<string, number>;
  /** Monotonic clock of the latest lines that are judged by their rate, the oldest first, keyed by row. */
  readonly times: ReadonlyMap<string, readonly number[]>;
}

export const NOTHING_LOGGED: LogState = { findings: new Map(), counts: new Map(), times: new Map() };

/** Lines of one row whose times are remembered. */
const MOST_TIMES = 64;

/** Adds one line. `atMs`: monotonic clock; undefined when unknown. Pure. */
export function withLine({ findings, counts, times }: LogState, line: LogLine, atMs?: number): LogState {
  const { row } = line;
  const { raises, ends = [] } = row;
  const next = new Map(findings);
  const message = meaningOf(line);
  for (const { type } of ends) {
    for (const key of [...next.keys()]) if (key.startsWith(`${type}/`)) next.delete(key);
    next.set(`${type}/`, { type, reason: 'Ended', status: false, message });
  }
  if (raises !== undefined) {
    const { condition, instance: part, severity, remedy } = raises;
    const instance = part === undefined ? undefined : meaningOf(line, part);
    next.set(`${condition.type}/${instance ?? ''}`, {
      ...{ type: condition.type, reason: 'Reported', status: true, message },
      ...(instance !== undefined && { instance }),
      ...(severity !== undefined && { severity }),
      ...(remedy !== undefined && { remedy }),
    });
    // The oldest parts go first: a line can name any number of them. One of them stays, so that the condition holds.
    const parts = [...next.keys()].filter((key) => key.startsWith(`${condition.type}/`));
    for (const key of parts.slice(0, Math.max(0, parts.length - MOST_PARTS))) next.delete(key);
  }
  return {
    findings: raises === undefined && ends.length === 0 ? findings : next,
    counts: counterOf(row) === undefined ? counts : new Map([...counts, [row.name, (counts.get(row.name) ?? 0) + 1]]),
    times:
      row.repeats === undefined || atMs === undefined
        ? times
        : new Map([...times, [row.name, [...(times.get(row.name) ?? []), atMs].slice(-MOST_TIMES)]]),
  };
}

/** Findings of one condition of a device that are remembered. */
const MOST_PARTS = 64;

/** Forgets that all was well, because lines are lost. What was wrong stays. Pure. */
export const afterGap = ({ findings, ...counted }: LogState): LogState => ({
  findings: new Map([...findings].filter(([, { status }]) => status === true)),
  ...counted,
});

/** What the log reports about a part of a device: a fault of the device is also a fault of the part, and ends with it. Pure. */
export const ofPart = (own: LogState, device: LogState): LogState => ({
  ...own,
  findings: new Map([...device.findings, ...own.findings, ...afterGap(device).findings]),
});

/** Whose counts a report has. */
interface ReportScope {
  /** The lines of drivers are those of the device, not of the one that it is a part of. */
  readonly countsDriverLines: boolean;
  /** The lines about the PCI function are, too. */
  readonly countsFunctionLines: boolean;
  /** That of the device; absent while it is not known. */
  readonly driver?: string | undefined;
  /** What the log reports about the PCIe ports above the device, by address. */
  readonly above?: readonly (readonly [port: string, state: LogState])[];
  /** Lines of the row may have been dropped, so the absence of a line proves nothing. */
  isDoubtful?(row: LogRow): boolean;
}

/**
 * Report on one device; undefined when the log reports nothing. Findings in the order of `conditions`. A condition of the rows without a
 * finding does not hold when the log is whole, and is unknown otherwise. Pure.
 */
export function logReport(
  rows: readonly LogRow[],
  conditions: readonly ConditionSpec[],
  { findings: told, counts, times }: LogState,
  reach: LogReach,
  { countsDriverLines, countsFunctionLines, driver, above = [], isDoubtful = () => false }: ReportScope,
): DeviceReport['outOfBand'] {
  const ofState = conditions.flatMap(({ type }): readonly Finding[] => {
    const raising = rows.filter(({ raises }) => raises?.condition.type === type);
    if (raising.length === 0) return [];
    const isCertain = !raising.some(isDoubtful);
    const own = [...told].filter(([key, { status }]) => key.startsWith(`${type}/`) && (isCertain || status === true));
    return own.length > 0 ? own.map(([, finding]) => finding) : [unreported(type, reach, isCertain)];
  });
  // A part has its own driver, whose lines have its own address: without one it has no counter, because parts are many.
  const counted =
    reach === 'unread'
      ? []
      : rows.filter((row) => (countsDriverLines || row.pci !== undefined || counts.has(row.name)) && counterOf(row) !== undefined);
  const growing = new Map(counted.flatMap(({ repeats }) => (repeats === undefined ? [] : [[repeats.type, repeats] as const])));
  const ofGrowth = [...growing.values()].flatMap((condition) => {
    const own = counted.filter(({ repeats }) => repeats?.type === condition.type);
    const of = (isPort: boolean, state: ReadonlyMap<string, number>): number =>
      own.reduce((total, { name, pci }) => total + ((pci === 'below') === isPort ? (state.get(name) ?? 0) : 0), 0);
    const ports = above.map(([port, state]) => [port, of(true, state.counts)] as const).filter(([, count]) => count > 0);
    const sum = ports.reduce((total, [, count]) => total + count, of(false, counts));
    const where = ports.map(([port, count]) => `; of port ${port} above: ${count}`).join('');
    const message = `${own.map(({ name }) => name.replaceAll('-', ' ')).join(', ')}: ${sum}${where}`;
    const grewMs = own
      .flatMap(({ name, pci }) => (pci === 'below' ? above.flatMap(([, state]) => state.times.get(name) ?? []) : (times.get(name) ?? [])))
      .sort((a, b) => a - b);
    const more = { ...(own.some(isDoubtful) && { ceiling: sum }), ...(grewMs.length > 0 && { grewMs }) };
    return raiseGrowth(condition, sum, message).map((finding) => ({ ...finding, ...more }));
  });
  const findings = [...ofState, ...ofGrowth];
  // A line about a port, or about a function with several devices, would be in many series.
  const readings = counted
    .filter(({ pci, fault }) => pci === undefined || (countsFunctionLines && fault !== undefined))
    .filter((row) => !isDoubtful(row))
    .filter(({ name, boundTo }) => boundTo === undefined || driver === undefined || boundTo.includes(driver) || counts.has(name))
    .map((row): Reading => {
      const { metric, labels } = counterOf(row) as NonNullable<LogRow['counts']>;
      return { metric: metric.name, ...(labels !== undefined && { labels }), value: counts.get(row.name) ?? 0 };
    });
  return findings.length === 0 && readings.length === 0 ? undefined : { findings, readings };
}

function unreported(type: string, reach: LogReach, isCertain: boolean): Finding {
  if (reach === 'whole' && isCertain) {
    return { type, reason: 'NotReported', status: false, message: 'the kernel log has no such line since the machine booted' };
  }
  const lack = isCertain ? 'the kernel log has lost its oldest lines' : 'lines of the kernel log are not taken';
  const message = reach === 'unread' ? 'the kernel log is not read' : lack;
  return { type, reason: 'LogUnread', status: 'unknown', message };
}

/** Words of a process may be an event for information, never more. A driver that prints with its device prints its own words. */
const decides = ({ withoutDevice, raises, ends, repeats, fault }: LogRow): boolean =>
  withoutDevice !== undefined && (raises !== undefined || ends !== undefined || repeats !== undefined || fault?.severity !== 'info');

const isNoise = (row: LogRow): boolean => row.raises === undefined && row.ends === undefined && counterOf(row) === undefined;

/** Devices, and ports above them, that are remembered. Each virtual function of an adapter can have lines. */
const MOST_DEVICES = 4_096;
/** A fault stays in the collections for this time, so that at least one snapshot takes it. */
const REPORTED_MS = 60_000;
/** Faults of that time. Further ones of a row and device are one repeat of its latest one in each collection. */
const MOST_FAULTS = 256;
/** With those repeats. */
const MOST_WITH_REPEATS = 512;

/** Whether a line of the row can be about the device. */
const isAbout = ({ kinds, pci }: LogRow, { kind, pciAddress = '' }: Device): boolean =>
  (kinds?.includes(kind) ?? true) && (pci === undefined || pciAddress !== '');

/** What the log reports by several names of one device. */
const together = ([first = NOTHING_LOGGED, ...others]: readonly LogState[]): LogState =>
  others.reduce(
    (sum, one) => ({
      findings: new Map([...sum.findings, ...one.findings]),
      counts: new Map([...sum.counts, ...one.counts]),
      times: new Map([...sum.times, ...one.times]),
    }),
    first,
  );

/** The first reports are of `listed` devices, the others of devices that left the list. */
export function partedFrom(all: readonly DeviceReport[], listed: number): Pick<Collection, 'reports' | 'left'> {
  const left = all.slice(listed).map(({ device, outOfBand, faults }) => {
    const { findings = [] } = outOfBand ?? {};
    return { device, outOfBand: { readings: [], findings }, ...defined({ faults }) };
  });
  return { reports: all.slice(0, listed), ...(left.length > 0 && { left }) };
}

/** Follows the log for a family that only declares rows, or takes the records of one that follows it itself. */
export class RowLog {
  readonly #rows: readonly LogRow[];
  readonly #conditions: readonly ConditionSpec[];
  readonly #host: Host;
  readonly #log: KernelLog;
  readonly #processes: ProcessFactsReader;
  readonly #states = new Map<string, LogState>();
  /** A line was dropped, because too many devices have lines. */
  #isFull = false;
  /** Lines without a device may be forged, now or since the start. Those that decide a condition are dropped. */
  #isForgeable = false;
  readonly #sections = new CperSections();
  readonly #reports = new StepCache<DeviceReport['outOfBand']>();
  /** Addresses, or ids, of known devices by the names that drivers print. */
  readonly #known = new Map<string, string>();
  readonly #places: LogPlaces;
  readonly #devices: ListedDevices;
  /** `isTold`: a collection has it, so that it does not change any more. */
  #faults: { readonly address: string; readonly atMs: number; readonly row: LogRow; fault: Fault; isTold: boolean }[] = [];

  /** `log`: of a family that gives the records to {@link take}. */
  constructor(host: Host, rows: readonly LogRow[], conditions: readonly ConditionSpec[], log?: KernelLog) {
    this.#host = host;
    this.#rows = rows;
    this.#conditions = conditions;
    this.#processes = new ProcessFactsReader(host.proc);
    this.#log = log ?? new KernelLog(host, this, host.kmsg);
    this.#places = sysfsPlaces(host.sys, this.#known);
    this.#devices = new ListedDevices(host.known);
  }

  poll(): void {
    this.#processes.renew();
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

  /** Reads new records, before the collection of these devices is complete. */
  follow(devices: readonly Device[]): void {
    for (const device of devices) this.#know(device);
    this.poll();
  }

  /** Whether a line raised the condition for the device at an address, and none ended it. */
  holds(address: string, { type }: Pick<ConditionSpec, 'type'>): boolean {
    return this.#states.get(address)?.findings.get(`${type}/`)?.status === true;
  }

  get reach(): LogReach {
    return this.#log.reach;
  }

  /** A fact that is newer than its line ends a condition of the device at an address. */
  end(address: string, { type }: Pick<ConditionSpec, 'type'>, message: string): void {
    const { findings, ...counted } = this.#states.get(address) ?? NOTHING_LOGGED;
    const ended: Finding = { type, reason: 'Ended', status: false, message };
    this.#states.set(address, { ...counted, findings: new Map([...findings, [`${type}/`, ended]]) });
  }

  /** Number of lines of a row about the device at an address, of a row whose lines are counted. Reads new records first. */
  linesOf(address: string, row: string): number {
    this.poll();
    return this.#states.get(address)?.counts.get(row) ?? 0;
  }

  get problems(): readonly Problem[] {
    const tooMany = { code: kmsgLost.code, message: `the kernel log has lines about more than ${MOST_DEVICES} devices` };
    const forgeable = { code: kmsgForgeable.code, message: 'a loaded driver prints any text for programs' };
    const isDoubted = this.#isForgeable && this.#rows.some(decides);
    return [...this.#log.problems, ...(this.#isFull ? [tooMany] : []), ...(isDoubted ? [forgeable] : [])];
  }

  /**
   * Adds what the log reports of each device. A device that was not read has a report, too, because the log needs no answer of it. A machine
   * without devices does not need the log, nor permission to read it. `names`: other names that the driver may print, and the id or address of each.
   */
  withLogs(collection: Collection, names: readonly (readonly [name: string, id: string])[] = []): Collection {
    const { reports, problems } = collection;
    const reported = new Map(reports.map((report) => [report.device.id, report]));
    this.#devices.take(collection, this.#log.nowMs);
    const { all, left } = this.#devices;
    if (all.length + left.length === 0) return collection;
    for (const device of all) this.#know(device);
    for (const [name, id] of names) this.#known.set(name, id);
    this.poll();
    const each = this.withEach([...all.map((device) => reported.get(device.id) ?? { device }), ...left.map((device) => ({ device }))]);
    return { ...collection, ...partedFrom(each, all.length), problems: [...problems, ...this.problems] };
  }

  /** Adds what the log reports of each of these devices, which are all devices of the family. */
  withEach(reports: readonly DeviceReport[]): readonly DeviceReport[] {
    this.#lookForForgers();
    const { reach } = this.#log;
    const withLogs = reports.map((report) => this.#withLog(report, reach));
    this.#reports.end();
    return withLogs;
  }

  #lookForForgers(): boolean {
    this.#isForgeable ||= printsForProcesses(this.#host.sys);
    return this.#isForgeable;
  }

  /** Adds what the log reports of the device. While it cannot be read, that is only what is wrong. A virtual function has the faults of its card. */
  #withLog(report: DeviceReport, reach: LogReach): DeviceReport {
    const { id, aliases, pciAddress = '' } = report.device;
    // A card that is called by one of its functions has the address of the other one, whose driver also prints, as an alias.
    const names = [pciAddress, id, ...aliases];
    const own = this.#reportOf(report.device, names, reach);
    const { readings, findings } = report.outOfBand ?? { readings: [], findings: [] };
    const outOfBand =
      own === undefined || report.outOfBand === undefined
        ? own
        : { ...report.outOfBand, readings: [...readings, ...own.readings], findings: [...findings, ...own.findings] };
    const mine = this.#faults.filter(({ address, row }) => names.includes(address) && isAbout(row, report.device));
    for (const each of mine) each.isTold = true;
    const faults = mine.map(({ fault }) => fault);
    return {
      ...report,
      ...(outOfBand !== undefined && { outOfBand }),
      ...(faults.length > 0 && { faults: [...(report.faults ?? []), ...faults] }),
    };
  }

  /** The report of before while the log says the same about the device, its card and the ports above it. */
  #reportOf(device: Device, names: readonly string[], reach: LogReach): DeviceReport['outOfBand'] {
    const { pciPath = '', physicalFunction, parent, id, driver } = device;
    const isPart = physicalFunction !== undefined;
    const own = this.#statesOf(names);
    const whole = isPart ? this.#statesOf([physicalFunction]) : [];
    const ports = pciPath.split('/').slice(0, -1).filter(isPciAddress);
    const above = ports.map((port) => this.#states.get(port));
    const [isFull, isForgeable] = [this.#isFull, this.#isForgeable];
    return this.#reports.of(
      id,
      [reach, isFull, isForgeable, device.kind, device.pciAddress, driver, isPart, parent, pciPath, ...own, ...whole, ...above],
      () => {
        const told = (states: readonly (LogState | undefined)[]): LogState => {
          const state = together(states.filter((one) => one !== undefined));
          return reach === 'unread' ? afterGap(state) : state;
        };
        const isMissing = (states: readonly unknown[]): boolean => isFull && states.every((one) => one === undefined);
        const areMissing = isMissing(own) || (isPart && isMissing(whole));
        return logReport(
          this.#rows.filter((row) => isAbout(row, device)),
          this.#conditions,
          isPart ? ofPart(told(own), told(whole)) : told(own),
          reach,
          {
            countsDriverLines: !isPart,
            countsFunctionLines: parent === undefined,
            driver,
            above: ports.flatMap((port, at) => (above[at] === undefined ? [] : [[port, above[at]] as const])),
            isDoubtful: (row) =>
              (isForgeable && decides(row)) || (row.pci === 'below' ? above.some((one) => isMissing([one])) : areMissing),
          },
        );
      },
    );
  }

  #statesOf(names: readonly string[]): readonly (LogState | undefined)[] {
    return [...new Set(names)].map((name) => this.#states.get(name));
  }

  #know({ id, aliases, pciAddress = id, characterDevices = [] }: Device): void {
    const names = [id, ...aliases, ...characterDevices.map((path) => path.slice(path.lastIndexOf('/') + 1))];
    // The name of a device may become that of another one.
    if (this.#known.size > MOST_DEVICES * 8) this.#known.clear();
    for (const name of names) this.#known.set(name, pciAddress);
  }

  /** Returns true for a line that changes something. Noise wakes nobody: a read of the device may be what causes it. */
  take(record: DatedRecord, isBehindGap: boolean): boolean {
    if (isBehindGap) for (const [address, state] of this.#states) this.#states.set(address, afterGap(state));
    const line = logLineOf(this.#rows, this.#sections.joined(record), this.#places);
    if (line === undefined || isNoise(line.row) || (decides(line.row) && this.#lookForForgers())) return false;
    if (this.#states.size >= MOST_DEVICES && !this.#states.has(line.address)) {
      this.#isFull = true;
      return false;
    }
    this.#states.set(line.address, withLine(this.#states.get(line.address) ?? NOTHING_LOGGED, line, record.monotonicMs));
    this.#addFault(line, record);
    return true;
  }

  #addFault(line: LogLine, { seq, timeUsec, wallMs, monotonicMs, text, live }: DatedRecord): void {
    const { row, address, groups } = line;
    const { fault: declared } = row;
    const counts = counterOf(row);
    const place = { seq, usec: timeUsec };
    if (declared === undefined || counts === undefined || !isAfter(place, this.#host.counted)) return;
    const { type, severity, remedy, code: form = row.name } = declared;
    const code = meaningOf(line, form);
    const { nowMs } = this.#log;
    const latest = wallMs === undefined ? {} : defined({ lastMs: wallMs, lastMonotonicMs: monotonicMs });
    const times = wallMs === undefined ? {} : { timeMs: wallMs, ...latest };
    const isFlood = this.#faults.length >= MOST_FAULTS;
    const same = isFlood ? this.#faults.findLast((one) => one.address === address && one.row === row) : undefined;
    if (same?.isTold === false) {
      const { fault } = same;
      same.fault = { ...fault, last: place, count: fault.count + 1, isRepeat: true, ...latest };
      return;
    }
    if (this.#faults.length >= MOST_WITH_REPEATS) return;
    const counter = { metric: counts.metric.name, labels: counts.labels ?? {} };
    const process = this.#processOf(groups, live);
    const told = { type, code, severity, remedy, reason: type, message: meaningOf(line), ...(process !== undefined && { process }) };
    const fault: Fault = { witness: 'log', epoch: '', first: place, last: place, ...told, ...times, count: 1, lines: [text], counter };
    const kept = same === undefined ? fault : { ...fault, isRepeat: true as const };
    this.#faults.push({ address, atMs: nowMs, row, fault: kept, isTold: false });
  }

  /** The process that the line names. Only a new line is about the process that has its PID now. */
  #processOf({ pid, process }: LogLine['groups'], isLive: boolean): FaultProcess | undefined {
    if (pid === undefined || !/^[1-9]\d{0,9}$/.test(pid)) return undefined;
    const { podUid, containerId } = isLive ? this.#processes.of(Number(pid)).owner : {};
    return {
      pid: Number(pid),
      ...(process !== undefined && { name: process }),
      ...(podUid !== undefined && { podUid }),
      ...(containerId !== undefined && { containerId }),
    };
  }
}
