import type { Host } from '../../host/host.ts';
import { type CgroupOwner, parseCgroup } from '../../host/process/cgroup.ts';
import type { Collection, DeviceReport } from '../../model/collection.ts';
import type { Fault } from '../../model/fault.ts';
import type { Finding } from '../../model/health.ts';
import type { Release } from '../../model/release.ts';
import type { Probe } from '../family.ts';
import { type DatedRecord, KernelLog, type LogLoss, type LogReach } from '../kit/kernel-log.ts';
import { ListedDevices } from '../kit/listed-devices.ts';
import { partedFrom, RowLog } from '../kit/log-rows.ts';
import { Bus } from '../kit/pcie/bus.ts';
import { driverUnbound, notStarted } from '../kit/pcie/bus-conditions.ts';
import { pcieLogConditions, pcieLogRows } from '../kit/pcie/log.ts';
import type { StartLog } from '../kit/pcie/start-log.ts';
import { conditions } from './conditions.ts';
import { isNamedIn } from './devices.ts';
import { bus } from './hardware.ts';
import { type XidReport, xidReports } from './log-findings.ts';
import { NcclCrashes, StartFailures } from './start-failures.ts';
import { FAULT_WAIT_MS, faultsOf, XidFaults } from './xid-faults.ts';
import { type NvidiaLine, parseNvidiaLine, type XidLine } from './xid-line.ts';
import { EMPTY_MEMORY, endFaults, gpuKey, rememberLine, type XidMemory } from './xid-memory.ts';

/** An MPS server may have ended with the fault of a client, and is then started again. */
const SERVED_MS = 60_000;
const HOPPER = /\bG?H[12]00\b/;
/** Name of an MPS server, cut as the kernel cuts it. */
const MPS_SERVER = 'nvidia-cuda-mps';
/** Processes of log lines whose cgroup is remembered. */
const MOST_PROCESSES = 256;
/** A recovery action may be this much older than the start of its read. Log lines of these seconds may be newer than the action. */
const ACTION_AGE_MS = 10_000;

/** A probe that may receive Xids from the library. */
type GpuProbe = Probe & { takeXids?(): readonly XidLine[] };

/**
 * Adds the Xids and the crashes of the kernel log to a probe of GPUs. It reads the log from boot on, so it knows faults from before the agent's start.
 * Each new Xid wakes the probe. The log is also used while the driver does not answer.
 */
export class KernelLogProbe implements Probe, StartLog {
  readonly #gpus: GpuProbe;
  readonly #host: Host;
  readonly #log: KernelLog;
  readonly #pcie: RowLog;
  readonly #bus: Bus;
  #memory: XidMemory = EMPTY_MEMORY;
  #wake: (() => void) | undefined;
  readonly #devices: ListedDevices;
  readonly #crashes: NcclCrashes;
  readonly #starts = new StartFailures();
  /** Latest time at which the driver asked for no recovery of a GPU, by PCI address. */
  readonly #askedNothingAtMs = new Map<string, number>();
  /** Number of Xids that came from the library instead of the log. */
  #libraryXids = 0;
  readonly #faults: XidFaults;
  /** Wall clock from which this probe takes events. */
  readonly #epoch: string;
  /** Cgroups of the processes that lines named while they were written, keyed by PID. */
  readonly #processes = new Map<number, CgroupOwner>();
  /** Addresses of the GPUs on which an MPS server runs, with the time on the log's clock at which it was seen last. */
  readonly #served = new Map<string, number>();

  /** `path`: `/dev/kmsg`, or a file in its format; undefined: no log is read. */
  constructor(gpus: GpuProbe, host: Host, path: string | undefined) {
    this.#gpus = gpus;
    this.#host = host;
    this.#log = new KernelLog(host, { take: (record, isBehindGap) => this.#take(record, isBehindGap) }, path);
    this.#pcie = new RowLog(host, pcieLogRows, pcieLogConditions, this.#log);
    this.#bus = new Bus(host, { family: 'nvidia', hardware: bus, pcie: 'errors' });
    this.#devices = new ListedDevices(host.known);
    this.#crashes = new NcclCrashes((pid) => threadGroupOf(host, pid));
    this.#faults = new XidFaults(host.counted);
    this.#epoch = String(host.clock.monotonic());
  }

  async collect(): Promise<Collection> {
    const startedAtMs = this.#log.nowMs;
    const found = await this.#gpus.collect();
    this.#remember(found);
    const collection = this.#bus.added(found, this);
    this.#remember(collection);
    // A machine without GPUs does not need the log, nor permission to read it.
    const { all, left } = this.#devices;
    const devices = [...all, ...left];
    if (devices.length === 0) return collection;
    this.#crashes.see(all, collection.reports);
    this.#seeServers(collection.reports, startedAtMs);
    this.#pcie.poll();
    const unasked = new Set(gpusWithoutAction(collection));
    for (const pciAddress of unasked) this.#askedNothingAtMs.set(pciAddress, startedAtMs - ACTION_AGE_MS);
    // An earlier answer counts too: a log that is readable again may have faults from before it.
    for (const [pciAddress, atMs] of this.#askedNothingAtMs) {
      const evidence = unasked.has(pciAddress) ? 'driver-asks-nothing' : 'driver-asked-nothing';
      this.#memory = endFaults(this.#memory, pciAddress, evidence, atMs);
    }
    const { isReadable } = this.#log;
    this.#addXidLines(this.#gpus.takeXids?.() ?? [], !isReadable);
    const { nowMs } = this.#log;
    const isServed = (gpu: string): boolean => nowMs - (this.#served.get(gpu) ?? Number.NEGATIVE_INFINITY) < SERVED_MS;
    const xids = xidReports(this.#memory, devices, nowMs, isReadable, isServed);
    const facts = { processOf: (pid: number) => this.#processes.get(pid), memory: this.#memory, isServed };
    const faults = faultsOf(this.#faults.take(nowMs), devices, facts);
    if (this.#faults.isWaiting) this.#host.clock.after(FAULT_WAIT_MS, () => this.#wake?.());
    for (const report of collection.reports) if (answers(report)) this.#starts.answered(report.device, startedAtMs);
    const reported = new Map(collection.reports.map((report) => [report.device.id, report]));
    // A device that was not read also has a report, because the findings of the log need no answer of the driver.
    const withXids = devices.map((device) => {
      const report = this.#withRemedy(reported.get(device.id) ?? { device });
      const others = [...this.#crashes.findings(device.id, nowMs, isReadable), ...this.#starts.findings(report, nowMs)];
      return withFaults(withLog(report, xids.get(device.id), others, isReadable), faults.get(device.id));
    });
    const parted = partedFrom(this.#pcie.withEach(withXids), all.length);
    const failed = this.#starts.problems(parted.reports, nowMs);
    return { ...collection, ...parted, problems: [...collection.problems, ...failed, ...this.#log.problems] };
  }

  get reach(): LogReach {
    return this.#log.reach;
  }

  follow(): void {
    this.#pcie.poll();
  }

  holds(pciAddress: string): boolean {
    return this.#starts.hasFailed(pciAddress);
  }

  /** Gives a GPU that the driver does not reach the remedy that the log reports. */
  #withRemedy(report: DeviceReport): DeviceReport {
    const { device, read } = report;
    if (read === undefined || device.pciAddress === undefined || !isUnreached(report)) return report;
    const xids = this.#memory.gpus.get(gpuKey(device.pciAddress));
    const isToReplace = xids?.tallies.some(({ isOpen, judgement }) => isOpen && judgement.remedy === 'replace') === true;
    const remedy = isToReplace ? 'replace' : this.#starts.remedyOf(device);
    if (remedy === undefined) return report;
    return { ...report, read: { ...read, findings: read.findings.map((each) => (isFault(each) ? { ...each, remedy } : each)) } };
  }

  watch(wake: () => void): () => void {
    this.#wake = wake;
    const unwatch = [this.#gpus.watch?.(wake), this.#log.watch(wake)];
    return () => {
      for (const each of unwatch) each?.();
      this.#wake = undefined;
    };
  }

  release(release: Release | undefined): void {
    this.#gpus.release?.(release);
  }

  async close(): Promise<void> {
    this.#log.close();
    await this.#gpus.close?.();
  }

  #remember(collection: Collection): void {
    this.#devices.take(collection, this.#log.nowMs, isNamedIn(collection.reports.map(({ device }) => device)));
  }

  /** Adds Xids of the library, which have only a number, when the log cannot be read or lost lines. Otherwise the log has them with more details. */
  #addXidLines(xids: readonly XidLine[], isLogClosed: boolean): void {
    for (const told of xids) {
      const { clock } = this.#host;
      const cameAtMs = told.cameAtMs ?? clock.monotonic();
      const timeMs = this.#log.timeOf(cameAtMs);
      const isLost = !isLogClosed && isLineLost(told, timeMs, this.#log.loss, this.#memory);
      if (!isLogClosed && !isLost) continue;
      this.#libraryXids += 1;
      const wallMs = clock.now() - (clock.monotonic() - cameAtMs);
      const xid = this.#withoutAbsentPart(isLost ? { ...told, isLost: true } : told);
      const place = {
        seq: -this.#libraryXids,
        timeUsec: Math.round(cameAtMs * 1_000),
        timeMs,
        wallMs,
        monotonicMs: cameAtMs,
        text: xid.text,
      };
      this.#memory = rememberLine(this.#memory, xid, place);
      this.#faults.put(this.#memory, xid.pciAddress, place, this.#epoch);
    }
  }

  /** The driver reports instance 0 of 0 where MIG is off. */
  #withoutAbsentPart(xid: XidLine): XidLine {
    const { gpuInstance, computeInstance, ...whole } = xid;
    if (gpuInstance !== 0 || (computeInstance ?? 0) !== 0) return xid;
    const isSplit = this.#devices.all.some(
      ({ parent, pciAddress = '' }) => parent !== undefined && gpuKey(pciAddress) === gpuKey(xid.pciAddress),
    );
    return isSplit ? xid : whole;
  }

  /** A fault of one client of an MPS server can be told as that of another one. */
  #seeServers(reports: readonly DeviceReport[], atMs: number): void {
    for (const { device, read } of reports) {
      if (device.pciAddress === undefined || read?.processes === undefined) continue;
      if (read.processes.some(({ name }) => name?.startsWith(MPS_SERVER) === true)) this.#served.set(gpuKey(device.pciAddress), atMs);
    }
  }

  #seeProcess(pid: number): void {
    if (this.#processes.has(pid)) return;
    const owner = parseCgroup(this.#host.proc.text(`${pid}/cgroup`) ?? '');
    if (owner.podUid === undefined && owner.containerId === undefined) return;
    this.#processes.set(pid, owner);
    const [oldest] = this.#processes.keys();
    if (this.#processes.size > MOST_PROCESSES && oldest !== undefined) this.#processes.delete(oldest);
  }

  /** The meaning of some lines depends on the board. */
  #ofBoard(line: NvidiaLine | undefined): NvidiaLine | undefined {
    if (line?.kind !== 'xid' || line.xid !== 74) return line;
    const key = gpuKey(line.pciAddress);
    const board = this.#devices.all.find(({ pciAddress = '', parent }) => parent === undefined && gpuKey(pciAddress) === key);
    return HOPPER.test(board?.model ?? '') ? { ...line, isHopper: true } : line;
  }

  #take(record: DatedRecord, isBehindGap: boolean): boolean {
    const isPcie = this.#pcie.take(record, isBehindGap);
    const isCrash = this.#crashes.add(record, this.#log.nowMs);
    const isStart = this.#starts.add(record);
    const line = this.#ofBoard(parseNvidiaLine(record));
    if (line === undefined) return isPcie || isCrash || isStart;
    this.#memory = rememberLine(this.#memory, line, record);
    if (line.kind === 'xid') {
      if (record.live && line.pid !== undefined) this.#seeProcess(line.pid);
      this.#faults.put(this.#memory, line.pciAddress, record, '');
    }
    return isCrash || isStart || line.kind !== 'other';
  }
}

/** Events of the library come so much later than the lines. */
const LATE_MS = 3_000;

/**
 * Whether an event of the library reports a fault whose line is lost. All lines that came before the event must have been read. When the
 * log has a line with the Xid and GPU of that time, the event may be of that line, so it does not count.
 */
function isLineLost({ xid, pciAddress }: XidLine, atMs: number, loss: LogLoss | undefined, { gpus }: XidMemory): boolean {
  if (loss === undefined) return false;
  const fromMs = loss.fromMs - LATE_MS;
  if (atMs < fromMs || atMs > loss.untilMs + LATE_MS) return false;
  const isRead = gpus
    .get(gpuKey(pciAddress))
    ?.tallies.some(({ xid: known, group, lastMs = 0 }) => known === xid && group?.line.isEvent !== true && lastMs >= fromMs);
  return isRead !== true;
}

const UNREACHED: readonly string[] = [conditions.GpuLost.type, conditions.NotInitialized.type, notStarted.type, driverUnbound.type];
const isFault = ({ type, status }: Finding): boolean => UNREACHED.includes(type) && status === true;
const isUnreached = ({ read }: DeviceReport): boolean => read?.findings.some(isFault) === true;

const answers = ({ device, read }: DeviceReport): boolean =>
  device.parent === undefined && read?.findings.some(({ type, status }) => type === conditions.GpuLost.type && status === false) === true;

/** Adds the findings of the log. The log is a separate source with its own conditions; it does not refresh readings of the device. */
function withLog(
  report: DeviceReport,
  xids: XidReport = { readings: [], findings: [] },
  crashes: readonly Finding[],
  isReadable: boolean,
): DeviceReport {
  if (!isReadable && xids.readings.length + xids.findings.length + crashes.length === 0) return report;
  const { readings, findings } = report.outOfBand ?? { readings: [], findings: [] };
  const outOfBand = { readings: [...readings, ...xids.readings], findings: [...findings, ...xids.findings, ...crashes] };
  return { ...report, outOfBand: { ...outOfBand, ...(isReadable && { areFaultsRead: true }) } };
}

function withFaults(report: DeviceReport, faults: readonly Fault[] | undefined): DeviceReport {
  return faults === undefined ? report : { ...report, faults };
}

/** Returns the process of a thread; undefined when the thread has ended. */
function threadGroupOf({ proc }: Host, thread: number): number | undefined {
  const pid = /^Tgid:\s*(\d+)$/m.exec(proc.text(`${thread}/status`) ?? '')?.[1];
  return pid === undefined ? undefined : Number(pid);
}

/** Returns the GPUs for which the driver reports the recovery action "none". This action has priority over the Xid table. */
function gpusWithoutAction({ reports }: Collection): readonly string[] {
  return reports.flatMap(({ device, read }) => {
    const answered = read?.findings.some(
      ({ type, instance, status }) => type === conditions.RecoveryAction.type && instance === undefined && status === false,
    );
    return device.kind === 'gpu' && device.pciAddress !== undefined && answered === true ? [device.pciAddress] : [];
  });
}
