import type { DeviceProcess, DeviceReport, Problem } from '../../model/collection.ts';
import { defined } from '../../model/defined.ts';
import type { Device } from '../../model/device.ts';
import type { Finding } from '../../model/health.ts';
import type { Labels, MetricSpec, Value } from '../../model/metric.ts';
import { memoizedBy, type Readings } from '../../model/readings.ts';
import { declaredFinding } from '../kit/finding.ts';
import { asOf } from '../kit/pace.ts';
import { pcieErrorFindings } from '../kit/pcie/health.ts';
import { type PcieErrors, pcieErrorReadings } from '../kit/pcie/pcie.ts';
import type { OwnFacts, ProcessFacts } from '../kit/process-facts.ts';
import type { ReadingWriter } from '../kit/reading-writer.ts';
import { conditions } from './conditions.ts';
import { type GpuFunction, type GpuName, gpuDevice, instanceDevice, type NodeFacts, PLACE } from './devices.ts';
import { concerningInstances, gpuFindings, instanceFindings } from './findings.ts';
import { metrics } from './metrics.ts';
import type { EccSample, GpuIdentity, GpuSample, LinkSample, MigSample, PartTimes, ProcessSample, Unread } from './sample.ts';
import { SEVERITIES, totalOf } from './sample.ts';
import { writeUnifiedMemory } from './unified-memory.ts';
import { MEMORY_KEYS, VALUES, type ValueKey, type Values } from './values.ts';

/** Facts that all GPUs of one read share. */
interface ReadFacts extends NodeFacts {
  readonly cudaVersion: string | undefined;
  readonly gpus: readonly GpuSample[];
  readonly stuck: StuckProcesses;
  pcieOf(address: string): PcieErrors;
  functionOf(address: string): GpuFunction;
  /** By the id of the device. */
  writerOf(id: string): ReadingWriter;
  cliqueFindings(gpu: GpuSample): readonly Finding[];
  processOf(pid: number): ProcessFacts;
}

/** Converts the sample of a GPU to reports of it and its instances. `index` is the position of the GPU in the driver's order. */
export function reportsOf(gpu: GpuSample, { index, id }: GpuName, facts: ReadFacts): { reports: DeviceReport[]; problems: Problem[] } {
  const device = gpuDevice(gpu, { index, id }, facts);
  const pcie = device.pciAddress === undefined ? undefined : facts.pcieOf(device.pciAddress);
  const ofFunction = pcie === undefined ? [] : errorFindings(pcie);
  const { count, list = [] } = gpu.processes ?? {};
  // An entry without a PID may be any process.
  const isComplete = count === new Set(list.map(({ pid }) => pid)).size;
  /** Findings of the users stand before those of the PCI function. */
  const reportOf = (of: Device, users: readonly ProcessSample[], readings: Readings, [own, shared]: Findings): DeviceReport => {
    const processes = processesOf(users, facts.processOf);
    const stuck = facts.stuck.findings(of.id, { pids: users.map(({ pid }) => pid), isComplete }, facts.processOf);
    const findings = [...own, ...stuck, ...shared];
    return {
      device: of,
      read: { readings, findings, ...(processes.length > 0 && { processes }), ...(count !== undefined && { hasAllProcesses: true }) },
    };
  };
  const findings = gpuFindings(gpu, facts.gpus);
  const writer = facts.writerOf(id);
  gpuReadings(writer, gpu, { index, cudaVersion: facts.cudaVersion });
  writeUnifiedMemory(writer, gpu, facts.trees.proc);
  if (pcie !== undefined) writer.addAll(errorReadings(pcie));
  const ofClique = asOf(facts.cliqueFindings(gpu), gpu.times?.get('fabric'));
  const reports = [reportOf(device, list, writer.end(), [[...findings, ...ofClique], ofFunction])];
  const problems = problemsOf(device, gpu.unread);
  for (const instance of gpu.instances ?? []) {
    const inside = instanceDevice(instance, device, facts);
    if (instance.isUnlisted === true) {
      reports.push({ device: inside });
      continue;
    }
    const inner = facts.writerOf(inside.id);
    instanceReadings(inner, instance, sharesMemory(instance, gpu.instances ?? []));
    // A GPU and its instances are one function on the bus, so they share its findings.
    const found = [...concerningInstances(findings), ...instanceFindings(instance)];
    reports.push(reportOf(inside, processesIn(list, instance), inner.end(), [found, concerningInstances(ofFunction)]));
    problems.push(...problemsOf(inside, instance.unread));
  }
  return { reports, problems };
}

const errorReadings = memoizedBy(pcieErrorReadings);
const errorFindings = memoizedBy(pcieErrorFindings);

type Findings = readonly [own: readonly Finding[], shared: readonly Finding[]];

/** Writes the readings of a GPU. `index`: its position in the driver's order. */
export function gpuReadings(
  writer: ReadingWriter,
  gpu: GpuSample,
  node: { readonly index: number; readonly cudaVersion?: string | undefined },
): void {
  const { values, ecc, fabric = {}, recovery, processes, links = [], peers = [], times } = gpu;
  const { count, list = [] } = processes ?? {};
  const clients = new Set(list.filter(({ isMpsClient }) => isMpsClient === true).map(({ pid }) => pid));
  writeValues(writer, ...withBusy(values, times));
  writeEcc(writer, ecc, times);
  const [fabricMs, linksMs, peersMs] = [times?.get('fabric'), times?.get('links'), times?.get('peers')];
  for (const [fault, isSeen] of Object.entries(fabric.told ?? {}))
    writer.add(metrics.fabricFault.name, Number(isSeen), { fault }, fabricMs);
  const state = ({ name }: MetricSpec, label: string, present: string | undefined, readMs: number | undefined): void =>
    writer.add(name, present === undefined ? undefined : 1, present === undefined ? undefined : { [label]: present }, readMs);
  state(metrics.fabricState, 'state', fabric.state, fabricMs);
  state(metrics.fabricHealth, 'state', fabric.health, fabricMs);
  state(metrics.recoveryAction, 'action', recovery?.action?.action, times?.get('recovery'));
  writer.add(metrics.processes.name, count);
  writer.add(metrics.mpsClients.name, count && clients.size);
  for (const link of links) writeLink(writer, link, linksMs);
  for (const { uuid, hasAccess } of peers)
    writer.add(metrics.nvlinkPeerAccess.name, hasAccess === undefined ? undefined : Number(hasAccess), { peer_uuid: uuid }, peersMs);
  writer.add(metrics.info.name, 1, infoLabels(gpu, node));
  if (PLACE.some((part) => gpu.identity?.[part] !== undefined)) writer.add(metrics.platform.name, 1, placeLabels(gpu.identity));
}

/**
 * Writes the readings of a MIG instance. `sharesMemory` is true when its GPU instance has several compute instances. The driver then
 * reports the memory of all of them for each, which has metrics of its own: a sum over the instances would count it several times.
 */
function instanceReadings(writer: ReadingWriter, { values, ecc, times }: MigSample, sharesMemory: boolean): void {
  const hidden = sharesMemory ? Object.fromEntries(MEMORY_KEYS.map((key) => [key, undefined])) : {};
  writeValues(writer, ...withBusy({ ...values, ...hidden }, times));
  if (sharesMemory) {
    writer.add(metrics.gpuInstanceMemoryTotal.name, values?.memoryTotalBytes);
    writer.add(metrics.gpuInstanceMemoryUsed.name, values?.memoryUsedBytes);
  }
  writeEcc(writer, ecc, times);
}

const ROWS = Object.entries(VALUES).map(([key, { metric, labels }]) => ({ key: key as ValueKey, metric: metric.name, labels }));

/** The known values, in the order of the table. `times`: of those that the present read kept. */
function writeValues(writer: ReadingWriter, values: Values, times: PartTimes): void {
  for (let at = 0; at < ROWS.length; at += 1) {
    const { key, metric, labels } = ROWS[at] as (typeof ROWS)[number];
    const value = values[key];
    if (value !== undefined) writer.add(metric, typeof value === 'boolean' ? Number(value) : value, labels, times.get(key));
  }
}

/** If the driver reports no utilization, the activity of the graphics unit replaces it: it has the same meaning. */
function withBusy(values: Values = {}, times: PartTimes = NONE_KEPT): readonly [Values, PartTimes] {
  const atMs = times.get('graphicsActivityRatio');
  if (values.busyRatio !== undefined) return [values, times];
  return [{ ...values, busyRatio: values.graphicsActivityRatio }, atMs === undefined ? times : new Map([...times, ['busyRatio', atMs]])];
}

const NONE_KEPT: PartTimes = new Map();

function writeEcc(writer: ReadingWriter, { volatile = [], lifetime = [] }: EccSample = {}, times = NONE_KEPT): void {
  for (const { severity, location, count } of lifetime)
    writer.add(metrics.eccErrors.name, count === undefined ? undefined : plain(count), { severity, location }, times.get('lifetime'));
  for (const severity of SEVERITIES) {
    const total = totalOf(volatile, severity);
    writer.add(metrics.errors.name, total === undefined ? undefined : plain(total), { kind: `ecc_${severity}` }, times.get('volatile'));
  }
}

const plain = (value: bigint): Value => (value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : value);

function writeLink(
  writer: ReadingWriter,
  { number, isUp, bytesPerSecond, transmittedBytes, receivedBytes, errors = {} }: LinkSample,
  readMs?: number,
): void {
  const port = `nvlink${number}`;
  writer.add(metrics.linkUp.name, Number(isUp), { port }, readMs);
  writer.add(metrics.linkSpeed.name, bytesPerSecond, { port }, readMs);
  writer.add(metrics.transmittedBytes.name, transmittedBytes, { port }, readMs);
  writer.add(metrics.receivedBytes.name, receivedBytes, { port }, readMs);
  for (const [kind, count] of Object.entries(errors)) writer.add(metrics.nvlinkErrors.name, count, { port, kind }, readMs);
}

function infoLabels({ identity = {}, fabric = {} }: GpuSample, { index, cudaVersion = '' }: Parameters<typeof gpuReadings>[2]): Labels {
  const text = (name: keyof GpuIdentity): string => identity[name] ?? '';
  return {
    index: String(index),
    cuda_version: cudaVersion,
    minor: text('minor'),
    brand: text('brand'),
    architecture: text('architecture'),
    vbios: text('vbios'),
    board_part: text('boardPart'),
    gpu_part: text('gpuPart'),
    compute_mode: text('computeMode'),
    gsp_firmware: text('gspFirmware'),
    fabric_cluster: fabric.cluster ?? '',
    fabric_clique: fabric.clique ?? '',
  };
}

const placeLabels = (identity: GpuIdentity = {}): Labels => Object.fromEntries(PLACE.map((part) => [part, identity[part] ?? '']));

/** Compute instances of one GPU instance share its memory. */
const sharesMemory = ({ gpuInstance }: MigSample, all: readonly MigSample[]): boolean =>
  all.filter((other) => other.gpuInstance === gpuInstance).length > 1;

function problemsOf({ id }: Device, unread: readonly Unread[] = []): Problem[] {
  const of = (...wanted: readonly Unread['kind'][]): readonly Unread[] => unread.filter(({ kind }) => wanted.includes(kind));
  return [...summaryOf('unknown-value', id, of('unknown')), ...summaryOf('value-unreadable', id, of('error', 'reset-required'))];
}

/** A faulty GPU can give an error for a hundred values. The message shows three of them. */
function summaryOf(code: string, device: string, unread: readonly Unread[]): readonly Problem[] {
  if (unread.length === 0) return [];
  const shown = unread.slice(0, 3).map(({ name, text }) => `${name}: ${text}`.slice(0, 120));
  const more = unread.length > 3 ? ` and ${unread.length - 3} more` : '';
  return [{ code, device, message: `${shown.join(', ')}${more}` }];
}

/** Reports an instance of a lost GPU as lost: the driver no longer lists it. */
export function lostWith(gpu: DeviceReport, instance: Device): DeviceReport {
  return { device: instance, read: { readings: [], findings: concerningInstances(gpu.read?.findings ?? []) } };
}

/** Returns the processes inside an instance. */
export const processesIn = (
  list: readonly ProcessSample[],
  of: Pick<MigSample, 'gpuInstance' | 'computeInstance'>,
): readonly ProcessSample[] =>
  list.filter(({ gpuInstance, computeInstance }) => gpuInstance === of.gpuInstance && computeInstance === of.computeInstance);

/**
 * Returns the processes of a device with their names and owners, each process once. The driver lists a process with compute and graphics
 * twice with about the same memory, so the larger value counts, not the sum.
 */
export function processesOf(list: readonly ProcessSample[], factsOf: (pid: number) => ProcessFacts): readonly DeviceProcess[] {
  const byPid = new Map<number, ProcessSample>();
  for (const listed of list) {
    const memoryBytes = Math.max(listed.memoryBytes ?? -1, byPid.get(listed.pid)?.memoryBytes ?? -1);
    byPid.set(listed.pid, { ...byPid.get(listed.pid), ...listed, memoryBytes: memoryBytes < 0 ? undefined : memoryBytes });
  }
  return [...byPid.values()].map(({ pid, memoryBytes, utilizationRatio, isMpsClient }) => {
    const { owner, own } = factsOf(pid);
    const name = own?.name === '' ? undefined : own?.name;
    const isStuck = own?.isStuck === true ? (true as const) : undefined;
    return { ...defined({ pid, name, isStuck, isMpsClient, memoryUsedBytes: memoryBytes, utilization: utilizationRatio }), ...owner };
  });
}

/** Memory of one device between two reads. */
interface Waiting {
  /** Keys of the processes in state D. */
  readonly keys: ReadonlySet<string>;
  /** Process that the condition is about. It was in state D at each read since it was chosen. */
  readonly suspect?: string;
}

/** Processes of a device in one read. */
interface UsersOfDevice {
  readonly pids: readonly number[];
  /** False when the driver may not list all of them. */
  readonly isComplete: boolean;
}

/**
 * Finds processes that are in state D at every read. A sound process is in that state for moments, so one read proves nothing, and two
 * processes that take turns prove nothing either.
 */
export class StuckProcesses {
  #before: ReadonlyMap<string, Waiting> = new Map();
  #now = new Map<string, Waiting>();

  /** Begins a new collection, in which the driver answered. */
  renew(): void {
    this.#before = this.#now;
    this.#now = new Map();
  }

  /** Returns no finding while it is unknown whether a process is stuck. */
  findings(device: string, { pids, isComplete }: UsersOfDevice, factsOf: (pid: number) => ProcessFacts): readonly Finding[] {
    const users = [...new Set(pids)].map((pid) => factsOf(pid).own);
    const stuck = users.filter((own): own is OwnFacts => own?.isStuck === true);
    const before = this.#before.get(device);
    const suspect = suspectOf(before, stuck);
    this.#now.set(device, { keys: new Set(stuck.map(({ key }) => key)), ...defined({ suspect: suspect?.key }) });
    if (suspect !== undefined) return [stuckFinding(suspect)];
    const isFirstSight = before === undefined && stuck.length > 0;
    if (!isComplete || isFirstSight || users.includes(undefined)) return [];
    return [
      declaredFinding(conditions.StuckProcess, 'NoneStuck', {
        status: false,
        message: 'no process of the device waits in the kernel at every read',
      }),
    ];
  }
}

/** When the suspect ends, one read finds no suspect. The time of the next one then begins anew. */
function suspectOf(before: Waiting | undefined, stuck: readonly OwnFacts[]): OwnFacts | undefined {
  if (before === undefined) return undefined;
  return stuck.find(({ key }) => (before.suspect === undefined ? before.keys.has(key) : before.suspect === key));
}

/** Names that NVIDIA's own programs have. When one of them waits, it waits for the driver. */
const DRIVER_PROGRAM = /^nvidia/;

function stuckFinding({ pid, name }: OwnFacts): Finding {
  const message = `process ${pid} (${name}) waits in the kernel (state D) at every read`;
  return declaredFinding(conditions.StuckProcess, 'WaitsInKernel', {
    status: true,
    message,
    ...(DRIVER_PROGRAM.test(name) && { remedy: 'reboot' }),
  });
}
