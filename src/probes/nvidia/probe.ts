import { existsSync } from 'node:fs';
import type { Host } from '../../host/host.ts';
import type { Collection, DeviceReport, Problem } from '../../model/collection.ts';
import type { PeerMemory } from '../../model/direct-access.ts';
import type { Finding } from '../../model/health.ts';
import type { Release } from '../../model/release.ts';
import type { Probe } from '../family.ts';
import { FallbackNames } from '../kit/fallback-names.ts';
import { type ReasonOf, raise } from '../kit/finding.ts';
import { Pacer } from '../kit/pace.ts';
import { DirectAccessReader } from '../kit/pcie/direct.ts';
import { ProcessFactsReader } from '../kit/process-facts.ts';
import { conditions } from './conditions.ts';
import { deviceFromProc, namesOf, nodeFactsOf } from './devices.ts';
import { FabricCliques } from './fabric-clique.ts';
import { hardwareOnBus } from './hardware.ts';
import { metrics } from './metrics.ts';
import { NvmlSource } from './nvml/source.ts';
import type { NvidiaOptions } from './options.ts';
import { peerModuleOf, readPeerMemory } from './peer-memory.ts';
import { StuckProcesses, type UsersOfDevice } from './processes.ts';
import { lostWith, PcieErrors, reportsOf } from './reports.ts';
import type { GpuSample, NodeSample } from './sample.ts';
import { type SmiFailure, type SurplusFault, surplusFaults } from './smi.ts';
import { SmiSource } from './smi-source.ts';
import type { XidLine } from './xid-line.ts';

/** Reads GPUs from NVML or `nvidia-smi`. It remembers earlier reads, to report GPUs that the driver no longer shows. */
export class NvidiaProbe implements Probe {
  readonly #host: Host;
  readonly #options: NvidiaOptions;
  readonly #nvml: NvmlSource;
  readonly #smi: SmiSource;
  readonly #pcie: PcieErrors;
  readonly #cliques = new FabricCliques();
  readonly #processes: ProcessFactsReader;
  readonly #stuck = new StuckProcesses();
  readonly #direct: DirectAccessReader;
  /** Read again when the version of the driver or its module changed. */
  #peerMemory: { readonly of: string; readonly answer: PeerMemory | undefined } | undefined;
  readonly #names: FallbackNames;
  readonly #pacer = new Pacer();
  #known: readonly DeviceReport[];
  /** Who asked to close the driver. */
  #asked: Release | undefined;
  /** End of that release on the monotonic clock, because the wall clock can be set meanwhile. */
  #askedUntilMs = Number.POSITIVE_INFINITY;

  constructor(host: Host, options: NvidiaOptions) {
    this.#host = host;
    this.#options = options;
    this.#nvml = new NvmlSource(host, options);
    this.#smi = new SmiSource(host, options);
    this.#pcie = new PcieErrors(host.sys);
    this.#processes = new ProcessFactsReader(host.proc);
    this.#direct = new DirectAccessReader(host.sys);
    this.#names = new FallbackNames(host.known);
    this.#known = host.known.map((device) => ({ device }));
  }

  async collect(): Promise<Collection> {
    const release = this.#currentRelease();
    if (release !== undefined) {
      this.#nvml.release();
      return this.#closed(release);
    }
    const nvml = await this.#nvml.read();
    // The read polls for events, so the driver may have asked for a release.
    const unbinding = this.#nvml.unbinding();
    if (unbinding !== undefined) return this.#closed(unbinding);
    if (nvml === undefined || nvml.problem !== undefined) return await this.#collectWithout(nvml?.problem);
    return this.#assembled(nvml);
  }

  watch(wake: () => void): () => void {
    return this.#nvml.watch(wake);
  }

  /** Returns the Xids that the library received since the last call. */
  takeXids(): readonly XidLine[] {
    return this.#nvml.takeXids();
  }

  release(release: Release | undefined): void {
    const { clock } = this.#host;
    this.#asked = release;
    this.#askedUntilMs = release?.untilMs === undefined ? Number.POSITIVE_INFINITY : clock.monotonic() + release.untilMs - clock.now();
  }

  close(): void {
    this.#nvml.close();
  }

  /** The release that keeps the driver closed now. */
  #currentRelease(): Release | undefined {
    if (this.#host.clock.monotonic() >= this.#askedUntilMs) this.#asked = undefined;
    const file = this.#options['release-file'];
    const ofFile = file !== '' && existsSync(file) ? { by: `the file ${file}` } : undefined;
    return this.#asked ?? ofFile ?? this.#nvml.unbinding();
  }

  /** Returns the known GPUs without a read. Their state is unknown. */
  #closed({ by, untilMs }: Release): Collection {
    const message = `${by} asked the agent to close the driver${untilMs === undefined ? '' : ` until ${new Date(untilMs).toISOString()}`}`;
    const outOfBand = {
      readings: untilMs === undefined ? [] : [{ metric: metrics.releaseEnd.name, value: Math.floor(untilMs / 1_000) }],
      findings: [raise(conditions.DriverReleased, 'Released', { status: true, message })],
    };
    const reports = this.#known.map(({ device }) => ({ device, outOfBand }));
    return { reports, problems: [{ code: 'driver-released', message }], listing: 'partial' };
  }

  /** Reads from the command instead of the library. `problem` is the failure of the library, if it was used. */
  async #collectWithout(problem: SmiFailure['problem'] | undefined): Promise<Collection> {
    if (problem !== undefined && this.#options.source === 'nvml') return this.#failed({ problem, surplus: '' });
    const answer = await this.#smi.read();
    // The failure of an existing library is more useful than the fact that the command is missing.
    if (answer.problem?.code === 'smi-not-found' && problem !== undefined && problem.code !== 'library-not-found')
      return this.#failed({ problem, surplus: '' });
    return answer.problem === undefined ? this.#assembled(answer) : this.#failed(answer);
  }

  #assembled({ gpus, driver, cudaVersion, announced, faults, source, isComplete, ...rest }: NodeSample): Collection {
    const problems = [...rest.problems];
    const unshown = announced - gpus.length - faults.filter(({ fault }) => fault !== 'inforom').length;
    if (unshown > 0) problems.push({ code: 'gpus-unshown', message: `${source}: ${announced} GPUs are announced, ${gpus.length} shown` });
    const pace = this.#pacer.next(this.#host.clock.monotonic());
    const hasInstances = gpus.some(({ instances = [] }) => instances.length > 0);
    this.#processes.renew();
    this.#stuck.renew();
    const processOf = (pid: number) => this.#processes.of(pid);
    const facts = {
      ...nodeFactsOf(this.#host, driver, hasInstances),
      cudaVersion,
      directOf: (address: string, path: string | undefined) => this.#direct.of(address, path),
      peerMemory: this.#peerMemoryOf(driver),
      gpus,
      cliqueFindings: this.#cliques.take(gpus),
      pcieOf: (address: string) => this.#pcie.of(address, pace),
      processOf,
      stuckProcesses: (device: string, users: UsersOfDevice) => this.#stuck.findings(device, users, processOf),
    };
    const names = this.#names.of(gpus.map(namesOf));
    const shown = gpus.map((gpu, index) => reportsOf(gpu, { index, id: names[index] as string }, facts));
    problems.push(...shown.flatMap((gpu) => gpu.problems));
    const reports = shown.flatMap((gpu) => gpu.reports);
    const all = [...reports, ...this.#instancesOfLost(reports)];
    this.#known = withFaults([...all, ...this.#unshown(all, faults)], faults, problems);
    if (gpus.length === 0 && faults.length === 0 && hardwareOnBus(this.#host))
      problems.push({ code: 'no-devices', message: `${source}: no GPU is shown` });
    const isPartial = !isComplete || unshown > 0 || faults.some(({ fault }) => fault === 'closed') || gpus.some(isPartlyListed);
    const message = 'the driver answers';
    const findings = [
      raise(conditions.DriverUnusable, 'Answers', { status: false, message }),
      raise(conditions.DriverReleased, 'Answers', { status: false, message }),
    ];
    const withDriver = this.#known.map((report) => ({ ...report, outOfBand: { readings: [], findings } }));
    return { reports: withDriver, problems, source, listing: isPartial ? 'partial' : 'complete' };
  }

  #peerMemoryOf(driver: string | undefined): PeerMemory | undefined {
    const of = [driver, peerModuleOf(this.#host.sys)].join(' ');
    if (this.#peerMemory?.of !== of) this.#peerMemory = { of, answer: readPeerMemory(this.#host) };
    return this.#peerMemory.answer;
  }

  /** The driver does not list the instances of a lost GPU. Its known instances are reported as lost. */
  #instancesOfLost(reports: readonly DeviceReport[]): readonly DeviceReport[] {
    const shown = new Set(reports.map(({ device }) => device.id));
    return reports
      .filter(isLost)
      .flatMap((gpu) =>
        this.#known
          .filter(({ device }) => device.parent === gpu.device.id && !shown.has(device.id))
          .map(({ device }) => lostWith(gpu, device)),
      );
  }

  /** Returns GPUs that the lines around the document name as unreadable. They stay listed as lost. */
  #unshown(reports: readonly DeviceReport[], faults: readonly SurplusFault[]): readonly DeviceReport[] {
    const shown = new Set(reports.map(({ device }) => device.id));
    const lost = new Set(faults.flatMap(({ fault, pciAddress }) => (fault === 'lost' ? [pciAddress] : [])));
    const known = this.#known.map(({ device }) => device).filter(({ pciAddress }) => pciAddress !== undefined && lost.has(pciAddress));
    const unseen = [...lost].filter((address) => !known.some(({ pciAddress }) => pciAddress === address));
    const devices = [...known, ...unseen.flatMap((address) => deviceFromProc(this.#host, address) ?? [])];
    return devices.filter(({ id }) => !shown.has(id)).map((device) => ({ device }));
  }

  /** Handles a read without any values. Without NVIDIA hardware this is normal. */
  #failed({ problem, surplus }: SmiFailure): Collection {
    const needsHardware: readonly string[] = ['smi-not-found', 'no-devices', 'driver-not-loaded', 'library-not-found'];
    if (needsHardware.includes(problem.code) && this.#known.length === 0 && !hardwareOnBus(this.#host))
      return { reports: [], problems: [], listing: 'absent' };
    if (problem.code === 'no-devices') {
      // The driver answered that it has no GPU, so earlier GPUs are missing.
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

  /** Returns the known GPUs without a read. If the driver is unusable, each of them has a fault. */
  #blind(problem: Problem): Collection {
    const reason = UNUSABLE[problem.code];
    if (reason === undefined) {
      const lost = problem.code === 'gpu-unreadable' ? this.#known.filter(isLost) : [];
      return { reports: lost, problems: [problem], listing: 'partial' };
    }
    const outOfBand = { readings: [], findings: [raise(conditions.DriverUnusable, reason, { status: true, message: problem.message })] };
    return { reports: this.#known.map(({ device }) => ({ device, outOfBand })), problems: [problem], listing: 'partial' };
  }
}

const UNUSABLE: Readonly<Record<string, ReasonOf<typeof conditions.DriverUnusable>>> = {
  'driver-not-loaded': 'DriverNotLoaded',
  'driver-library-mismatch': 'LibraryMismatch',
};

const isLost = ({ device, read }: DeviceReport): boolean =>
  device.kind === 'gpu' && read?.findings.some(({ type, status }) => type === conditions.GpuLost.type && status === true) === true;

/** True when the driver failed to list instances, or an instance has no UUID: its device with a UUID may be known, and is not missing. */
const isPartlyListed = ({ instances = [], unread = [] }: GpuSample): boolean =>
  instances.some(({ name }) => name === undefined) || unread.some(({ value }) => value === 'instances');

/**
 * Adds the faults that the lines around the document name, and a problem for each GPU that could not be opened. A document without an
 * infoROM line for a GPU means that its infoROM is sound, unless the exit status reports a damaged infoROM without naming the GPU.
 */
function withFaults(reports: readonly DeviceReport[], faults: readonly SurplusFault[], problems: Problem[]): readonly DeviceReport[] {
  for (const { pciAddress, fault, line, problem = 'gpu-unreadable' } of faults) {
    if (fault === 'closed') problems.push({ code: 'no-permission', message: line });
    if (fault !== 'lost') continue;
    const gpu = reports.find(({ device }) => device.kind === 'gpu' && device.pciAddress === pciAddress);
    problems.push({ code: problem, message: line, ...(gpu === undefined ? {} : { device: gpu.device.id }) });
  }
  const isInforomKnown = !problems.some(({ code }) => code === 'inforom-corrupted');
  return reports.map((report) => {
    const own = faults.filter(({ pciAddress, fault }) => pciAddress === report.device.pciAddress && fault !== 'closed');
    const found = own.map(({ fault, line: message }) =>
      fault === 'lost'
        ? raise(conditions.GpuLost, 'GpuIsLost', { status: true, message })
        : raise(conditions.InforomCorrupted, 'InforomCorrupted', { status: true, message }),
    );
    const before = report.read ?? { readings: [], findings: [] };
    const isLost = [...found, ...before.findings].some(({ type, status }) => type === conditions.GpuLost.type && status !== false);
    const isAsked = isInforomKnown && report.device.kind === 'gpu' && report.read !== undefined && !isLost;
    const isSound = isAsked && !found.some(isOf(conditions.InforomCorrupted.type));
    if (isSound)
      found.push(
        raise(conditions.InforomCorrupted, 'Sound', { status: false, message: 'the driver does not say that the infoROM is damaged' }),
      );
    if (found.length === 0) return report;
    const kept = before.findings.filter(({ type }) => !found.some(isOf(type)));
    return { ...report, read: { ...before, findings: [...kept, ...found] } };
  });
}

const isOf =
  (wanted: string) =>
  ({ type }: Finding): boolean =>
    type === wanted;
