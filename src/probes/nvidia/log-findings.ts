import type { Device } from '../../model/device.ts';
import { minutes } from '../../model/duration.ts';
import type { Finding, Remedy } from '../../model/health.ts';
import type { Reading } from '../../model/metric.ts';
import { declaredFinding } from '../kit/finding.ts';
import { CHANNELS_REMOVED, removalToReport } from './channel-removals.ts';
import { DEGRADED, FATAL, named } from './conditions.ts';
import { metrics } from './metrics.ts';
import { type GpuMemory, gpuKey, isSamePart, type XidMemory, type XidTally } from './xid-memory.ts';
import { XID_REASONS } from './xid-table.ts';

const LOG = "NVIDIA driver's lines in the kernel log";

/** Conditions that the kernel log can show. */
export const logConditions = named({
  Xid: {
    ...FATAL,
    reasons: XID_REASONS,
    meaning:
      "The driver reported an error that stays until the GPU is reset or the machine boots. The instance is the number of the Xid. Severity and remedy come from the table of Xids, or from the driver's recovery action (154).",
    remedy: 'reset',
    source: `${LOG}: NVRM: Xid; severities by the table of Xids`,
    outOfBand: true,
  },
  XidPassing: {
    class: 'self-clearing',
    severity: 'info',
    reasons: XID_REASONS,
    meaning:
      'The driver reported an error that ends with a program or by itself. Errors of applications are for information and never make a device unhealthy. Removed channels (45) count only when no other error explains them.',
    remedy: 'restart-workload',
    source: `${LOG}: NVRM: Xid; it ends after ten minutes without a new line. Another error of the GPU, or of the same program, explains a later Xid 45 for 60 s, and an earlier one for 5 s`,
    recoveryMs: minutes(10),
    outOfBand: true,
  },
  GpuFallenOffBus: {
    ...FATAL,
    reasons: ['NoAnswer', 'Recovered'],
    meaning: 'The driver reported without an Xid that the GPU no longer answers on the PCIe bus.',
    remedy: 'reboot',
    source: `${LOG}: NVRM: fallen off the bus`,
    outOfBand: true,
  },
  InitializationFailed: {
    ...FATAL,
    reasons: ['AdapterFailed', 'FirmwareLocked', 'NoPower', 'ProbeFailed', 'Recovered'],
    meaning: 'The driver failed to start the GPU, and says so in the kernel log. The condition ends when the GPU answers.',
    remedy: 'power-cycle',
    source: `${LOG}: RmInitAdapter failed, unexpected WPR2 already up, power cables not connected; probe with driver nvidia failed`,
    outOfBand: true,
  },
  ResetRequired: {
    ...FATAL,
    reasons: ['NewWorkRefused', 'Recovered'],
    meaning:
      'The driver refuses new work on this GPU until it is reset. The line of the log names no GPU: this one asks for a recovery. It ends when the driver no longer asks.',
    remedy: 'reset',
    source: `${LOG}: NV_ERR_RESET_REQUIRED, without an Xid; together with the recovery action of the driver`,
    outOfBand: true,
  },
  NvSwitchFault: {
    ...DEGRADED,
    reasons: ['FatalSwitchError', 'Recovered'],
    meaning: 'An NVSwitch of the node reported a fatal error. It may interrupt NVLinks of any GPU; affected GPUs report their own errors.',
    remedy: 'inspect',
    source: `${LOG}: nvidia-nvswitch: SXid, Fatal; until the driver is loaded again`,
    outOfBand: true,
  },
  FabricFault: {
    ...DEGRADED,
    reasons: ['LinksFailedTogether', 'Recovered'],
    meaning:
      'NVLinks of several GPUs failed together, no line calls it fatal, and no GPU is the source. Programs can hang on any pair of GPUs of the fabric, although each GPU looks sound. It is for information on the GPUs that reported no error. It ends when the driver is loaded again, or when the GPUs were reset.',
    remedy: 'reboot',
    source: `${LOG}: Xid 144 to 150, Nonfatal, on two GPUs within ten minutes, and no crash of a program in the minute before; open-gpu-kernel-modules#1355 and nccl#2241: the fabric of a B300 and a B200 board stayed broken until a reboot`,
    outOfBand: true,
  },
  NcclSegfault: {
    class: 'self-clearing',
    severity: 'info',
    reasons: ['SegmentationFault', 'NoCrash'],
    meaning:
      'A program that used the device crashed inside NCCL, the library for communication between GPUs. The fault is often a network or a GPU that failed, or a wrong version of the library.',
    remedy: 'restart-workload',
    source:
      'kernel log: segfault at … in libnccl.so, on x86; the PID leads to the devices that the driver listed for it. The EKS node monitoring agent emits an event for such a line; it ends here after ten minutes without a new one',
    recoveryMs: minutes(10),
    outOfBand: true,
  },
});

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
  const idOf = (gpu: string): string =>
    devices.find(({ pciAddress, parent }) => parent === undefined && pciAddress !== undefined && gpuKey(pciAddress) === gpu)?.id ?? gpu;
  for (const device of devices) {
    const gpu = gpuOf(memory, device);
    const siblings = instances.get(device.parent ?? device.id) ?? [];
    const concerning = gpu?.tallies.filter((tally) => concerns(tally, device, siblings)) ?? [];
    const findings = [
      ...(gpu === undefined ? [] : gpuFindings(gpu, concerning, nowMs, isServed(gpuKey(device.pciAddress ?? '')), idOf)),
      ...switchFindings(memory, device),
      ...fabricFindings(memory, device),
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
function gpuFindings(
  gpu: GpuMemory,
  tallies: readonly XidTally[],
  nowMs: number,
  isServed: boolean,
  idOf: (gpu: string) => string,
): readonly Finding[] {
  const finding = (condition: LogCondition, tally: XidTally, remedy?: Remedy): Finding => ({
    ...tallyFinding(condition, tally, isServed, remedy),
    ...(tally.causedBy !== undefined && { causedBy: idOf(tally.causedBy) }),
  });
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
  return [logConditions.Xid, logConditions.GpuFallenOffBus].map((condition) =>
    declaredFinding(condition, 'Recovered', { status: false, message }),
  );
}

type LogCondition = typeof logConditions.Xid | typeof logConditions.XidPassing;

function tallyFinding(condition: LogCondition, tally: XidTally, isServed: boolean, remedy = tally.judgement.remedy): Finding {
  const { judgement, xid } = tally;
  const { class: reason, severity } = judgement;
  return declaredFinding(condition, reason, { instance: String(xid), status: true, message: messageOf(tally, isServed), severity, remedy });
}

function lostFinding(remedy: Remedy = 'reboot'): Finding {
  const message = 'the driver says that the GPU has fallen off the bus';
  return declaredFinding(logConditions.GpuFallenOffBus, 'NoAnswer', { status: true, message, remedy });
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
    return declaredFinding(logConditions.NvSwitchFault, 'FatalSwitchError', { instance: pciAddress, status: true, message });
  });
}

/** A fault of the fabric concerns all GPUs, those without an error for information. */
function fabricFindings({ fabric }: XidMemory, { parent, pciAddress = '' }: Device): readonly Finding[] {
  if (fabric === undefined || fabric.size === 0 || parent !== undefined) return [];
  const message = `NVLinks failed together on the GPUs at ${[...fabric].sort().join(', ')}, and no GPU is the source: programs can hang on any pair of GPUs`;
  const own = fabric.has(gpuKey(pciAddress)) ? {} : { severity: 'info' as const };
  return [declaredFinding(logConditions.FabricFault, 'LinksFailedTogether', { status: true, message, ...own })];
}

/** Ends conditions for which the log has no line. */
function quietFindings({ driverLoadedAtMs, fabric }: XidMemory, device: Device): readonly Finding[] {
  const passing = declaredFinding(logConditions.XidPassing, 'Recovered', { status: false, message: 'no other error was reported lately' });
  if (device.parent !== undefined) return [passing];
  const isFabricSound = fabric === undefined ? driverLoadedAtMs !== undefined : fabric.size === 0;
  const sound = 'no NVLinks have failed together since the fabric was set up, or their source is known';
  const links = isFabricSound ? [declaredFinding(logConditions.FabricFault, 'Recovered', { status: false, message: sound })] : [];
  if (driverLoadedAtMs === undefined) return [passing, ...links];
  const message = 'no other NVSwitch has reported a fatal error since the driver was loaded';
  return [passing, ...links, declaredFinding(logConditions.NvSwitchFault, 'Recovered', { status: false, message })];
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
