import type { Host } from '../../host/host.ts';
import { type KmsgMessage, type KmsgReader, openKmsg } from '../../host/kmsg.ts';
import { parseBootTimeMs } from '../../host/kmsg-record.ts';
import type { Collection, DeviceReport } from '../../model/collection.ts';
import type { Device } from '../../model/device.ts';
import { Readings } from '../../model/readings.ts';
import type { Probe } from '../family.ts';
import type { ToldXid } from './nvml/source.ts';
import { type XidReport, xidReports, xidReportsHoldUntil } from './xid-findings.ts';
import { EMPTY_MEMORY, endFaults, isQuiet, NUMBER_ALONE, rememberRecord, type XidMemory } from './xid-memory.ts';

/** The driver's word is as old as the read that brought it; log lines of these last seconds may be younger. */
const WORD_AGE_MS = 10_000;

/** A probe that may hear of Xids itself. */
type GpuProbe = Probe & { takeXids?(): readonly ToldXid[] };

/**
 * A probe of GPUs together with what the kernel log says of them. The log is read from the boot on, so faults from before the
 * agent's start are known; each new Xid wakes the probe. While the driver does not answer, the log still counts.
 */
export class KernelLogProbe implements Probe {
  readonly #gpus: GpuProbe;
  readonly #host: Host;
  readonly #path: string;
  #reader: KmsgReader | undefined;
  #memory: XidMemory = EMPTY_MEMORY;
  #wake: (() => void) | undefined;
  #stopFollowing: (() => void) | undefined;
  #devices: readonly Device[] = [];
  /** Of these nothing is left to end. */
  #quiet: Quiet | undefined;
  #told: ToldXids | undefined;
  /** At the place of the report. */
  #mergedReports: Merged[] = [];
  /** Xids that stand for lines of the log. */
  #heard = 0;

  /** `path`: `/dev/kmsg`, or a file in its format. */
  constructor(gpus: GpuProbe, host: Host, path: string) {
    this.#gpus = gpus;
    this.#host = host;
    this.#path = path;
  }

  async collect(): Promise<Collection> {
    const askedAtMs = this.#host.clock.now();
    const collection = await this.#gpus.collect();
    this.#remember(collection);
    // A machine without GPUs has no use for the log, and needs no right to read it.
    if (this.#devices.length === 0) return collection;
    this.#readLog();
    this.#endFaults(collection, askedAtMs - WORD_AGE_MS);
    const problem = this.#reader?.status().problem;
    this.#hear(this.#gpus.takeXids?.() ?? [], problem !== undefined);
    return {
      ...collection,
      reports: this.#withXids(collection),
      problems: problem === undefined ? collection.problems : [...collection.problems, problem],
    };
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

  async close(): Promise<void> {
    this.#reader?.close();
    await this.#gpus.close?.();
  }

  #remember({ reports, complete }: Collection): void {
    if (complete !== false && reports.length === this.#devices.length && reports.every(({ device }, at) => device === this.#devices[at]))
      return;
    this.#mergedReports = [];
    const devices = reports.map(({ device }) => device);
    if (complete !== false) this.#devices = devices;
    else this.#devices = [...devices, ...this.#devices.filter(({ id }) => !devices.some((device) => device.id === id))];
  }

  #endFaults(collection: Collection, atMs: number): void {
    if (this.#quiet?.memory === this.#memory && this.#quiet.devices === this.#devices) return;
    for (const pciAddress of askingNothing(collection)) this.#memory = endFaults(this.#memory, pciAddress, 'driver-asks-nothing', atMs);
    const gpus = this.#devices.flatMap(({ kind, pciAddress }) => (kind === 'gpu' && pciAddress !== undefined ? [pciAddress] : []));
    this.#quiet = isQuiet(this.#memory, gpus) ? { memory: this.#memory, devices: this.#devices } : undefined;
  }

  /** What the driver's library told has its line in the log, with process and detail; where the log is closed, the number has to do. */
  #hear(xids: readonly ToldXid[], isLogClosed: boolean): void {
    if (!isLogClosed) return;
    for (const xid of xids) {
      this.#heard += 1;
      this.#memory = rememberRecord(this.#memory, recordOf(xid, -this.#heard, this.#host.clock.now()));
    }
  }

  #readLog(): void {
    if (this.#reader === undefined) {
      this.#reader = openKmsg({
        path: this.#path,
        clock: this.#host.clock,
        bootTimeMs: parseBootTimeMs(this.#host.proc.text('stat') ?? ''),
        onRecord: (message) => {
          this.#memory = rememberRecord(this.#memory, message);
        },
      });
      this.#reader.poll();
      let told = this.#memory;
      this.#stopFollowing = this.#reader.follow(() => {
        if (this.#memory !== told) this.#wake?.();
        told = this.#memory;
      });
    } else this.#reader.poll();
  }

  /** Known devices that were not read get a report when the log has something on them. */
  #withXids({ reports }: Collection): readonly DeviceReport[] {
    const xids = this.#xids(this.#host.clock.now());
    const merged = reports.map((report, at) => this.#mergedAt(at, report, xids));
    if (reports.length === this.#devices.length) return merged;
    const read = new Set(reports.map(({ device }) => device.id));
    const unread = this.#devices.flatMap((device): DeviceReport[] => {
      const own = xids.get(device.id);
      return read.has(device.id) || own === undefined ? [] : [{ device, readings: Readings.of(own.readings), findings: own.findings }];
    });
    return [...merged, ...unread];
  }

  /** Made anew when the log or the devices changed, or something has passed. */
  #xids(nowMs: number): ReadonlyMap<string, XidReport> {
    const known = this.#told;
    if (known?.memory === this.#memory && known.devices === this.#devices && nowMs < known.untilMs) return known.reports;
    const reports = xidReports(this.#memory, this.#devices, nowMs);
    this.#told = { memory: this.#memory, devices: this.#devices, untilMs: xidReportsHoldUntil(this.#memory, nowMs), reports };
    return reports;
  }

  /** The same lists and the same report as long as their parts are the same. */
  #mergedAt(at: number, report: DeviceReport, xids: ReadonlyMap<string, XidReport>): DeviceReport {
    const known = this.#mergedReports[at];
    const isOfDevice = known?.xids === xids && known.report.device === report.device;
    if (isOfDevice && known.report === report) return known.merged;
    const own = isOfDevice ? known.own : xids.get(report.device.id);
    const merged = own === undefined ? report : mergedOf(report, own, known);
    this.#mergedReports[at] = { xids, own, report, merged };
    return merged;
  }
}

function mergedOf(report: DeviceReport, own: XidReport, known: Merged | undefined): DeviceReport {
  const findings =
    known?.own === own && known.report.findings === report.findings ? known.merged.findings : [...report.findings, ...own.findings];
  const readings = own.readings.length === 0 ? report.readings : Readings.of([...report.readings, ...own.readings], known?.merged.readings);
  return { ...report, readings, findings };
}

/** A report as it came, what the log says of its device, and both together. */
interface Merged {
  readonly xids: ReadonlyMap<string, XidReport>;
  readonly own: XidReport | undefined;
  readonly report: DeviceReport;
  readonly merged: DeviceReport;
}

interface Quiet {
  readonly memory: XidMemory;
  readonly devices: readonly Device[];
}

type ToldXids = Quiet & { readonly untilMs: number; readonly reports: ReadonlyMap<string, XidReport> };

/** The line that the driver would have logged. */
function recordOf({ pciAddress, xid, gpuInstance, computeInstance }: ToldXid, seq: number, timeMs: number): KmsgMessage {
  const instance =
    gpuInstance === undefined ? '' : ` GPU-I:${gpuInstance}${computeInstance === undefined ? '' : ` GPU-CI:${computeInstance}`}`;
  const text = `NVRM: Xid (PCI:${pciAddress.replace(/\.[0-7]$/, '')}${instance}): ${xid}, ${NUMBER_ALONE}`;
  return { level: 3, facility: 0, seq, timeUsec: 0, text, timeMs, live: true };
}

/** GPUs of which the driver says that they need nothing: its word outranks any table. */
function askingNothing({ reports }: Collection): readonly string[] {
  return reports.flatMap(({ device, findings }) => {
    const answered = findings.some(({ type, status }) => type === 'RecoveryAction' && status === false);
    return device.kind === 'gpu' && device.pciAddress !== undefined && answered ? [device.pciAddress] : [];
  });
}
