import type { Host } from '../../host/host.ts';
import { type KmsgMessage, type KmsgReader, openKmsg } from '../../host/kernel-log/reader.ts';
import { parseBootTimeMs } from '../../host/kernel-log/record.ts';
import { type CgroupOwner, parseCgroup } from '../../host/process/cgroup.ts';
import type { Collection, DeviceReport } from '../../model/collection.ts';
import type { Device } from '../../model/device.ts';
import type { Fault } from '../../model/fault.ts';
import type { Finding } from '../../model/health.ts';
import type { Release } from '../../model/release.ts';
import type { Probe } from '../family.ts';
import { conditions } from './conditions.ts';
import { withoutNamed } from './devices.ts';
import { LogGaps } from './log-gaps.ts';
import { NcclCrashes } from './nccl-crashes.ts';
import { StartFailures } from './start-failures.ts';
import { FAULT_WAIT_MS, faultsOf, XidFaults } from './xid-faults.ts';
import { type XidReport, xidReports } from './xid-findings.ts';
import type { RecordPlace } from './xid-groups.ts';
import { parseNvidiaLine, type XidLine } from './xid-line.ts';
import { EMPTY_MEMORY, endFaults, gpuKey, rememberLine, type XidMemory } from './xid-memory.ts';

/** An MPS server may have ended with the fault of a client, and is then started again. */
const SERVED_MS = 60_000;
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
export class KernelLogProbe implements Probe {
  readonly #gpus: GpuProbe;
  readonly #host: Host;
  readonly #path: string | undefined;
  #reader: KmsgReader | undefined;
  #memory: XidMemory = EMPTY_MEMORY;
  #wake: (() => void) | undefined;
  #stopFollowing: (() => void) | undefined;
  #devices: readonly Device[];
  readonly #crashes: NcclCrashes;
  readonly #starts = new StartFailures();
  /** Latest time at which the driver asked for no recovery of a GPU, by PCI address. */
  readonly #askedNothingAtMs = new Map<string, number>();
  /** True when the log has new lines about GPUs since the last read or wake. */
  #hasNewLines = false;
  /** Number of Xids that came from the library instead of the log. */
  #libraryXids = 0;
  readonly #faults: XidFaults;
  readonly #gaps = new LogGaps();
  /** Wall clock from which this probe takes events. */
  readonly #epoch: string;
  /** Cgroups of the processes that lines named while they were written, keyed by PID. */
  readonly #processes = new Map<number, CgroupOwner>();
  /** Addresses of the GPUs on which an MPS server runs, with the time on the log's clock at which it was seen last. */
  readonly #served = new Map<string, number>();

  /** Wall clock time at which the monotonic clock was 0, calculated when this probe was created. */
  readonly #originMs: number;

  /** `path`: `/dev/kmsg`, or a file in its format; undefined: no log is read. */
  constructor(gpus: GpuProbe, host: Host, path: string | undefined) {
    this.#gpus = gpus;
    this.#host = host;
    this.#path = path;
    this.#devices = host.known;
    this.#crashes = new NcclCrashes((pid) => threadGroupOf(host, pid));
    this.#originMs = host.clock.now() - host.clock.monotonic();
    this.#faults = new XidFaults(host.counted);
    this.#epoch = String(host.clock.now());
  }

  async collect(): Promise<Collection> {
    const startedAtMs = this.#logMs();
    const collection = await this.#gpus.collect();
    this.#remember(collection);
    // A machine without GPUs does not need the log, nor permission to read it.
    if (this.#devices.length === 0) return collection;
    this.#crashes.see(this.#devices, collection.reports);
    this.#seeServers(collection.reports, startedAtMs);
    this.#readLog();
    const unasked = new Set(gpusWithoutAction(collection));
    for (const pciAddress of unasked) this.#askedNothingAtMs.set(pciAddress, startedAtMs - ACTION_AGE_MS);
    // An earlier answer counts too: a log that is readable again may have faults from before it.
    for (const [pciAddress, atMs] of this.#askedNothingAtMs) {
      const evidence = unasked.has(pciAddress) ? 'driver-asks-nothing' : 'driver-asked-nothing';
      this.#memory = endFaults(this.#memory, pciAddress, evidence, atMs);
    }
    const problem = this.#reader?.status().problem;
    const isReadable = this.#path !== undefined && problem === undefined;
    this.#addXidLines(this.#gpus.takeXids?.() ?? [], !isReadable);
    const nowMs = this.#logMs();
    const isServed = (gpu: string): boolean => nowMs - (this.#served.get(gpu) ?? Number.NEGATIVE_INFINITY) < SERVED_MS;
    const xids = xidReports(this.#memory, this.#devices, nowMs, isReadable, isServed);
    const faults = faultsOf(this.#faults.take(nowMs), this.#devices, { processOf: (pid) => this.#processes.get(pid), isServed });
    if (this.#faults.isWaiting) this.#host.clock.after(FAULT_WAIT_MS, () => this.#wake?.());
    for (const report of collection.reports) if (answers(report)) this.#starts.answered(report.device, startedAtMs);
    const reported = new Map(collection.reports.map((report) => [report.device.id, report]));
    // A device that was not read also has a report, because the findings of the log need no answer of the driver.
    const reports = this.#devices.map((device) => {
      const report = this.#withRemedy(reported.get(device.id) ?? { device });
      const others = [...this.#crashes.findings(device.id, nowMs, isReadable), ...this.#starts.findings(report, nowMs)];
      return withFaults(withLog(report, xids.get(device.id), others), faults.get(device.id));
    });
    return {
      ...collection,
      reports,
      problems: [
        ...collection.problems,
        ...this.#starts.problems(reports, nowMs),
        ...(problem === undefined ? this.#gaps.problems(this.#path ?? '', nowMs) : [problem]),
      ],
    };
  }

  /** Gives a GPU that the driver does not reach the remedy that the log tells. */
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
    const unwatch = this.#gpus.watch?.(wake);
    return () => {
      unwatch?.();
      this.#wake = undefined;
      this.#stopFollowing?.();
    };
  }

  release(release: Release | undefined): void {
    this.#gpus.release?.(release);
  }

  async close(): Promise<void> {
    this.#reader?.close();
    await this.#gpus.close?.();
  }

  /** Time on the clock of the log lines. A change of the wall clock does not affect it. */
  #logMs(): number {
    return this.#originMs + this.#host.clock.monotonic();
  }

  /**
   * A record with its time on the clock of the log lines, so that a change of the wall clock does not change the order of lines and reads.
   * `aheadMs`: how far the wall clock was ahead of that clock when the log was opened.
   */
  #dated(message: KmsgMessage, aheadMs: number): KmsgMessage & RecordPlace {
    const { timeMs, live } = message;
    if (timeMs === undefined) return message;
    return { ...message, timeMs: live ? this.#logMs() : timeMs - aheadMs, wallMs: timeMs };
  }

  #remember({ reports, listing }: Collection): void {
    const devices = reports.map(({ device }) => device);
    const isKnown = (id: string): boolean => devices.some((device) => device.id === id);
    const before = this.#devices.filter(({ id }) => !isKnown(id));
    this.#devices = listing === 'complete' ? devices : [...devices, ...withoutNamed(before, devices)];
  }

  /** Adds Xids of the library, which have only a number, when the log cannot be read or lost lines. Otherwise the log has them with more details. */
  #addXidLines(xids: readonly XidLine[], isLogClosed: boolean): void {
    for (const told of xids) {
      const { clock } = this.#host;
      const cameAtMs = told.cameAtMs ?? clock.monotonic();
      const timeMs = this.#originMs + cameAtMs;
      const isLost = !isLogClosed && this.#gaps.isLost(told, timeMs, this.#memory);
      if (!isLogClosed && !isLost) continue;
      this.#libraryXids += 1;
      const wallMs = clock.now() - (clock.monotonic() - cameAtMs);
      const xid = this.#withoutAbsentPart(isLost ? { ...told, isLost: true } : told);
      const place = { seq: -this.#libraryXids, timeUsec: Math.round(cameAtMs * 1_000), timeMs, wallMs, text: xid.text };
      this.#memory = rememberLine(this.#memory, xid, place);
      this.#faults.put(this.#memory, xid.pciAddress, place, this.#epoch);
    }
  }

  /** The driver tells instance 0 of 0 where MIG is off. */
  #withoutAbsentPart(xid: XidLine): XidLine {
    const { gpuInstance, computeInstance, ...whole } = xid;
    if (gpuInstance !== 0 || (computeInstance ?? 0) !== 0) return xid;
    const isSplit = this.#devices.some(
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

  #readLog(): void {
    if (this.#path === undefined) return;
    if (this.#reader === undefined) {
      const aheadMs = this.#host.clock.now() - this.#logMs();
      this.#reader = openKmsg({
        path: this.#path,
        clock: this.#host.clock,
        observe: this.#host.observe,
        bootTimeMs: parseBootTimeMs(this.#host.proc.text('stat') ?? ''),
        onLost: () => this.#gaps.lost(this.#logMs()),
        onRecord: (record) => {
          const message = this.#dated(record, aheadMs);
          if (this.#crashes.add(message, this.#logMs())) this.#hasNewLines = true;
          if (this.#starts.add(message)) this.#hasNewLines = true;
          const line = parseNvidiaLine(message);
          if (line === undefined) return;
          this.#memory = rememberLine(this.#memory, line, message);
          if (line.kind === 'xid') {
            if (message.live && line.pid !== undefined) this.#seeProcess(line.pid);
            this.#faults.put(this.#memory, line.pciAddress, message, '');
          }
          this.#hasNewLines ||= line.kind !== 'other';
        },
      });
      this.#stopFollowing = this.#reader.follow(() => {
        this.#gaps.polled(this.#logMs());
        if (this.#hasNewLines) this.#wake?.();
        this.#hasNewLines = false;
      });
    }
    this.#reader.poll();
    this.#gaps.polled(this.#logMs());
    this.#hasNewLines = false;
  }
}

const UNREACHED: readonly string[] = [conditions.GpuLost.type, conditions.NotInitialized.type];
const isFault = ({ type, status }: Finding): boolean => UNREACHED.includes(type) && status === true;
const isUnreached = ({ read }: DeviceReport): boolean => read?.findings.some(isFault) === true;

const answers = ({ device, read }: DeviceReport): boolean =>
  device.parent === undefined && read?.findings.some(({ type, status }) => type === conditions.GpuLost.type && status === false) === true;

/** Adds the findings of the log. The log is a separate source with its own conditions; it does not refresh readings of the device. */
function withLog(report: DeviceReport, xids: XidReport = { readings: [], findings: [] }, crashes: readonly Finding[]): DeviceReport {
  if (xids.readings.length + xids.findings.length + crashes.length === 0) return report;
  const { readings, findings } = report.outOfBand ?? { readings: [], findings: [] };
  return { ...report, outOfBand: { readings: [...readings, ...xids.readings], findings: [...findings, ...xids.findings, ...crashes] } };
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
