import { type CommandResult, runCommand } from '../../host/command.ts';
import type { Host } from '../../host/host.ts';
import type { Collection, DeviceProcess, DeviceReport, Problem } from '../../model/collection.ts';
import type { Device } from '../../model/device.ts';
import type { Finding } from '../../model/health.ts';
import type { Reading } from '../../model/metric.ts';
import type { Probe } from '../family.ts';
import { PCIE_EVERY_MS, pcieErrorFindings, pcieErrorReadings, readPcie } from '../pcie.ts';
import { deviceFromProc, devicesOf, type Located, type NodeFacts, type Shown } from './devices.ts';
import { childrenOf, type Element, textAt } from './document.ts';
import { withFaults } from './faults.ts';
import { gpuFindings } from './findings.ts';
import { hardwareOnBus } from './hardware.ts';
import { instanceKeys, type MigName, type MigNames, migNames, parseListing } from './listing.ts';
import { instanceFindings } from './memory-findings.ts';
import { NvmlSource, type ToldXid } from './nvml/source.ts';
import type { NvidiaOptions } from './options.ts';
import { processesOf } from './processes.ts';
import { readGpu, readMig, type Told, wordAt } from './readings.ts';
import { readSmi, type SmiDocument, type SmiResult, type SurplusFault, surplusFaults } from './smi.ts';
import { WidthMemory } from './width-memory.ts';

/** What the PCI function of a GPU told. */
interface PcieTold {
  readonly readings: readonly Reading[];
  readonly findings: readonly Finding[];
  readonly instanceFindings: readonly Finding[];
  readonly atMs: number;
}

/** What one read came to, whoever told it. */
interface Read {
  readonly log: Element;
  readonly names: MigNames;
  readonly faults: readonly SurplusFault[];
  readonly problems: Problem[];
  readonly source: string;
}

/** One read of NVML or `nvidia-smi` with what only a series of reads can tell: GPUs that are no longer shown, links that became narrower. */
export class NvidiaProbe implements Probe {
  readonly #host: Host;
  readonly #options: NvidiaOptions;
  readonly #nvml: NvmlSource;
  readonly #widths = new WidthMemory();
  readonly #pcie = new Map<string, PcieTold>();
  /** Reports and what they were made of: whoever compares them need not look into one that is the same. */
  readonly #made = new WeakMap<Element, { readonly made: readonly unknown[]; readonly report: DeviceReport }>();
  /** A command that even SIGKILL did not end. */
  #unreaped: Promise<void> | undefined;
  #known: readonly DeviceReport[] = [];
  #migNames: ReadonlyMap<string, MigName> = new Map();

  constructor(host: Host, options: NvidiaOptions) {
    this.#host = host;
    this.#options = options;
    this.#nvml = new NvmlSource(host, options);
  }

  async collect(): Promise<Collection> {
    const nvml = await this.#nvml.read();
    if (nvml?.problem !== undefined) return this.#failed({ problem: nvml.problem, surplus: '' });
    if (nvml !== undefined) return this.#assembled({ ...nvml, problems: [...nvml.problems], source: this.#nvml.name() });
    return await this.#collectBySmi();
  }

  watch(wake: () => void): () => void {
    return this.#nvml.watch(wake);
  }

  /** Xids that the driver told its library since the last call. */
  takeXids(): readonly ToldXid[] {
    return this.#nvml.takeXids();
  }

  close(): void {
    this.#nvml.close();
  }

  async #collectBySmi(): Promise<Collection> {
    if (this.#unreaped !== undefined) {
      return this.#blind({ code: 'smi-unreaped', message: 'nvidia-smi -q -x: an earlier one sleeps in the kernel' });
    }
    const startedMs = this.#host.clock.monotonic();
    const smi = readSmi(await this.#run(['-q', '-x'], this.#options.timeout));
    if (smi.problem !== undefined) return this.#failed(smi);
    return await this.#collected(smi, this.#options.timeout - (this.#host.clock.monotonic() - startedMs));
  }

  async #run(args: readonly string[], deadlineMs: number): Promise<CommandResult> {
    const result = await runCommand(this.#options['smi-path'], args, { deadlineMs, children: this.#host.children });
    if (result.stillRunning !== undefined) {
      this.#unreaped = result.stillRunning.then(() => {
        this.#unreaped = undefined;
      });
    }
    return result;
  }

  async #collected({ log, surplus, exitCode }: SmiDocument, remainingMs: number): Promise<Collection> {
    const problems: Problem[] = [];
    const names = await this.#instances(childrenOf(log, 'gpu'), remainingMs, problems);
    const faults = surplusFaults(surplus);
    if (exitCode === 14 && !faults.some(({ fault }) => fault === 'inforom'))
      problems.push({ code: 'inforom-corrupted', message: 'nvidia-smi -q -x: exit status 14' });
    return this.#assembled({ log, names, faults, problems, source: this.#options['smi-path'] });
  }

  #assembled({ log, names, faults, problems, source }: Read): Collection {
    const gpus = childrenOf(log, 'gpu');
    const cudaVersion = textOf(log, ['cuda_umd_version', 'cuda_version']);
    const driver = textOf(log, ['kmd_version', 'driver_version']);
    const facts: NodeFacts = { ...(driver === undefined ? {} : { driver }), host: this.#host, instances: names };
    let isUnnamed = false;
    const reports = gpus.flatMap((gpu, index) => {
      const node = { index, ...(cudaVersion === undefined ? {} : { cudaVersion }) };
      const locate = (): Shown => ({
        located: devicesOf(gpu, index, facts),
        isUnnamed: instanceKeys(gpu).some((key) => !names.has(key)),
      });
      const shown = this.#nvml.memoOf(gpu)?.shown(locate) ?? locate();
      isUnnamed ||= shown.isUnnamed;
      return shown.located.map((each) => this.#report(each, gpu, node, problems));
    });
    this.#known = withFaults([...reports, ...this.#unshown(reports, faults)], faults, problems);
    if (gpus.length === 0 && faults.length === 0 && hardwareOnBus(this.#host))
      problems.push({ code: 'no-devices', message: `${source}: no GPU is shown` });
    // An instance under its makeshift name: the one that it really is may be known from before, and is not missing.
    return { reports: this.#known, problems, source, ...(isUnnamed ? { complete: false } : {}) };
  }

  #report(
    { device, element }: Located,
    gpu: Element,
    node: { readonly index: number; readonly cudaVersion?: string },
    problems: Problem[],
  ): DeviceReport {
    const isGpu = device.kind === 'gpu';
    const memo = this.#nvml.memoOf(element);
    const tell = (): Told => (isGpu ? readGpu(element, node) : readMig(element, { sharesMemory: sharesMemory(element, gpu) }));
    const told = memo?.told(tell, isGpu ? this.#nvml.gpuOf(element)?.links : []) ?? tell();
    if (told.unknown.length > 0) problems.push({ code: 'unknown-value', device: device.id, message: summaryOf(told.unknown) });
    if (told.failed.length > 0) problems.push({ code: 'value-unreadable', device: device.id, message: summaryOf(told.failed) });
    const processes = memo?.processes(() => this.#processes(device, gpu)) ?? this.#processes(device, gpu);
    const judge = (): readonly Finding[] =>
      isGpu ? gpuFindings(gpu) : [...concerningInstances(gpuFindings(gpu)), ...instanceFindings(element)];
    const findings = memo?.findings(judge) ?? judge();
    const compare = (): readonly Finding[] => (isGpu ? this.#widths.findings(device.id, element) : []);
    const widths = memo?.comparisons(compare) ?? compare();
    const pcie = this.#readPcie(device.pciAddress);
    const made = [device, told, processes, findings, widths, pcie];
    const known = this.#made.get(element);
    if (known?.made.every((part, index) => part === made[index])) return known.report;
    const report: DeviceReport = {
      device,
      readings: pcie === undefined || !isGpu ? told.readings : [...told.readings, ...pcie.readings],
      findings: [...findings, ...((isGpu ? pcie?.findings : pcie?.instanceFindings) ?? []), ...widths],
      ...(processes.length === 0 ? {} : { processes }),
    };
    if (memo !== undefined) this.#made.set(element, { made, report });
    return report;
  }

  #processes({ kind, attributes }: Device, gpu: Element): readonly DeviceProcess[] {
    return processesOf(gpu, this.#host.proc, kind === 'gpu' ? undefined : `${attributes?.gpuInstance}/${attributes?.computeInstance}`);
  }

  #readPcie(address: string | undefined): PcieTold | undefined {
    if (address === undefined) return undefined;
    const nowMs = this.#host.clock.now();
    const known = this.#pcie.get(address);
    if (known !== undefined && nowMs - known.atMs < PCIE_EVERY_MS) return known;
    if (!this.#host.sys.exists(`bus/pci/devices/${address}`)) return undefined;
    const sample = readPcie(this.#host.sys, address);
    const findings = pcieErrorFindings(sample);
    const told = { readings: pcieErrorReadings(sample), findings, instanceFindings: concerningInstances(findings), atMs: nowMs };
    this.#pcie.set(address, told);
    return told;
  }

  /** GPUs that the lines around the document name as unreadable: known from earlier reads, they stay, as lost. */
  #unshown(reports: readonly DeviceReport[], faults: readonly SurplusFault[]): readonly DeviceReport[] {
    const shown = new Set(reports.map(({ device }) => device.id));
    const lost = new Set(faults.flatMap(({ fault, pciAddress }) => (fault === 'lost' ? [pciAddress] : [])));
    const known = this.#known.map(({ device }) => device).filter(({ pciAddress }) => pciAddress !== undefined && lost.has(pciAddress));
    const unseen = [...lost].filter((address) => !known.some(({ pciAddress }) => pciAddress === address));
    const devices = [...known, ...unseen.flatMap((address) => deviceFromProc(this.#host, address) ?? [])];
    return devices.filter(({ id }) => !shown.has(id)).map((device) => ({ device, readings: [], findings: [] }));
  }

  /**
   * Names of the MIG instances. An instance whose name was once told keeps it while the listing fails: a device that changes its
   * name would be one that went missing and another that appeared.
   */
  async #instances(gpus: readonly Element[], remainingMs: number, problems: Problem[]): Promise<MigNames> {
    const wanted = gpus.flatMap((gpu) => instanceKeys(gpu));
    if (wanted.length === 0) {
      this.#migNames = new Map();
      return this.#migNames;
    }
    const listing = await this.#run(['-L'], Math.max(500, remainingMs));
    const named = migNames(gpus, parseListing(listing.stdout));
    const missing = wanted.filter((key) => !named.has(key));
    if (missing.length > 0) {
      const why = listing.failure ?? `exit status ${listing.exitCode ?? listing.signal}`;
      problems.push({ code: 'mig-names-unknown', message: `nvidia-smi -L: ${why}, no name for ${missing.length} MIG instances` });
      for (const key of missing) {
        const earlier = this.#migNames.get(key);
        if (earlier !== undefined) named.set(key, earlier);
      }
    }
    this.#migNames = named;
    return named;
  }

  /** Nothing could be read: without hardware that is as it should be. */
  #failed({ problem, surplus }: Extract<SmiResult, { problem: object }>): Collection {
    const needsHardware: readonly string[] = ['smi-not-found', 'no-devices', 'driver-not-loaded', 'library-not-found'];
    if (needsHardware.includes(problem.code) && this.#known.length === 0 && !hardwareOnBus(this.#host))
      return { reports: [], problems: [] };
    if (problem.code === 'no-devices') {
      // The driver was asked and has none: what it had before is missing.
      this.#known = [];
      return { reports: [], problems: [problem] };
    }
    if (problem.code === 'gpu-unreadable') {
      const faults = surplusFaults(surplus);
      const known = this.#known.map(({ device }) => ({ device, readings: [], findings: [] }));
      this.#known = withFaults([...known, ...this.#unshown(known, faults)], faults, []);
    }
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
const CONCERNS_INSTANCES: ReadonlySet<string> = new Set(['GpuLost', 'RecoveryAction', 'FabricNotReady', 'PciFunctionGone']);
const concerningInstances = (findings: readonly Finding[]): readonly Finding[] =>
  findings.filter(({ type }) => CONCERNS_INSTANCES.has(type));

/** Compute instances of one GPU instance share its memory. */
function sharesMemory(instance: Element, gpu: Element): boolean {
  const own = textAt(instance, 'gpu_instance_id');
  return childrenOf(gpu, 'mig_devices/mig_device').filter((other) => textAt(other, 'gpu_instance_id') === own).length > 1;
}

/** A sick GPU gives an error in each of a hundred places: three of them tell what it is about. */
function summaryOf(unknown: readonly string[]): string {
  const shown = unknown.slice(0, 3).map((text) => text.slice(0, 120));
  return unknown.length > 3 ? `${shown.join(', ')} and ${unknown.length - 3} more` : shown.join(', ');
}

function textOf(log: Element, paths: readonly string[]): string | undefined {
  return paths.map((path) => wordAt(log, path)).find((text) => text !== undefined);
}
