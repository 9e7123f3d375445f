import type { Host } from '../../host/host.ts';
import { type KmsgMessage, type KmsgReader, openKmsg } from '../../host/kernel-log/reader.ts';
import { parseBootTimeMs } from '../../host/kernel-log/record.ts';
import type { Collection, DeviceReport } from '../../model/collection.ts';
import type { Device } from '../../model/device.ts';
import type { Probe } from '../family.ts';
import type { ToldXid } from './nvml/source.ts';
import { type XidReport, xidReports } from './xid-findings.ts';
import { parseNvidiaLines } from './xid-line.ts';
import { EMPTY_MEMORY, endFaults, NUMBER_ALONE, rememberRecord, type XidMemory } from './xid-memory.ts';

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
  #devices: readonly Device[];
  /** The log told of GPUs since the probe was last read or woken. */
  #isStirred = false;
  /** Xids that stand for lines of the log. */
  #heard = 0;

  /** What the wall clock showed when the monotonic clock was 0, as the clocks stood when this probe was made. */
  readonly #originMs: number;

  /** `path`: `/dev/kmsg`, or a file in its format. */
  constructor(gpus: GpuProbe, host: Host, path: string) {
    this.#gpus = gpus;
    this.#host = host;
    this.#path = path;
    this.#devices = host.known;
    this.#originMs = host.clock.now() - host.clock.monotonic();
  }

  async collect(): Promise<Collection> {
    const askedAtMs = this.#logMs();
    const collection = await this.#gpus.collect();
    this.#remember(collection);
    // A machine without GPUs has no use for the log, and needs no right to read it.
    if (this.#devices.length === 0) return collection;
    this.#readLog();
    for (const pciAddress of askingNothing(collection))
      this.#memory = endFaults(this.#memory, pciAddress, 'driver-asks-nothing', askedAtMs - WORD_AGE_MS);
    const problem = this.#reader?.status().problem;
    this.#hear(this.#gpus.takeXids?.() ?? [], problem !== undefined);
    const xids = xidReports(this.#memory, this.#devices, this.#logMs(), problem === undefined);
    const told = new Map(collection.reports.map((report) => [report.device.id, report]));
    return {
      ...collection,
      // A device that was not read has a report too: what the log says of it needs no answer of the driver.
      reports: this.#devices.map((device) => withXids(told.get(device.id) ?? { device }, xids.get(device.id))),
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

  /** The time by which the log dates its lines. It goes on as before when somebody sets the wall clock. */
  #logMs(): number {
    return this.#originMs + this.#host.clock.monotonic();
  }

  #remember({ reports, listing }: Collection): void {
    const devices = reports.map(({ device }) => device);
    const isKnown = (id: string): boolean => devices.some((device) => device.id === id);
    this.#devices = listing === 'complete' ? devices : [...devices, ...this.#devices.filter(({ id }) => !isKnown(id))];
  }

  /** What the driver's library told has its line in the log, with process and detail; where the log is closed, the number has to do. */
  #hear(xids: readonly ToldXid[], isLogClosed: boolean): void {
    if (!isLogClosed) return;
    for (const xid of xids) {
      this.#heard += 1;
      this.#memory = rememberRecord(this.#memory, recordOf(xid, -this.#heard, this.#logMs()));
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
          this.#isStirred ||= parseNvidiaLines(message.text).some(({ kind }) => kind !== 'other');
        },
      });
      this.#stopFollowing = this.#reader.follow(() => {
        if (this.#isStirred) this.#wake?.();
        this.#isStirred = false;
      });
    }
    this.#reader.poll();
    this.#isStirred = false;
  }
}

/** The log is another source than the device: it tells its own conditions, and makes no reading younger. */
function withXids(report: DeviceReport, own: XidReport | undefined): DeviceReport {
  if (own === undefined) return report;
  const { readings, findings } = report.aside ?? { readings: [], findings: [] };
  return { ...report, aside: { readings: [...readings, ...own.readings], findings: [...findings, ...own.findings] } };
}

/** The line that the driver would have logged. */
function recordOf({ pciAddress, xid, gpuInstance, computeInstance }: ToldXid, seq: number, timeMs: number): KmsgMessage {
  const instance =
    gpuInstance === undefined ? '' : ` GPU-I:${gpuInstance}${computeInstance === undefined ? '' : ` GPU-CI:${computeInstance}`}`;
  const text = `NVRM: Xid (PCI:${pciAddress.replace(/\.[0-7]$/, '')}${instance}): ${xid}, ${NUMBER_ALONE}`;
  return { level: 3, facility: 0, seq, timeUsec: 0, text, timeMs, live: true };
}

/** GPUs of which the driver says, in a word of its own, that they need nothing: it outranks any table. */
function askingNothing({ reports }: Collection): readonly string[] {
  return reports.flatMap(({ device, read }) => {
    const answered = read?.findings.some(
      ({ type, instance, status }) => type === 'RecoveryAction' && instance === undefined && status === false,
    );
    return device.kind === 'gpu' && device.pciAddress !== undefined && answered === true ? [device.pciAddress] : [];
  });
}
