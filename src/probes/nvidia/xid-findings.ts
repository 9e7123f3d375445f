import type { Device } from '../../model/device.ts';
import type { Finding, Remedy } from '../../model/health.ts';
import type { Reading } from '../../model/metric.ts';
import { XID_ERRORS, XID_LAST_TIME } from './xid-conditions.ts';
import { type GpuMemory, gpuKey, type XidMemory, type XidTally } from './xid-memory.ts';

export interface XidReport {
  readonly findings: readonly Finding[];
  readonly readings: readonly Reading[];
}

/** An error that passes is seen for so long, so that a read meets it; then the policy's quiet time runs. */
const PASSING_SEEN_MS = 60_000;
/** Of the driver's own words. */
const MESSAGE_LENGTH = 200;

/** What the log says of each device, by device id. `isReadable`: the log can be read, so that its silence says something. Pure. */
export function xidReports(
  memory: XidMemory,
  devices: readonly Device[],
  nowMs: number,
  isReadable: boolean,
): ReadonlyMap<string, XidReport> {
  const reports = new Map<string, XidReport>();
  const instances = byParent(devices);
  for (const device of devices) {
    const gpu = gpuOf(memory, device);
    const siblings = instances.get(device.parent ?? device.id) ?? [];
    const concerning = gpu?.tallies.filter((tally) => concerns(tally, device, siblings)) ?? [];
    const findings = [
      ...(gpu === undefined ? [] : gpuFindings(gpu, concerning, nowMs)),
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

/** A whole GPU's error is one of each of its instances too. */
function concerns(tally: XidTally, device: Device, instances: readonly Device[]): boolean {
  return tally.gpuInstance === undefined || tally.judgement.isWholeGpu || isNamed(tally, device, instances);
}

/** The device that the line is about: the GPU, or the instance; the GPU again where that instance is not there (any more). */
function isNamed(tally: XidTally, device: Device, instances: readonly Device[]): boolean {
  if (device.parent !== undefined) return isInstance(tally, device);
  return tally.gpuInstance === undefined || !instances.some((instance) => isInstance(tally, instance));
}

function isInstance({ gpuInstance, computeInstance }: XidTally, device: Device): boolean {
  if (gpuInstance === undefined || device.gpuInstance !== gpuInstance) return false;
  return computeInstance === undefined || device.computeInstance === computeInstance;
}

function gpuFindings(gpu: GpuMemory, tallies: readonly XidTally[], nowMs: number): readonly Finding[] {
  const open = tallies.filter((tally) => tally.isOpen);
  const asked = gpu.recovery;
  return [
    ...(gpu.hasRecovered ? recovered() : []),
    ...(asked === undefined ? [] : [finding('Xid', asked)]),
    ...open.map((tally) => finding('Xid', tally, asked?.judgement.remedy)),
    ...(gpu.lost === undefined || open.some(({ xid }) => xid === FALLEN_OFF) ? [] : [lostFinding(asked?.judgement.remedy)]),
    ...tallies.filter((tally) => isPassing(tally, nowMs)).map((tally) => finding('XidPassing', tally)),
  ];
}

const FALLEN_OFF = 79;

function isPassing({ isOpen, judgement, lastMs }: XidTally, nowMs: number): boolean {
  return !isOpen && judgement.lasts === 'quiet' && lastMs !== undefined && nowMs - lastMs < PASSING_SEEN_MS;
}

/** Withdraws what an earlier run of the agent knew and the log no longer has. */
function recovered(): readonly Finding[] {
  const message = 'the GPU has recovered since';
  return ['Xid', 'GpuFallenOffBus'].map((type) => ({ type, status: false, reason: 'Recovered', message }));
}

function finding(type: 'Xid' | 'XidPassing', tally: XidTally, remedy: Remedy = tally.judgement.remedy): Finding {
  const { judgement, xid } = tally;
  const { class: reason, severity } = judgement;
  return { type, instance: String(xid), status: true, reason, message: messageOf(tally), severity, remedy };
}

function lostFinding(remedy: Remedy = 'reboot'): Finding {
  const message = 'the driver says that the GPU has fallen off the bus';
  return { type: 'GpuFallenOffBus', status: true, reason: 'NoAnswer', message, remedy };
}

/** `Xid 31: GPU memory page fault; process 7194 (python); Ch 00000008, intr …; 3 times`. */
function messageOf({ xid, judgement, line, count, gpuInstance, computeInstance }: XidTally): string {
  const { pid, processName, text } = line;
  const process = pid === undefined ? processName : `${pid}${processName === undefined ? '' : ` (${processName})`}`;
  const instance =
    gpuInstance === undefined
      ? ''
      : ` on GPU instance ${gpuInstance}${computeInstance === undefined ? '' : `, compute instance ${computeInstance}`}`;
  const words = text.length > MESSAGE_LENGTH ? `${text.slice(0, MESSAGE_LENGTH)}…` : text;
  return [
    `Xid ${xid}${instance}: ${judgement.meaning}`,
    ...(process === undefined ? [] : [`process ${process}`]),
    ...(words === '' ? [] : [words]),
    ...(count > 1 ? [`${count} times`] : []),
  ].join('; ');
}

function switchFindings(memory: XidMemory, device: Device): readonly Finding[] {
  if (device.parent !== undefined) return [];
  return [...memory.switches.values()].map(({ pciAddress, sxid, text }) => ({
    type: 'NvSwitchFault',
    instance: pciAddress,
    status: true,
    reason: 'FatalSwitchError',
    message: `SXid ${sxid} of the NVSwitch at ${pciAddress}: ${text.slice(0, MESSAGE_LENGTH)}`,
  }));
}

/** What is over when the log has no line on it. */
function quietFindings({ driverLoadedAtMs }: XidMemory, device: Device): readonly Finding[] {
  const passing: Finding = { type: 'XidPassing', status: false, reason: 'Recovered', message: 'no other error was reported lately' };
  if (driverLoadedAtMs === undefined || device.parent !== undefined) return [passing];
  const message = 'no other NVSwitch has reported a fatal error since the driver was loaded';
  return [passing, { type: 'NvSwitchFault', status: false, reason: 'Recovered', message }];
}

/** One GPU's error counts on that GPU alone and not again on its instances. */
function readingsOf(tallies: readonly XidTally[]): readonly Reading[] {
  return [...new Set(tallies.map(({ xid }) => xid))]
    .sort((a, b) => a - b)
    .flatMap((xid) => {
      const same = tallies.filter((tally) => tally.xid === xid);
      const times = same.map(({ lastMs }) => lastMs).filter((time) => time !== undefined);
      const labels = { xid: String(xid) };
      const errors = { metric: XID_ERRORS.name, labels, value: same.reduce((sum, { count }) => sum + count, 0) };
      return times.length === 0 ? [errors] : [errors, { metric: XID_LAST_TIME.name, labels, value: Math.max(...times) / 1_000 }];
    });
}
