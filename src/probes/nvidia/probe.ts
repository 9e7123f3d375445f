import { existsSync } from 'node:fs';
import type { Host } from '../../host/host.ts';
import { normalizePciAddress, numaNodeOf, pciPathOf } from '../../host/pci/pci.ts';
import type { Collection, DeviceReport, Problem } from '../../model/collection.ts';
import type { Device, PeerMemory } from '../../model/device.ts';
import type { Finding } from '../../model/health.ts';
import type { Release } from '../../model/release.ts';
import type { Probe } from '../family.ts';
import { declaredFinding, type ReasonOf } from '../kit/finding.ts';
import { FallbackNames } from '../kit/identities.ts';
import { IntervalCache, type Pace, Pacer } from '../kit/pace.ts';
import { DirectAccessReader } from '../kit/pcie/function.ts';
import { PCIE_EVERY_MS, PcieReader } from '../kit/pcie/pcie.ts';
import { ProcessFactsReader } from '../kit/process-facts.ts';
import { ReadingWriter } from '../kit/reading-writer.ts';
import { conditions } from './conditions.ts';
import type { NvidiaOptions } from './declaration.ts';
import { type GpuFunction, isNamedIn, namesOf, nodeFactsOf, peerModuleOf, readPeerMemory, unshownDevice } from './devices.ts';
import { FabricCliques } from './fabric-findings.ts';
import {
  type ExpectedFunction,
  faultProblems,
  type Gap,
  type GpuPlace,
  hardwareOnBus,
  MachineGpus,
  type Unshown,
  unshownGpus,
  unshownReport,
} from './hardware.ts';
import { metrics } from './metrics.ts';
import { NvmlSource } from './nvml/source.ts';
import { lostWith, reportsOf, StuckProcesses } from './reports.ts';
import type { GpuSample, NodeSample, ReadFailure, SurplusFault } from './sample.ts';
import { SmiSource, surplusFaults } from './smi/source.ts';
import type { XidLine } from './xid-line.ts';

/** Reads GPUs from NVML or `nvidia-smi`. It remembers earlier reads, to report GPUs that the driver no longer shows. */
export class NvidiaProbe implements Probe {
  readonly #host: Host;
  readonly #options: NvidiaOptions;
  readonly #nvml: NvmlSource;
  readonly #smi: SmiSource;
  readonly #machine: MachineGpus;
  readonly #pcie = new Map<string, PcieReader>();
  readonly #functions = new Map<string, IntervalCache<GpuFunction>>();
  /** By the ids of the devices of the last read. */
  #writers: ReadonlyMap<string, ReadingWriter> = new Map();
  readonly #cliques = new FabricCliques();
  readonly #processes: ProcessFactsReader;
  readonly #stuck = new StuckProcesses();
  readonly #direct: DirectAccessReader;
  /** Read again when the version of the driver or its module changed. */
  #peerMemory: { readonly of: string; readonly answer: PeerMemory | undefined } | undefined;
  readonly #names: FallbackNames;
  readonly #pacer = new Pacer();
  #known: readonly DeviceReport[];
  /** Addresses of the GPUs that the driver had not started at the last read. */
  #neverStarted: ReadonlySet<string> = new Set();
  /** Addresses of the GPUs that the driver had at the last read; undefined before the first one. */
  #hadBefore: ReadonlySet<string> | undefined;
  /** Who asked to close the driver. */
  #asked: Release | undefined;
  /** End of that release on the monotonic clock, because the wall clock can be set meanwhile. */
  #askedUntilMs = Number.POSITIVE_INFINITY;

  /** `visible`: the variable NVIDIA_VISIBLE_DEVICES of the agent. */
  constructor(host: Host, options: NvidiaOptions, visible?: string) {
    this.#host = host;
    this.#machine = new MachineGpus(host, visible);
    this.#options = options;
    this.#nvml = new NvmlSource(host, options);
    this.#smi = new SmiSource(host, options);
    this.#processes = new ProcessFactsReader(host.proc);
    this.#direct = new DirectAccessReader(host.sys);
    this.#names = new FallbackNames(host.known);
    this.#known = host.known.map((device) => ({ device }));
  }

  async collect(): Promise<Collection> {
    const nowMs = this.#host.clock.monotonic();
    // Before the read: the driver need not show a GPU that it gets meanwhile.
    const expected = this.#machine.expected(nowMs);
    const release = this.#currentRelease();
    if (release !== undefined) {
      this.#nvml.release();
      return this.#closed(release, expected);
    }
    const nvml = await this.#nvml.read(expected);
    // The read polls for events, so the driver may have asked for a release.
    const unbinding = this.#nvml.unbinding();
    if (unbinding !== undefined) return this.#closed(unbinding, expected);
    if (nvml === undefined || nvml.problem !== undefined) return await this.#collectWithout(nvml, expected);
    return await this.#assembled(nvml, expected, (address) => this.#nvml.isDrained(address));
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

  /** Returns the GPUs without a read. Their state is unknown. */
  #closed({ by, untilMs }: Release, expected: Expected): Collection {
    const message = `${by} asked the agent to close the driver${untilMs === undefined ? '' : ` until ${new Date(untilMs).toISOString()}`}`;
    const outOfBand = {
      readings: untilMs === undefined ? [] : [{ metric: metrics.releaseEnd.name, value: Math.floor(untilMs / 1_000) }],
      findings: [declaredFinding(conditions.DriverReleased, 'Released', { status: true, message })],
    };
    this.#known = this.#withUnknown(expected);
    const reports = this.#known.map(({ device }) => ({ device, outOfBand }));
    return { reports, problems: [{ code: 'driver-released', message }], listing: 'partial' };
  }

  /** Reads from the command instead of the library. `failure`: of the library, if it was used. */
  async #collectWithout(failure: ReadFailure | undefined, expected: Expected): Promise<Collection> {
    if (failure !== undefined && this.#options.source === 'nvml') return await this.#failed(failure, expected);
    const answer = await this.#smi.read();
    // The failure of an existing library is more useful than the fact that the command is missing.
    if (answer.problem?.code === 'smi-not-found' && failure !== undefined && failure.problem.code !== 'library-not-found')
      return await this.#failed(failure, expected);
    if (answer.problem !== undefined) return await this.#failed(answer, expected);
    return await this.#assembled(answer, expected, (address) => this.#smi.isDrained(address));
  }

  async #assembled(sample: NodeSample, expected: Expected, isDrained: DrainQuestion): Promise<Collection> {
    const { gpus, driver, cudaVersion, announced, source, hung = [] } = sample;
    const problems = [...sample.problems];
    const pace = this.#pacer.next(this.#host.clock.monotonic());
    const places = this.#missing(gpus.map(addressOf), expected, hung);
    const hasInstances = gpus.some(({ instances = [] }) => instances.length > 0);
    this.#processes.renew();
    this.#stuck.renew();
    const processOf = (pid: number) => this.#processes.of(pid);
    const writers = new Map<string, ReadingWriter>();
    const facts = {
      ...nodeFactsOf(this.#host, driver, hasInstances),
      cudaVersion,
      peerMemory: this.#peerMemoryOf(driver),
      gpus,
      cliqueFindings: this.#cliques.take(gpus, places.length),
      pcieOf: (address: string) => this.#pcieOf(address).read(pace),
      functionOf: (address: string) => this.#functionOf(address, pace),
      writerOf: (id: string) => {
        const writer = this.#writers.get(id) ?? new ReadingWriter();
        writers.set(id, writer);
        return writer;
      },
      processOf,
      stuck: this.#stuck,
    };
    const names = this.#names.of(gpus.map(namesOf));
    const read = gpus.map((gpu, index) => reportsOf(gpu, { index, id: names[index] as string }, facts));
    this.#writers = writers;
    problems.push(...read.flatMap((gpu) => gpu.problems));
    const shown = read.flatMap((gpu) => gpu.reports);
    const fresh = this.#renewFor(places, expected);
    const drained = await this.#drained(places, sample.faults, isDrained);
    problems.push(...drained.map(({ address }) => ({ code: 'gpu-drained', message: `the driver drains GPU ${address}` })));
    const unshown = this.#unshown(shown, {
      missing: places.map((place) => (drained.includes(place) || fresh.includes(place) ? { ...place, isWithheld: true } : place)),
      expected: expected.map(({ address }) => address),
      faults: sample.faults,
      announced: announced - gpus.length,
    });
    if (unshown.unexplained > 0)
      problems.push({ code: 'gpus-unshown', message: `${source}: ${announced} GPUs are announced, ${gpus.length} shown` });
    const withheld = places.filter(
      ({ address, isWithheld }) => isWithheld && !unshown.faults.some((fault) => fault.pciAddress === address),
    );
    if (withheld.length > 0)
      problems.push({
        code: 'no-permission',
        message: `NVIDIA_VISIBLE_DEVICES of the agent leaves out ${withheld.length} GPUs of the node`,
      });
    const isSound = (address: string | undefined): boolean =>
      !problems.some(({ code }) => code === 'inforom-corrupted') &&
      gpus.every((gpu) => gpu.isInforomSound === true || addressOf(gpu) !== address);
    this.#known = this.#withInstances([...withFaults(shown, unshown.faults, isSound), ...unshown.reports]);
    problems.push(...faultProblems(unshown.faults, (address) => gpuAt(this.#known, address)?.device.id));
    const isNoneTold = gpus.length === 0 && this.#known.length === 0 && unshown.faults.length === 0;
    if (isNoneTold && !problems.some(({ code }) => code === 'no-devices') && hardwareOnBus(this.#host))
      problems.push({ code: 'no-devices', message: `${source}: no GPU is shown` });
    const isPartial = !unshown.isComplete || gpus.some(isPartlyListed);
    const message = 'the driver answers';
    const findings = [
      declaredFinding(conditions.DriverUnusable, 'Answers', { status: false, message }),
      declaredFinding(conditions.DriverReleased, 'Answers', { status: false, message }),
    ];
    const withDriver = this.#known.map((report) => ({ ...report, outOfBand: { readings: [], findings } }));
    return { reports: withDriver, problems, source, listing: isPartial ? 'partial' : 'complete' };
  }

  #pcieOf(address: string): PcieReader {
    const reader = this.#pcie.get(address) ?? new PcieReader(this.#host.sys, address);
    this.#pcie.set(address, reader);
    return reader;
  }

  #functionOf(address: string, pace: Pace): GpuFunction {
    const kept = this.#functions.get(address) ?? new IntervalCache<GpuFunction>();
    this.#functions.set(address, kept);
    const { sys } = this.#host;
    const read = (): GpuFunction => {
      const pciPath = pciPathOf(sys, address);
      return { pciPath, numaNode: numaNodeOf(sys, address), direct: this.#direct.of(address, pciPath) };
    };
    return kept.of(pace, PCIE_EVERY_MS, read, ({ pciPath }) => pciPath !== undefined);
  }

  /** The GPUs that the driver should show and does not. Of a GPU that is shown without an address, it is unknown which one it is. */
  #missing(shown: readonly (string | undefined)[], expected: Expected, hung: readonly string[] = []): readonly GpuPlace[] {
    const addresses = new Set([...shown, ...hung]);
    return addresses.has(undefined) ? [] : this.#machine.placesOf(expected.filter(({ address }) => !addresses.has(address)));
  }

  /**
   * The kernel driver knows the UUID of a GPU from its first start on. Returns the GPUs that the driver got since the last read, as after the end
   * of a virtual machine: its library, which was opened before, shows them when it is opened again.
   */
  #renewFor(places: readonly GpuPlace[], expected: Expected): readonly GpuPlace[] {
    const before = this.#hadBefore;
    const fresh = before === undefined ? [] : places.filter(({ address }) => !before.has(address));
    this.#hadBefore = new Set(expected.map(({ address }) => address));
    const isStarted = ({ address, facts }: GpuPlace): boolean => facts.uuid !== undefined && this.#neverStarted.has(address);
    if (fresh.length > 0 || places.some(isStarted)) this.#nvml.shutDownClient();
    this.#neverStarted = new Set(places.flatMap(({ address, facts }) => (facts.isListed && facts.uuid === undefined ? [address] : [])));
    return fresh;
  }

  /** Which of the GPUs that no text explains are drained: the driver shows such a GPU to nobody, and it is well. */
  async #drained(places: readonly GpuPlace[], faults: readonly SurplusFault[], isDrained: DrainQuestion): Promise<readonly GpuPlace[]> {
    const drained: GpuPlace[] = [];
    for (const place of places) {
      const isTold = faults.some(({ pciAddress }) => pciAddress === place.address);
      if (!isTold && !place.isWithheld && (await isDrained(place.address))) drained.push(place);
    }
    return drained;
  }

  /** Reports of the GPUs that the driver does not show. A GPU that was known keeps its name, if the kernel driver does not report another one. */
  #unshown(shown: readonly DeviceReport[], gap: Omit<Gap, 'gone' | 'placeAt'>): Unshown & { readonly reports: readonly DeviceReport[] } {
    const gone = this.#known.flatMap(({ device: { kind, pciAddress } }) =>
      kind === 'gpu' && pciAddress !== undefined && gpuAt(shown, pciAddress) === undefined ? [pciAddress] : [],
    );
    const placeAt = (address: string) => (gpuAt(shown, address) === undefined ? this.#machine.placesOf([{ address }]) : NO_PLACES);
    const unshown = unshownGpus({ ...gap, gone: gone.sort(), placeAt });
    return { ...unshown, reports: unshown.gpus.map((gpu) => unshownReport(this.#deviceAt(gpu.place), gpu)) };
  }

  #deviceAt({ address, facts }: GpuPlace): Device {
    const known = gpuAt(this.#known, address)?.device;
    const isSame = known !== undefined && (facts.uuid === undefined || known.uuid === undefined || known.uuid === facts.uuid);
    return isSame && (known.uuid !== undefined || facts.uuid === undefined) ? known : unshownDevice(this.#host.sys, address, facts);
  }

  /** The known GPUs, and those of the machine that were not known. */
  #withUnknown(functions: Expected): readonly DeviceReport[] {
    const unknown = functions.filter(({ address }) => gpuAt(this.#known, address) === undefined);
    return [
      ...this.#known.map(({ device }) => ({ device })),
      ...this.#machine.placesOf(unknown).map((place) => ({ device: this.#deviceAt(place) })),
    ];
  }

  #peerMemoryOf(driver: string | undefined): PeerMemory | undefined {
    const of = [driver, peerModuleOf(this.#host.sys)].join(' ');
    if (this.#peerMemory?.of !== of) this.#peerMemory = { of, answer: readPeerMemory(this.#host) };
    return this.#peerMemory.answer;
  }

  /** The driver does not list the instances of a GPU that it lost. Its known instances are reported with it. */
  #withInstances(reports: readonly DeviceReport[]): readonly DeviceReport[] {
    const shown = new Set(reports.map(({ device }) => device.id));
    const parts = reports
      .filter(isLost)
      .flatMap((gpu) =>
        this.#known
          .filter(({ device }) => device.parent === gpu.device.id && !shown.has(device.id))
          .map(({ device }) => lostWith(gpu, device)),
      );
    return [...reports, ...parts];
  }

  /** Handles a read without any values. Without NVIDIA hardware this is normal. */
  async #failed({ problem, surplus }: ReadFailure, expected: Expected): Promise<Collection> {
    const needsHardware: readonly string[] = ['smi-not-found', 'no-devices', 'driver-not-loaded', 'library-not-found'];
    if (needsHardware.includes(problem.code) && this.#known.length === 0 && !hardwareOnBus(this.#host))
      return { reports: [], problems: [], listing: 'absent' };
    if (problem.code === 'no-devices') {
      // The driver answered that it has no GPU.
      const sample = { source: 'the driver', announced: 0, gpus: [], faults: surplusFaults(surplus), problems: [problem] };
      return await this.#assembled(sample, expected, (address) => this.#smi.isDrained(address));
    }
    const reason = UNUSABLE[problem.code];
    if (reason !== undefined) return this.#unusable(problem, reason);
    const faults = surplusFaults(surplus);
    const gap = { missing: this.#missing([], expected), expected: expected.map(({ address }) => address), faults, announced: 0 };
    const { reports } = this.#unshown([], { ...gap, isUnlisted: true });
    const named = reports.map(({ device }) => device);
    const known = this.#known.map(({ device }) => device).filter(({ id }) => !named.some((device) => device.id === id));
    this.#known = [...known.filter((device) => !isNamedIn(named)(device)).map((device) => ({ device })), ...reports];
    return { reports, problems: [problem], listing: 'partial' };
  }

  /** Returns all GPUs of the machine without a read. Each of them has the fault of the driver. */
  #unusable(problem: Problem, reason: ReasonOf<typeof conditions.DriverUnusable>): Collection {
    this.#known = this.#withUnknown(this.#machine.withoutDriver(this.#host.clock.monotonic()));
    const outOfBand = {
      readings: [],
      findings: [declaredFinding(conditions.DriverUnusable, reason, { status: true, message: problem.message })],
    };
    return { reports: this.#known.map(({ device }) => ({ device, outOfBand })), problems: [problem], listing: 'partial' };
  }
}

type Expected = readonly ExpectedFunction[];
type DrainQuestion = (address: string) => boolean | Promise<boolean>;
const addressOf = ({ identity }: GpuSample): string | undefined => normalizePciAddress(identity?.busId ?? '');
const NO_PLACES: readonly GpuPlace[] = [];

const gpuAt = (reports: readonly DeviceReport[], address: string): DeviceReport | undefined =>
  reports.find(({ device }) => device.kind === 'gpu' && device.pciAddress === address);

const UNUSABLE: Readonly<Record<string, ReasonOf<typeof conditions.DriverUnusable>>> = {
  'driver-not-loaded': 'DriverNotLoaded',
  'driver-library-mismatch': 'LibraryMismatch',
};

const LOST: readonly string[] = [conditions.GpuLost.type, conditions.NotInitialized.type];

const isLost = ({ device, read }: DeviceReport): boolean =>
  device.kind === 'gpu' && read?.findings.some(({ type, status }) => LOST.includes(type) && status === true) === true;

/** True when the driver failed to list instances, or an instance has no UUID: its device with a UUID may be known, and is not missing. */
const isPartlyListed = ({ instances = [], unread = [] }: GpuSample): boolean =>
  instances.some(({ name }) => name === undefined) || unread.some(({ value }) => value === 'instances');

/**
 * Adds the faults that the lines around the document name. `isSound`: whether the driver has checked the infoROM of the GPU at an address, and
 * no exit status reports a damaged one without naming the GPU.
 */
function withFaults(
  reports: readonly DeviceReport[],
  faults: readonly SurplusFault[],
  isSound: (address: string | undefined) => boolean,
): readonly DeviceReport[] {
  return reports.map((report) => {
    const own = faults.filter(({ pciAddress, fault }) => pciAddress === report.device.pciAddress && fault !== 'closed');
    const found = own.map(({ fault, line: message }) =>
      fault === 'lost'
        ? declaredFinding(conditions.GpuLost, 'GpuIsLost', { status: true, message })
        : declaredFinding(conditions.InforomCorrupted, 'InforomCorrupted', { status: true, message }),
    );
    const before = report.read ?? { readings: [], findings: [] };
    const isLost = [...found, ...before.findings].some(({ type, status }) => type === conditions.GpuLost.type && status !== false);
    const isAsked = report.device.kind === 'gpu' && report.read !== undefined && !isLost;
    if (isAsked && isSound(report.device.pciAddress) && !found.some(isOf(conditions.InforomCorrupted.type)))
      found.push(
        declaredFinding(conditions.InforomCorrupted, 'Sound', {
          status: false,
          message: 'the driver does not say that the infoROM is damaged',
        }),
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
