import { type CommandResult, runCommand } from '../../host/command.ts';
import type { Host } from '../../host/host.ts';
import { normalizePciAddress, numaNodeOf } from '../../host/pci.ts';
import type { Collection, DeviceReport, Problem } from '../../model/collection.ts';
import type { Finding } from '../../model/health.ts';
import type { Probe } from '../family.ts';
import { PCIE_EVERY_MS, type PcieSample, pcieErrorFindings, pcieErrorReadings, readPcie } from '../pcie.ts';
import { asBoolean } from './cell.ts';
import { devicesOf, type Located, type NodeFacts, parseListing } from './devices.ts';
import { cellAt, childrenOf, type Element, firstCell, textAt } from './document.ts';
import { gpuFindings } from './findings.ts';
import { hardwareOnBus } from './hardware.ts';
import type { NvidiaOptions } from './options.ts';
import { processesOf } from './processes.ts';
import { readGpu, readMig, type Told } from './readings.ts';
import { readSmi, type SmiResult, surplusFaults } from './smi.ts';
import { WidthMemory } from './width-memory.ts';

/** `nvidia-smi` with what only a series of reads can tell: GPUs that are no longer shown, links that became narrower. */
export class NvidiaProbe implements Probe {
  readonly #host: Host;
  readonly #options: NvidiaOptions;
  readonly #widths = new WidthMemory();
  readonly #pcie = new Map<string, { readonly sample: PcieSample; readonly atMs: number }>();
  /** A command that even SIGKILL did not end. */
  #unreaped: Promise<void> | undefined;
  #known: readonly DeviceReport[] = [];

  constructor(host: Host, options: NvidiaOptions) {
    this.#host = host;
    this.#options = options;
  }

  async collect(): Promise<Collection> {
    if (this.#unreaped !== undefined) {
      return this.#blind({ code: 'smi-unreaped', message: 'nvidia-smi -q -x: an earlier one sleeps in the kernel' });
    }
    const smi = readSmi(await this.#run(['-q', '-x']));
    if (smi.problem !== undefined) return this.#failed(smi);
    return await this.#collected(smi.log, smi.surplus);
  }

  async #run(args: readonly string[]): Promise<CommandResult> {
    const { 'smi-path': path, timeout } = this.#options;
    const result = await runCommand(path, args, { deadlineMs: timeout, children: this.#host.children });
    if (result.stillRunning !== undefined) {
      this.#unreaped = result.stillRunning.then(() => {
        this.#unreaped = undefined;
      });
    }
    return result;
  }

  async #collected(log: Element, surplus: string): Promise<Collection> {
    const gpus = childrenOf(log, 'gpu');
    const cudaVersion = textOf(log, ['cuda_umd_version', 'cuda_version']);
    const driver = textOf(log, ['kmd_version', 'driver_version']);
    const facts: NodeFacts = {
      ...(driver === undefined ? {} : { driver }),
      numaNode: (address) => numaNodeOf(this.#host.sys, address),
      migUuids: gpus.some((gpu) => asBoolean(cellAt(gpu, 'mig_mode/current_mig')) === true)
        ? parseListing((await this.#run(['-L'])).stdout)
        : new Map(),
    };
    const problems: Problem[] = [];
    const reports = gpus.flatMap((gpu, index) => {
      const node = { index, ...(cudaVersion === undefined ? {} : { cudaVersion }) };
      return devicesOf(gpu, facts).map((located) => this.#report(located, gpu, node, problems));
    });
    this.#known = withFaults([...reports, ...this.#unshown(reports, surplus)], surplus);
    if (gpus.length === 0 && hardwareOnBus(this.#host))
      problems.push({ code: 'no-devices', message: 'nvidia-smi -q -x: the document has no GPU' });
    return { reports: this.#known, problems };
  }

  #report(
    { device, element }: Located,
    gpu: Element,
    node: { readonly index: number; readonly cudaVersion?: string },
    problems: Problem[],
  ): DeviceReport {
    const isGpu = device.kind === 'gpu';
    const told: Told = isGpu ? readGpu(element, node) : readMig(element);
    for (const text of told.unknown) problems.push({ code: 'unknown-value', device: device.id, message: text });
    const instance = isGpu ? undefined : `${device.attributes?.gpuInstance}/${device.attributes?.computeInstance}`;
    const processes = processesOf(gpu, this.#host.proc, instance);
    const pcie = isGpu ? this.#readPcie(device.pciAddress) : undefined;
    const findings = isGpu
      ? [...gpuFindings(element), ...this.#widths.findings(device.id, element)]
      : gpuFindings(gpu).filter(({ type }) => concernsInstances(type));
    return {
      device,
      readings: pcie === undefined ? told.readings : [...told.readings, ...pcieErrorReadings(pcie)],
      findings: pcie === undefined ? findings : [...findings, ...pcieErrorFindings(pcie)],
      ...(processes.length === 0 ? {} : { processes }),
    };
  }

  #readPcie(address: string | undefined): PcieSample | undefined {
    if (address === undefined || !this.#host.sys.exists(`bus/pci/devices/${address}`)) return undefined;
    const nowMs = this.#host.clock.now();
    const known = this.#pcie.get(address);
    if (known !== undefined && nowMs - known.atMs < PCIE_EVERY_MS) return known.sample;
    const sample = readPcie(this.#host.sys, address);
    this.#pcie.set(address, { sample, atMs: nowMs });
    return sample;
  }

  /** GPUs that the lines around the document name as unreadable: known from earlier reads, they stay, as lost. */
  #unshown(reports: readonly DeviceReport[], surplus: string): readonly DeviceReport[] {
    const shown = new Set(reports.map(({ device }) => device.id));
    const lost = new Set(
      surplusFaults(surplus).flatMap(({ fault, pciAddress }) => (fault === 'lost' ? [normalizePciAddress(pciAddress)] : [])),
    );
    return this.#known
      .filter(({ device }) => !shown.has(device.id) && lost.has(device.pciAddress))
      .map(({ device }) => ({ device, readings: [], findings: [] }));
  }

  /** Nothing could be read: without hardware that is as it should be. */
  #failed({ problem, surplus }: Extract<SmiResult, { problem: object }>): Collection {
    const isAbsent = problem.code === 'smi-not-found' || problem.code === 'no-devices';
    if (isAbsent && !hardwareOnBus(this.#host) && this.#known.length === 0) return { reports: [], problems: [] };
    if (problem.code === 'gpu-unreadable')
      this.#known = withFaults(
        this.#known.map(({ device }) => ({ device, readings: [], findings: [] })),
        surplus,
      );
    return this.#blind(problem);
  }

  /** The GPUs known from earlier reads, without readings; of a driver that is of no use, that is a fault of each of them. */
  #blind(problem: Problem): Collection {
    const reason = { 'driver-not-loaded': 'DriverNotLoaded', 'driver-library-mismatch': 'LibraryMismatch' }[problem.code];
    if (reason === undefined) {
      const lost = this.#known.filter(
        ({ findings }) => problem.code === 'gpu-unreadable' && findings.some(({ type }) => type === 'GpuLost'),
      );
      return { reports: lost, problems: [problem], complete: false };
    }
    const finding: Finding = { type: 'DriverUnusable', status: true, reason, message: problem.message };
    return {
      reports: this.#known.map(({ device }) => ({ device, readings: [], findings: [finding] })),
      problems: [problem],
      complete: false,
    };
  }
}

/** What is wrong with a GPU as a whole is wrong with its instances; what concerns one memory or counter may not be. */
const concernsInstances = (type: string): boolean => type === 'GpuLost' || type === 'RecoveryAction' || type === 'FabricNotReady';

function withFaults(reports: readonly DeviceReport[], surplus: string): readonly DeviceReport[] {
  const faults = surplusFaults(surplus);
  if (faults.length === 0) return reports;
  return reports.map((report) => {
    const own = faults.filter(({ pciAddress }) => normalizePciAddress(pciAddress) === report.device.pciAddress);
    if (own.length === 0) return report;
    const types = own.map(({ fault }) => (fault === 'lost' ? 'GpuLost' : 'InforomCorrupted'));
    const kept = report.findings.filter(({ type }) => !types.includes(type as 'GpuLost'));
    const found = own.map(
      ({ fault, line }): Finding => ({
        type: fault === 'lost' ? 'GpuLost' : 'InforomCorrupted',
        status: true,
        reason: fault === 'lost' ? 'GpuIsLost' : 'InforomCorrupted',
        message: line,
      }),
    );
    return { ...report, findings: [...kept, ...found] };
  });
}

function textOf(log: Element, paths: readonly string[]): string | undefined {
  const cell = firstCell(log, paths);
  if (cell.kind === 'absent') return undefined;
  return paths.map((path) => textAt(log, path)?.trim()).find((text) => text !== undefined && text !== '' && text !== 'N/A');
}
