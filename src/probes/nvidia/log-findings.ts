import type { KmsgMessage } from '../../host/kernel-log/reader.ts';
import { parseSegfault, type Segfault } from '../../host/kernel-log/segfault.ts';
import type { DeviceReport } from '../../model/collection.ts';
import type { Device } from '../../model/device.ts';
import type { Finding, Remedy } from '../../model/health.ts';
import type { Reading } from '../../model/metric.ts';
import { raise } from '../kit/finding.ts';
import { logConditions } from './conditions.ts';
import { metrics } from './metrics.ts';
import { CHANNELS_REMOVED, type GpuMemory, gpuKey, isSamePart, removalToReport, type XidMemory, type XidTally } from './xid-memory.ts';

export interface XidReport {
  readonly findings: readonly Finding[];
  readonly readings: readonly Reading[];
}

/** A passing error is reported for this time, so that at least one read sees it. After it, the recovery time of the policy starts. */
const PASSING_REPORTED_MS = 60_000;
/** Maximum length of the driver's text in a message. */
const MAX_TEXT_LENGTH = 200;

/** Returns the report of each device, keyed by device id. If the log `isReadable`, the absence of lines is also a finding. Pure. */
export function xidReports(
  memory: XidMemory,
  devices: readonly Device[],
  nowMs: number,
  isReadable: boolean,
  isServed: (gpu: string) => boolean = () => false,
): ReadonlyMap<string, XidReport> {
  const reports = new Map<string, XidReport>();
  const instances = byParent(devices);
  for (const device of devices) {
    const gpu = gpuOf(memory, device);
    const siblings = instances.get(device.parent ?? device.id) ?? [];
    const concerning = gpu?.tallies.filter((tally) => concerns(tally, device, siblings)) ?? [];
    const findings = [
      ...(gpu === undefined ? [] : gpuFindings(gpu, concerning, nowMs, isServed(gpuKey(device.pciAddress ?? '')))),
      ...switchFindings(memory, device),
      ...(isReadable ? quietFindings(memory, device) : []),
    ];
    const readings = readingsOf(concerning.filter((tally) => isNamed(tally, device, siblings)));
    if (findings.length > 0 || readings.length > 0) reports.set(device.id, { findings, readings });
  }
  return reports;
}

function byParent(devices: readonly Device[]): ReadonlyMap<string, readonly Device[]> {
  const instances = new Map<string, Device[]>();
  for (const device of devices) {
    if (device.parent !== undefined) instances.set(device.parent, [...(instances.get(device.parent) ?? []), device]);
  }
  return instances;
}

function gpuOf(memory: XidMemory, device: Device): GpuMemory | undefined {
  if (device.pciAddress !== undefined) return memory.gpus.get(gpuKey(device.pciAddress));
  const uuid = device.parent ?? device.uuid ?? device.id;
  return [...memory.gpus.values()].find((gpu) => gpu.uuid === uuid);
}

/** An error of a whole GPU also affects each of its instances. */
function concerns(tally: XidTally, device: Device, instances: readonly Device[]): boolean {
  return tally.gpuInstance === undefined || tally.judgement.isWholeGpu === true || isNamed(tally, device, instances);
}

/** Tells whether the line names the device: the instance, or the GPU. If the named instance does not exist, the GPU counts as named. */
function isNamed(tally: XidTally, device: Device, instances: readonly Device[]): boolean {
  if (device.parent !== undefined) return isInstance(tally, device);
  return tally.gpuInstance === undefined || !instances.some((instance) => isInstance(tally, instance));
}

/** Whether a line names this instance. */
export function isInstance({ gpuInstance, computeInstance }: Pick<XidTally, 'gpuInstance' | 'computeInstance'>, device: Device): boolean {
  if (gpuInstance === undefined || device.gpuInstance !== gpuInstance) return false;
  return computeInstance === undefined || device.computeInstance === computeInstance;
}

/** `isServed`: an MPS server runs on the GPU. */
function gpuFindings(gpu: GpuMemory, tallies: readonly XidTally[], nowMs: number, isServed: boolean): readonly Finding[] {
  const finding = (condition: LogCondition, tally: XidTally, remedy?: Remedy): Finding => tallyFinding(condition, tally, isServed, remedy);
  const open = tallies.filter((tally) => tally.isOpen);
  const { recovery } = gpu;
  return [
    ...(gpu.hasRecovered ? recovered() : []),
    ...(recovery === undefined ? [] : [finding(logConditions.Xid, recovery)]),
    ...open.map((tally) => finding(logConditions.Xid, tally, recovery?.judgement.remedy)),
    ...(gpu.lost === undefined || open.some(({ xid }) => xid === FALLEN_OFF) ? [] : [lostFinding(recovery?.judgement.remedy)]),
    ...tallies.flatMap((tally) => passingLine(gpu, tally, nowMs) ?? []).map((tally) => finding(logConditions.XidPassing, tally)),
  ];
}

/** Returns the tally with the line to report; undefined when it has none. */
function passingLine(gpu: GpuMemory, tally: XidTally, nowMs: number): XidTally | undefined {
  if (tally.xid !== CHANNELS_REMOVED) return isPassing(tally, nowMs) ? tally : undefined;
  const removal = removalToReport(gpu.removals, ({ line }) => isSamePart(line, tally), nowMs);
  return removal === undefined ? undefined : { ...tally, line: removal.line };
}

const FALLEN_OFF = 79;

function isPassing({ isOpen, judgement, lastMs }: XidTally, nowMs: number): boolean {
  return !isOpen && judgement.lasts === 'quiet' && lastMs !== undefined && nowMs - lastMs < PASSING_REPORTED_MS;
}

/** Ends conditions that an earlier run of the agent reported and that the log no longer contains. */
function recovered(): readonly Finding[] {
  const message = 'the GPU has recovered since';
  return [logConditions.Xid, logConditions.GpuFallenOffBus].map((condition) => raise(condition, 'Recovered', { status: false, message }));
}

type LogCondition = typeof logConditions.Xid | typeof logConditions.XidPassing;

function tallyFinding(condition: LogCondition, tally: XidTally, isServed: boolean, remedy = tally.judgement.remedy): Finding {
  const { judgement, xid } = tally;
  const { class: reason, severity } = judgement;
  return raise(condition, reason, { instance: String(xid), status: true, message: messageOf(tally, isServed), severity, remedy });
}

function lostFinding(remedy: Remedy = 'reboot'): Finding {
  const message = 'the driver says that the GPU has fallen off the bus';
  return raise(logConditions.GpuFallenOffBus, 'NoAnswer', { status: true, message, remedy });
}

/** `Xid 31: GPU memory page fault; process 7194 (python); Ch 00000008, intr …; 3 times`. */
export function messageOf({ judgement, line, count }: Pick<XidTally, 'judgement' | 'line' | 'count'>, isServed: boolean): string {
  const { xid, gpuInstance, computeInstance, pid, processName, text } = line;
  const process = pid === undefined ? processName : `${pid}${processName === undefined ? '' : ` (${processName})`}`;
  const instance =
    gpuInstance === undefined
      ? ''
      : ` on GPU instance ${gpuInstance}${computeInstance === undefined ? '' : `, compute instance ${computeInstance}`}`;
  const detail = text.length > MAX_TEXT_LENGTH ? `${text.slice(0, MAX_TEXT_LENGTH)}…` : text;
  return [
    `Xid ${xid}${instance}: ${judgement.meaning}`,
    ...(process === undefined ? [] : [isServed ? `one of an MPS server's clients, told as process ${process}` : `process ${process}`]),
    ...(detail === '' ? [] : [detail]),
    ...(count > 1 ? [`${count} times`] : []),
  ].join('; ');
}

function switchFindings(memory: XidMemory, device: Device): readonly Finding[] {
  if (device.parent !== undefined) return [];
  return [...memory.switches.values()].map(({ pciAddress, sxid, text }) => {
    const message = `SXid ${sxid} of the NVSwitch at ${pciAddress}: ${text.slice(0, MAX_TEXT_LENGTH)}`;
    return raise(logConditions.NvSwitchFault, 'FatalSwitchError', { instance: pciAddress, status: true, message });
  });
}

/** Ends conditions for which the log has no line. */
function quietFindings({ driverLoadedAtMs }: XidMemory, device: Device): readonly Finding[] {
  const passing = raise(logConditions.XidPassing, 'Recovered', { status: false, message: 'no other error was reported lately' });
  if (driverLoadedAtMs === undefined || device.parent !== undefined) return [passing];
  const message = 'no other NVSwitch has reported a fatal error since the driver was loaded';
  return [passing, raise(logConditions.NvSwitchFault, 'Recovered', { status: false, message })];
}

/** The agent counts the errors; the log has their times. */
function readingsOf(tallies: readonly XidTally[]): readonly Reading[] {
  return [...new Set(tallies.map(({ xid }) => xid))]
    .sort((a, b) => a - b)
    .flatMap((xid) => {
      const same = tallies.filter((tally) => tally.xid === xid && tally.count > 0);
      const times = same.map(({ lastWallMs }) => lastWallMs).filter((time) => time !== undefined);
      const labels = { xid: String(xid) };
      return times.length === 0 ? [] : [{ metric: metrics.xidLastTime.name, labels, value: Math.max(...times) / 1_000 }];
    });
}

/** A crash is reported for this time, so that at least one read sees it. Older lines have PIDs that other processes may have by now. */
const REPORTED_MS = 60_000;
const LIBRARY = /^libnccl\.so(?:\.\d{1,10}){0,4}$/;

interface Crash {
  readonly segfault: Segfault;
  readonly timeMs: number;
}

/** PIDs that used a device in its latest two reads. A crashed process may be missing in the latest one. */
type Users = readonly [latest: ReadonlySet<number>, before: ReadonlySet<number>];

const NOBODY: ReadonlySet<number> = new Set();

/** Attributes crashes inside NCCL to devices. Its memory has one crash per device and the PIDs of two reads. */
export class NcclCrashes {
  readonly #processOf: (pid: number) => number | undefined;
  #users: ReadonlyMap<string, Users> = new Map();
  #crashes: ReadonlyMap<string, Crash> = new Map();
  #devices: readonly Device[] = [];

  /** `processOf` returns the PID of the process to which a thread belongs; undefined when the thread has ended. */
  constructor(processOf: (pid: number) => number | undefined) {
    this.#processOf = processOf;
  }

  /** Remembers who uses the devices. A device that was not read keeps its users. */
  see(devices: readonly Device[], reports: readonly DeviceReport[]): void {
    const reads = new Map(reports.map(({ device, read }) => [device.id, read]));
    this.#devices = devices;
    this.#users = new Map(
      devices.map(({ id }): [string, Users] => {
        const [latest, before] = this.#users.get(id) ?? [NOBODY, NOBODY];
        const read = reads.get(id);
        return [id, read === undefined ? [latest, before] : [new Set(read.processes?.map(({ pid }) => pid)), latest]];
      }),
    );
    this.#crashes = new Map([...this.#crashes].filter(([id]) => this.#users.has(id)));
  }

  /** Returns true when the record is a crash that must be reported now. A crash of a process without a device is ignored. */
  add(message: KmsgMessage, nowMs: number): boolean {
    const { timeMs } = message;
    if (timeMs === undefined || nowMs - timeMs >= REPORTED_MS) return false;
    const segfault = parseSegfault(message);
    if (segfault?.file === undefined || !LIBRARY.test(segfault.file)) return false;
    const devices = this.#usedBy(segfault.pid);
    const isNew = devices.some(({ id }) => !isReported(this.#crashes.get(id), nowMs));
    this.#crashes = new Map([...this.#crashes, ...devices.map(({ id }) => [id, { segfault, timeMs }] as const)]);
    return isNew;
  }

  /** If the log `isReadable`, the absence of a crash is also a finding. */
  findings(device: string, nowMs: number, isReadable: boolean): readonly Finding[] {
    const crash = this.#crashes.get(device);
    if (isReported(crash, nowMs)) return [findingOf(crash)];
    if (!isReadable) return [];
    return [raise(logConditions.NcclSegfault, 'NoCrash', { status: false, message: 'no program crashed in NCCL lately' })];
  }

  #usedBy(thread: number): readonly Device[] {
    const direct = this.#devicesOf(thread);
    const process = direct.length > 0 ? undefined : this.#processOf(thread);
    return process === undefined ? direct : this.#devicesOf(process);
  }

  /** A process in an instance concerns the instance and not its GPU. */
  #devicesOf(pid: number): readonly Device[] {
    const devices = this.#devices.filter(({ id }) => this.#users.get(id)?.some((pids) => pids.has(pid)) === true);
    return devices.filter(({ id }) => !devices.some(({ parent }) => parent === id));
  }
}

const isReported = (crash: Crash | undefined, nowMs: number): crash is Crash => crash !== undefined && nowMs - crash.timeMs < REPORTED_MS;

function findingOf({ segfault: { pid, name, file } }: Crash): Finding {
  const message = `${name} (PID ${pid}) crashed in ${file}`;
  return raise(logConditions.NcclSegfault, 'SegmentationFault', { status: true, message });
}
