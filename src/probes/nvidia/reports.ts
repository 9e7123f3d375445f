import type { Tree } from '../../host/fs/tree.ts';
import { doesPciFunctionAnswer, readAer } from '../../host/pci/pcie.ts';
import type { DeviceReport, Problem } from '../../model/collection.ts';
import type { Device } from '../../model/device.ts';
import type { Finding } from '../../model/health.ts';
import type { Reading } from '../../model/metric.ts';
import { asOf, isDue, type Pace } from '../kit/pace.ts';
import { pcieErrorFindings } from '../kit/pcie/health.ts';
import { PCIE_EVERY_MS, pcieErrorReadings } from '../kit/pcie/pcie.ts';
import type { ProcessFacts } from '../kit/process-facts.ts';
import { type GpuName, gpuDevice, instanceDevice, type NodeFacts } from './devices.ts';
import { concerningInstances, gpuFindings } from './findings.ts';
import { instanceFindings } from './memory-findings.ts';
import { processesIn, processesOf, type UsersOfDevice } from './processes.ts';
import { gpuReadings, instanceReadings } from './readings.ts';
import type { GpuSample, MigSample, ProcessSample, Unread } from './sample.ts';

/** Readings and findings of the PCI function of a GPU. */
interface PcieReport {
  readonly readings: readonly Reading[];
  readonly findings: readonly Finding[];
}

/** Reads the PCI functions of GPUs. The interval is long, because each read accesses the configuration space. */
export class PcieErrors {
  readonly #sys: Tree;
  readonly #reports = new Map<string, PcieReport & { readonly atMs: number }>();

  constructor(sys: Tree) {
    this.#sys = sys;
  }

  of(address: string, pace: Pace): PcieReport {
    const known = this.#reports.get(address);
    if (known !== undefined && !isDue(known.atMs, PCIE_EVERY_MS, pace)) {
      const { readings, findings, atMs } = known;
      return { readings: asOf(readings, atMs), findings: asOf(findings, atMs) };
    }
    const answers = doesPciFunctionAnswer(this.#sys, address);
    const errors = { aer: readAer(this.#sys, address), ...(answers === undefined ? {} : { answers }) };
    const report = { readings: pcieErrorReadings(errors), findings: pcieErrorFindings(errors), atMs: pace.nowMs };
    this.#reports.set(address, report);
    return report;
  }
}

/** Reports and problems of a GPU and its instances from one read. */
export interface GpuReports {
  readonly reports: readonly DeviceReport[];
  readonly problems: readonly Problem[];
}

/** Facts that all GPUs of one read share. */
export interface ReadFacts extends NodeFacts {
  readonly cudaVersion: string | undefined;
  readonly gpus: readonly GpuSample[];
  pcieOf(address: string): PcieReport;
  cliqueFindings(gpu: GpuSample): readonly Finding[];
  processOf(pid: number): ProcessFacts;
  stuckProcesses(device: string, users: UsersOfDevice): readonly Finding[];
}

/** Converts the sample of a GPU to reports. `index` is the position of the GPU in the driver's order. */
export function reportsOf(gpu: GpuSample, { index, id }: GpuName, facts: ReadFacts): GpuReports {
  const device = gpuDevice(gpu, { index, id }, facts);
  const pcie = device.pciAddress === undefined ? { readings: [], findings: [] } : facts.pcieOf(device.pciAddress);
  const findings = gpuFindings(gpu, facts.gpus);
  const processes = gpu.processes?.list ?? [];
  const isListed = gpu.processes?.count !== undefined;
  // An entry without a PID may be any process.
  const isComplete = gpu.processes?.count === new Set(processes.map(({ pid }) => pid)).size;
  const usersAmong = (list: readonly ProcessSample[]): UsersOfDevice => ({ pids: list.map(({ pid }) => pid), isComplete });
  const whole = reportOf(
    device,
    [...gpuReadings(gpu, { index, cudaVersion: facts.cudaVersion }), ...pcie.readings],
    [
      ...findings,
      ...asOf(facts.cliqueFindings(gpu), gpu.times?.get('fabric')),
      ...facts.stuckProcesses(device.id, usersAmong(processes)),
      ...pcie.findings,
    ],
    processesOf(processes, facts.processOf),
    isListed,
  );
  const instances = gpu.instances ?? [];
  const parts = instances.map((instance) => {
    const inside = instanceDevice(instance, device, facts);
    if (instance.isUnlisted === true) return { report: { device: inside }, problems: [] };
    const own = processesIn(processes, instance);
    const report = reportOf(
      inside,
      instanceReadings(instance, sharesMemory(instance, instances)),
      // A GPU and its instances are one function on the bus, so they share its findings.
      [
        ...concerningInstances(findings),
        ...instanceFindings(instance),
        ...facts.stuckProcesses(inside.id, usersAmong(own)),
        ...concerningInstances(pcie.findings),
      ],
      processesOf(own, facts.processOf),
      isListed,
    );
    return { report, problems: problemsOf(inside, instance.unread) };
  });
  return {
    reports: [whole, ...parts.map(({ report }) => report)],
    problems: [...problemsOf(device, gpu.unread), ...parts.flatMap(({ problems }) => problems)],
  };
}

function reportOf(
  device: Device,
  readings: readonly Reading[],
  findings: readonly Finding[],
  processes: ReturnType<typeof processesOf>,
  isListed: boolean,
): DeviceReport {
  const users = { ...(processes.length === 0 ? {} : { processes }), ...(isListed ? { hasAllProcesses: true as const } : {}) };
  return { device, read: { readings, findings, ...users } };
}

/** Compute instances of one GPU instance share its memory. */
const sharesMemory = ({ gpuInstance }: MigSample, all: readonly MigSample[]): boolean =>
  all.filter((other) => other.gpuInstance === gpuInstance).length > 1;

function problemsOf({ id }: Device, unread: readonly Unread[] = []): readonly Problem[] {
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
