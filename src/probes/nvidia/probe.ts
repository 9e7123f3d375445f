import { existsSync } from 'node:fs';
import type { Host } from '../../host/host.ts';
import type { Collection, DeviceReport, Problem } from '../../model/collection.ts';
import type { Finding } from '../../model/health.ts';
import type { Probe } from '../family.ts';
import { deviceFromProc, devicesOf, type NodeFacts } from './devices.ts';
import { childrenOf, type Element } from './document.ts';
import { withFaults } from './faults.ts';
import { hardwareOnBus } from './hardware.ts';
import { areInstancesUnread, instanceKeys } from './listing.ts';
import { concerningInstances } from './made.ts';
import type { Shown } from './nvml/memo.ts';

import { NvmlSource, type ToldXid } from './nvml/source.ts';
import type { NvidiaOptions } from './options.ts';
import { wordAt } from './readings.ts';
import { Reporter, type RoundFacts, type WholeGpu } from './reporter.ts';
import { type SmiFailure, type SurplusFault, surplusFaults } from './smi.ts';
import { type SmiRead, SmiSource } from './smi-source.ts';
import { Surroundings } from './surroundings.ts';

/** What one read came to, whoever told it. */
interface Read extends SmiRead {
  readonly source: string;
  /** False after a round that asked for what changes quickly alone. */
  readonly isWhole: boolean;
  /** False where a GPU from before may be there and is not named. */
  readonly isComplete: boolean;
}

interface LogParts {
  readonly log: Element;
  readonly gpus: readonly WholeGpu[];
  readonly driver: string | undefined;
  readonly cudaVersion: string | undefined;
  /** How many GPUs the driver has, by its own word; 0 where it does not say. */
  readonly attached: number;
}

/** One read of NVML or `nvidia-smi` with what only a series of reads can tell: GPUs that are no longer shown, links that became narrower. */
export class NvidiaProbe implements Probe {
  readonly #host: Host;
  readonly #options: NvidiaOptions;
  readonly #nvml: NvmlSource;
  readonly #smi: SmiSource;
  readonly #reporter: Reporter;
  #surroundings: Surroundings | undefined;
  /** As last looked at. */
  #around = '';
  #parts: LogParts | undefined;
  #known: readonly DeviceReport[];

  constructor(host: Host, options: NvidiaOptions) {
    this.#host = host;
    this.#options = options;
    this.#nvml = new NvmlSource(host, options);
    this.#smi = new SmiSource(host, options);
    this.#reporter = new Reporter(host);
    this.#known = host.known.map((device) => ({ device }));
  }

  async collect(): Promise<Collection> {
    const released = this.#options['release-file'];
    if (released !== '' && existsSync(released)) {
      this.#nvml.letGo();
      return this.#blind({ code: 'driver-released', message: `${released} exists` });
    }
    const nvml = await this.#nvml.read();
    if (nvml === undefined || nvml.problem !== undefined) return await this.#collectWithout(nvml?.problem);
    const { log, names, faults, problems, isWhole, isComplete } = nvml;
    return this.#assembled({ log, names, faults, problems: [...problems], source: this.#nvml.name(), isWhole, isComplete });
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

  /** Without the library's word there is still the command's. `problem`: why there is none, if it was asked. */
  async #collectWithout(problem: SmiFailure['problem'] | undefined): Promise<Collection> {
    if (problem !== undefined && this.#options.source === 'nvml') return this.#failed({ problem, surplus: '' });
    const read = await this.#smi.read();
    // A library that is there knows more of what is wrong than that there is no command.
    if (read.problem?.code === 'smi-not-found' && problem !== undefined && problem.code !== 'library-not-found')
      return this.#failed({ problem, surplus: '' });
    if (read.problem !== undefined) return this.#failed(read);
    return this.#assembled({ ...read, source: this.#options['smi-path'], isWhole: true, isComplete: true });
  }

  #assembled({ log, names, faults, problems, source, isWhole, isComplete }: Read): Collection {
    const { gpus, driver, cudaVersion, attached } = this.#partsOf(log);
    this.#surroundings ??= new Surroundings(this.#host);
    if (isWhole) this.#around = this.#surroundings.look(names.size > 0);
    const unshown = attached - gpus.length - faults.filter(({ fault }) => fault !== 'inforom').length;
    if (unshown > 0) problems.push({ code: 'gpus-unshown', message: `${source}: ${attached} GPUs are announced, ${gpus.length} shown` });
    let isPartial = !isComplete || unshown > 0 || faults.some(({ fault }) => fault === 'closed');
    const reports: DeviceReport[] = [];
    const round: RoundFacts = { isWhole, nowMs: this.#host.clock.monotonic(), ...(cudaVersion === undefined ? {} : { cudaVersion }) };
    for (const gpu of gpus) {
      const { memo } = gpu;
      const known = memo?.shown(this.#around);
      const shown = known ?? this.#show(gpu, { ...(driver === undefined ? {} : { driver }), host: this.#host, instances: names });
      if (known === undefined) memo?.keepShown(shown, this.#around);
      isPartial ||= shown.isPartial;
      this.#reporter.report(shown.located, gpu, round, reports, problems);
    }
    if (reports.length < this.#known.length) reports.push(...this.#instancesOfLost(reports));
    this.#known = withFaults([...reports, ...this.#unshown(reports, faults)], faults, problems);
    if (gpus.length === 0 && faults.length === 0 && hardwareOnBus(this.#host))
      problems.push({ code: 'no-devices', message: `${source}: no GPU is shown` });
    // An instance under its makeshift name: the one that it really is may be known from before, and is not missing.
    const answers: Finding = { type: DRIVER_UNUSABLE, status: false, reason: 'Answers', message: 'the driver answers' };
    const told = this.#known.map((report) => ({ ...report, aside: { readings: [], findings: [answers] } }));
    return { reports: told, problems, source, listing: isPartial ? 'partial' : 'complete' };
  }

  /** Instances of a lost GPU are not told any more; those known from before are lost with it. */
  #instancesOfLost(reports: readonly DeviceReport[]): readonly DeviceReport[] {
    const shown = new Set(reports.map(({ device }) => device.id));
    return reports
      .filter(isLost)
      .flatMap(({ device: { id }, read }) =>
        this.#known
          .filter(({ device }) => device.parent === id && !shown.has(device.id))
          .map(({ device }) => ({ device, read: { readings: [], findings: concerningInstances(read?.findings ?? []) } })),
      );
  }

  #show({ element, index }: WholeGpu, facts: NodeFacts): Shown {
    return {
      located: devicesOf(element, index, facts).map((located) => ({ ...located, memo: this.#nvml.memoOf(located.element) })),
      isPartial: areInstancesUnread(element) || instanceKeys(element).some((key) => !facts.instances.has(key)),
    };
  }

  /** Of a library that stays open, the same at each read. */
  #partsOf(log: Element): LogParts {
    if (this.#parts?.log === log) return this.#parts;
    const gpus = childrenOf(log, 'gpu').map((element, index) => ({ element, index, memo: this.#nvml.memoOf(element) }));
    const driver = textOf(log, ['kmd_version', 'driver_version']);
    const attached = Number(textOf(log, ['attached_gpus']) ?? 0) || 0;
    this.#parts = { log, gpus, driver, cudaVersion: textOf(log, ['cuda_umd_version', 'cuda_version']), attached };
    return this.#parts;
  }

  /** GPUs that the lines around the document name as unreadable: known from earlier reads, they stay, as lost. */
  #unshown(reports: readonly DeviceReport[], faults: readonly SurplusFault[]): readonly DeviceReport[] {
    const shown = new Set(reports.map(({ device }) => device.id));
    const lost = new Set(faults.flatMap(({ fault, pciAddress }) => (fault === 'lost' ? [pciAddress] : [])));
    const known = this.#known.map(({ device }) => device).filter(({ pciAddress }) => pciAddress !== undefined && lost.has(pciAddress));
    const unseen = [...lost].filter((address) => !known.some(({ pciAddress }) => pciAddress === address));
    const devices = [...known, ...unseen.flatMap((address) => deviceFromProc(this.#host, address) ?? [])];
    return devices.filter(({ id }) => !shown.has(id)).map((device) => ({ device }));
  }

  /** Nothing could be read: without hardware that is as it should be. */
  #failed({ problem, surplus }: SmiFailure): Collection {
    const needsHardware: readonly string[] = ['smi-not-found', 'no-devices', 'driver-not-loaded', 'library-not-found'];
    if (needsHardware.includes(problem.code) && this.#known.length === 0 && !hardwareOnBus(this.#host))
      return { reports: [], problems: [], listing: 'absent' };
    if (problem.code === 'no-devices') {
      // The driver was asked and has none: what it had before is missing.
      this.#known = [];
      return { reports: [], problems: [problem], listing: 'complete' };
    }
    if (problem.code === 'gpu-unreadable') {
      const faults = surplusFaults(surplus);
      const known = this.#known.map(({ device }) => ({ device }));
      this.#known = withFaults([...known, ...this.#unshown(known, faults)], faults, []);
    }
    return this.#blind(problem);
  }

  /** The GPUs known from earlier reads, unread. Of a driver that is of no use, that is a fault of each of them. */
  #blind(problem: Problem): Collection {
    const reason = { 'driver-not-loaded': 'DriverNotLoaded', 'driver-library-mismatch': 'LibraryMismatch' }[problem.code];
    if (reason === undefined) {
      const lost = problem.code === 'gpu-unreadable' ? this.#known.filter(isLost) : [];
      return { reports: lost, problems: [problem], listing: 'partial' };
    }
    const finding: Finding = { type: DRIVER_UNUSABLE, status: true, reason, message: problem.message };
    const aside = { readings: [], findings: [finding] };
    return { reports: this.#known.map(({ device }) => ({ device, aside })), problems: [problem], listing: 'partial' };
  }
}

const DRIVER_UNUSABLE = 'DriverUnusable';

const isLost = ({ device, read }: DeviceReport): boolean =>
  device.kind === 'gpu' && read?.findings.some(({ type, status }) => type === 'GpuLost' && status === true) === true;

function textOf(log: Element, paths: readonly string[]): string | undefined {
  return paths.map((path) => wordAt(log, path)).find((text) => text !== undefined);
}
