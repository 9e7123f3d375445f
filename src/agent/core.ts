import { isDeepStrictEqual } from 'node:util';
import type { ResourceDevices } from '../health/journal/ready-devices.ts';
import { whyDirty } from '../health/occupancy/clean.ts';
import { POOR_PLACEMENT } from '../health/policy/use-conditions.ts';
import type { Clock } from '../host/clock.ts';
import type { DocumentThread } from '../host/documents/document-thread.ts';
import type { DocumentProblem } from '../host/documents/kind.ts';
import { deviceDirectory } from '../host/fs/step-record.ts';
import { Tree } from '../host/fs/tree.ts';
import { createHost } from '../host/host.ts';
import { readCpuNodes } from '../host/numa.ts';
import { readVirtualMachine } from '../host/virtual-machine.ts';
import { type CheckpointRead, CheckpointReader } from '../kubelet/checkpoint/checkpoint.ts';
import { ClaimReader } from '../kubelet/claims/claims.ts';
import { documentThread } from '../kubelet/document-kinds.ts';
import type { PodsApiOptions } from '../kubelet/pods/options.ts';
import { PodsReader, type PodsReaderSettings } from '../kubelet/pods/reader.ts';
import { createPodResourcesPoller, type PodResourcesPoller } from '../kubelet/poller.ts';
import { createChangeLog } from '../log/changes.ts';
import type { Logger } from '../log/logger.ts';
import type { ActivitySpec } from '../model/activity.ts';
import type { Resolve } from '../model/allocation.ts';
import type { DeviceRole } from '../model/container-locality.ts';
import type { MetricSpec } from '../model/metric.ts';
import type { Observe } from '../model/observation.ts';
import type { CheckpointReason } from '../model/pod-resources.ts';
import { MAX_RELEASE_MS, type ReleaseAnswer, type ReleaseRequest } from '../model/release.ts';
import type { AllocationState } from '../model/snapshot.ts';
import type { DeviceFamily } from '../probes/family.ts';
import { FamilyRunner } from '../supervisor/family-runner.ts';
import { IsolatedReads, type ReadProcess } from '../supervisor/isolated-reads.ts';
import { isPresent } from '../supervisor/probe-look.ts';
import { type StartThread, startThread } from '../supervisor/probe-thread.ts';
import { devicesIn } from '../supervisor/quarantine.ts';
import { Assembler, type AssembleSettings } from './assemble.ts';
import { ClaimArrivals } from './claim-arrivals.ts';
import type { HealthService } from './health.ts';
import type { RestoredDevice } from './known-devices.ts';
import { ProblemLog } from './problem-log.ts';
import { servedIds } from './served.ts';
import type { AgentSettings } from './settings.ts';
import { Store } from './store.ts';
import type { AccountingService } from './usage.ts';

/** While other reads run, inputs that arrive within this time share one snapshot. */
const SETTLE_MS = 20;
/** The same for inputs that change no holder and no verdict: a refresh that is not slower makes one snapshot. */
const QUIET_SETTLE_MS = 1_000;
/** Shortest time between two reads that a probe asked for. */
const WAKE_SPACING_MS = 100;
/** Work outside the interval waits for this multiple of the time that it last took, so that it takes at most a tenth of a core. */
const REST = 10;
/** Shortest time between the begins of two reads of a family for the sake of claims whose devices are not known. Claims arrive rarely. */
const CLAIM_SPACING_MS = 250;
/** Interval of the reads of devices whose container seems to wait. */
const DEFAULT_SAMPLE_MS = 1_000;
const CLOSE_GRACE_MS = 1_000;
/** Time between requests to the kubelet while it is unknown whom a fault hit. */
const FAULT_ASK_MS = 500;

/** Starts threads and processes of the operating system. Tests replace it. */
export interface CoreDependencies {
  readonly start: StartThread;
  readonly isolated: ReadProcess;
  /** Takes what is read in the main thread. Present only in a capture. */
  readonly observe?: Observe;
  /** The clock of a capture or a replay. Default: the system's. */
  readonly clock?: Clock;
  /**
   * A capture or a replay: one refresh makes one snapshot. The order in which its reads end must not show, so no snapshot is made before the
   * last one ended, and nothing is read between two refreshes.
   */
  readonly isSteady?: true;
}

/** Probes, kubelet client and store, without the scheduler that calls them and the outputs that read them. */
export class AgentCore {
  readonly store = new Store();
  readonly poller: PodResourcesPoller;
  /** Absent while the Pods API is not asked. */
  readonly pods: PodsReader | undefined;
  readonly runners: readonly FamilyRunner[];
  readonly #clock: Clock;
  /** Interval of the reads of a family whose container seems to wait. */
  #sampleMs: number;
  readonly #isSteady: boolean;
  readonly #assembler: Assembler;
  readonly #problems: ProblemLog;
  /** The next read of a family outside the interval. */
  readonly #wakes = new Map<FamilyRunner, Timer>();
  readonly #isolated: ReadProcess;
  /** For each family, the {@link Assembler.awaited} time of its last read outside the interval. */
  readonly #readFor = new Map<FamilyRunner, number>();
  /** For each family, the latest time at which a claim was seen that its reads serve. */
  readonly #readForClaims = new Map<FamilyRunner, number>();
  /** The latest {@link Assembler.unconfirmedMs} for which the files of claims were read again. */
  #confirmedMs = Number.NEGATIVE_INFINITY;
  readonly #health: HealthService;
  /** Families whose driver can be closed on request. */
  readonly #releasable: ReadonlySet<string>;
  readonly #checkpointReader: CheckpointReader;
  #checkpoint: CheckpointRead = { entries: [] };
  readonly #claims: ClaimReader;
  /** Parses the files of the kubelet and of drivers. */
  readonly #documents: DocumentThread;
  readonly #arrivals = new ClaimArrivals();
  /** The read of the checkpoint and of the claims' files that belongs to the latest answer of the kubelet. */
  #readingFiles: Promise<void> | undefined;
  #nextAssembly: Timer | undefined;
  /** Monotonic clock before which no assembly begins outside a refresh. */
  #restsUntilMs = 0;
  /** An input has arrived since the last snapshot. */
  #isBehind = false;
  /** Cancels the request for whom a fault hit; undefined while there is none. */
  #cancelAsk: (() => void) | undefined;
  #isClosed = false;
  /** Running requests to the kubelet that belong to a refresh. */
  #asking = 0;

  constructor(
    settings: AgentSettings,
    health: HealthService,
    logger: Logger,
    clock: Clock,
    parts?: CoreDependencies,
    usage?: AccountingService,
  ) {
    this.#clock = clock;
    this.#sampleMs = sampleOf(settings);
    this.#health = health;
    const { start, isolated, observe, isSteady }: CoreDependencies = parts ?? { start: startThread, isolated: new IsolatedReads(clock) };
    this.#isSteady = isSteady === true;
    this.#isolated = isolated;
    const families = settings.families.map(({ family }) => family);
    this.#releasable = new Set(families.flatMap(({ name, canRelease }) => (canRelease === true ? [name] : [])));
    warnOfExpected(settings, families, logger);
    this.#problems = new ProblemLog(createChangeLog(logger), families);
    this.#documents = documentThread(clock);
    this.#claims = new ClaimReader({
      metadataDirectory: settings.dra['metadata-dir'],
      cdiDirectories: settings.cdi.dirs,
      sysfs: settings.roots.sysfs,
      forms: families.flatMap(({ claimForms }) => claimForms ?? []),
      thread: this.#documents,
      clock,
      observe,
    });
    const host = createHost(settings.roots, clock, { observe });
    this.#checkpointReader = new CheckpointReader(settings.podResources.checkpoint, this.#documents, clock, host);
    this.pods =
      settings.podsApi &&
      createPodsReader(settings.podsApi, { clock, onChange: () => this.#changed(), labels: settings.usage.labels }, logger);
    this.poller = createPodResourcesPoller({
      options: settings.podResources,
      specDirectories: settings.cdi.dirs,
      clock,
      observe,
      onChange: () => {
        this.#answered();
        void this.pods?.refresh();
      },
    });
    const known = health.known();
    this.runners = settings.families.map(({ family, options }): FamilyRunner => {
      const runner: FamilyRunner = new FamilyRunner(
        {
          family: family.name,
          ...(family.declared === undefined ? {} : { declared: family.declared }),
          options,
          roots: settings.roots,
          timeoutMs: settings.refresh.timeout,
          hung: health.hung(family.name),
          isExpected: known.some(({ device }) => device.family === family.name),
          wasReadCompletely: health.wasReadCompletely(family.name),
        },
        {
          clock,
          isolated,
          start,
          events: {
            changed: (isNews) => this.#changed(isNews),
            wake: () => this.#refreshSoon(runner, 0),
            crashed: (name, message) => logger.error('a probe ended with an error', { family: name, error: message }),
          },
          isPresent: () => isPresent(family, host, options),
          known: () => this.#assembler.known(family.name),
          counted: () => health.faults.mark(family.name),
        },
      );
      return runner;
    });
    this.#assembler = new Assembler(
      {
        ...joined(settings, families),
        specs: new Map(families.flatMap((family) => family.metrics).map((spec): [string, MetricSpec] => [spec.name, spec])),
        needs: new Map(families.map(({ name, needs = [] }) => [name, needs])),
        missingRetentionMs: settings.device['missing-retention'],
        cpuNodes: readCpuNodes(host.sys),
        virtual: readVirtualMachine(host.sys, host.proc),
        unreturned: () => health.engine.unreturned(),
      },
      health.judge,
      withHung(known, families, health, new Tree(settings.roots.sysfs)),
      usage,
      health.faults,
    );
    health.onDue(() => this.assemble());
    // The state of an earlier run is valid until the next read, and is served at once.
    if (known.length > 0) this.assemble();
  }

  /** Takes other settings. Those that need a restart stay as they are. */
  configure(settings: AgentSettings): void {
    const families = settings.families.map(({ family }) => family);
    this.#assembler.configure(joined(settings, families));
    this.#sampleMs = sampleOf(settings);
    for (const { family, options } of settings.families)
      this.runners.find((runner) => runner.family === family.name)?.configure({ options, timeoutMs: settings.refresh.timeout });
  }

  /** Why the kubelet's checkpoint cannot be used. */
  get checkpointProblem(): CheckpointReason | undefined {
    return this.#checkpoint.problem?.code;
  }

  /** Files of claims that cannot be used. */
  get claimFileProblems(): readonly DocumentProblem[] {
    return this.#claims.problems();
  }

  /** Reads everything once. Resolves when each part has answered or timed out. */
  async refresh(): Promise<void> {
    await Promise.all([this.#ask(), ...this.runners.map((runner) => this.#refresh(runner))]);
    if (this.#isBehind && !this.#isSteady) this.assemble();
  }

  /** Reads some families once and makes a snapshot. Resolves when each family has answered or timed out. */
  async refreshFamilies(isWanted: (family: string) => boolean): Promise<void> {
    await Promise.all(this.runners.filter(({ family }) => isWanted(family)).map((runner) => this.#refresh(runner)));
    if (this.#isBehind) this.assemble();
  }

  /** As {@link refreshFamilies}, with the holders: the kubelet and its checkpoint are asked too. */
  async refreshWithHolders(isWanted: (family: string) => boolean): Promise<void> {
    await Promise.all([this.#ask(), this.refreshFamilies(isWanted)]);
    if (this.#isBehind) this.assemble();
  }

  /** Closes the driver of a family for a time, or opens it again. */
  async release({ family, forMs, by }: ReleaseRequest): Promise<ReleaseAnswer> {
    const runner = this.runners.find((one) => one.family === family);
    if (runner === undefined || !this.#releasable.has(family)) {
      const known = [...this.#releasable].join(', ');
      return {
        refused: `${family} is no enabled device family whose driver the agent keeps open (${known === '' ? 'there is none' : known})`,
      };
    }
    if (!(forMs >= 0 && forMs <= MAX_RELEASE_MS)) return { refused: 'a release lasts 24h at most' };
    const untilMs = forMs === 0 ? undefined : this.#clock.now() + forMs;
    const hanging = await runner.release(untilMs === undefined ? undefined : { by, untilMs });
    if (this.#isBehind) this.assemble();
    return { family, untilMs, hanging };
  }

  /** Why no container must start on a device; undefined when the device is clean. A read before `sinceMs` (monotonic clock) does not count. */
  whyDirty(key: string, sinceMs: number): string | undefined {
    const use = this.#assembler.useOf(key);
    return whyDirty(use !== undefined && use.monotonicMs >= sinceMs ? use : undefined, this.#assembler.limits);
  }

  /** The devices of a Kubernetes resource in the latest snapshot; undefined while the kubelet has not told what it can allocate. */
  devicesOf(resource: string): ResourceDevices | undefined {
    const snapshot = this.store.snapshot();
    return snapshot && this.#assembler.devicesOf(resource, snapshot);
  }

  /** Makes a snapshot of the latest inputs. */
  assemble(): void {
    this.#nextAssembly?.cancel();
    this.#nextAssembly = undefined;
    this.#isBehind = false;
    const begunMs = this.#clock.monotonic();
    const snapshot = this.#assembler.assemble(
      {
        families: this.runners.map((runner) => ({ state: runner.state(), latest: runner.latest(), isBlind: runner.isBlind })),
        podResources: this.poller.current(),
        ...(this.pods === undefined ? {} : { pods: this.pods.current() }),
        checkpoint: this.#checkpoint.entries,
        claims: this.#claims.current(),
        claimTimes: this.#claims.times,
      },
      { nowMs: this.#clock.now(), monotonicMs: this.#clock.monotonic() },
    );
    this.#health.hangs(Object.fromEntries(this.runners.map(({ family, hung }) => [family, hung])));
    this.#health.completed(this.runners.flatMap(({ family, wasReadCompletely }) => (wasReadCompletely ? [family] : [])));
    this.#problems.update(snapshot);
    this.store.publish(snapshot);
    const endedMs = this.#clock.monotonic();
    this.#restsUntilMs = endedMs + REST * (endedMs - begunMs);
    // Whom a fault hit is known when the kubelet answers after it.
    if (this.#health.faults.isWaiting) this.#askForFaults();
    // A container's counters start at the first read that began after the container was seen. An early read loses the least.
    for (const runner of this.runners) this.#readForHolders(runner);
    for (const runner of this.runners)
      if (this.#assembler.readSoon.has(runner.family))
        this.#refreshSoon(runner, Math.max(startedMs(runner) + this.#sampleMs, restedMs(runner)));
    // A driver may have made the device, an instance of a GPU for example, when it prepared the claim.
    const wanted = this.#arrivals.look(snapshot.allocations, endedMs);
    for (const runner of this.runners) this.#readForClaim(runner, wanted(runner.family));
    this.#confirmClaims(this.#assembler.unconfirmedMs);
  }

  /** Whether a claim has no device although its driver has named hardware for it. */
  get hasUnjoinedClaims(): boolean {
    return this.#claims.current().size > 0 && this.store.snapshot()?.allocations.some(isUnjoinedClaim) === true;
  }

  /** Resolves to false when a thread is stuck in the kernel, so that the process cannot end by itself. */
  async close(): Promise<boolean> {
    this.#isClosed = true;
    this.#cancelAsk?.();
    this.#nextAssembly?.cancel();
    for (const { cancel } of this.#wakes.values()) cancel();
    this.poller.close();
    this.pods?.close();
    const ended = await Promise.all(this.runners.map((runner) => runner.close(CLOSE_GRACE_MS)));
    this.#isolated.close();
    this.#documents.close();
    this.#nextAssembly?.cancel();
    return ended.every(Boolean) && !this.#checkpointReader.isPending && !this.#claims.isPending;
  }

  async #readCheckpoint(): Promise<void> {
    this.#checkpoint = await this.#checkpointReader.read();
    this.#problems.checkpoint(this.#checkpoint.problem);
  }

  #askForFaults(): void {
    if (this.#isSteady || this.#cancelAsk !== undefined) return;
    this.#cancelAsk = this.#clock.after(FAULT_ASK_MS, () => {
      void this.#ask().then(() => {
        this.#cancelAsk = undefined;
        if (!this.#isClosed) this.assemble();
      });
    });
  }

  async #ask(): Promise<void> {
    this.#asking += 1;
    await this.poller.refresh();
    await Promise.all([this.pods?.idle(), this.#readingFiles]);
    this.#asking -= 1;
  }

  /** Checkpoint and drivers' files are read after each answer, so that a snapshot never joins a new pod with the UID of the one before it. */
  #answered(): void {
    const { allocations, problem } = this.poller.current();
    const before = this.store.snapshot()?.podResources;
    const hasClaims = allocations.some(({ claim }) => claim !== undefined);
    const claims = this.#claims.current();
    const isSame = problem === undefined && before?.problem === undefined && isDeepStrictEqual(allocations, before?.allocations);
    const reading = Promise.all([this.#readCheckpoint(), hasClaims ? this.#claims.read(allocations) : undefined]).then(() => {
      if (this.#readingFiles === reading) this.#readingFiles = undefined;
      this.#problems.claimFiles(this.#claims.problems());
      this.#changed(!isSame || !isDeepStrictEqual(this.#claims.current(), claims));
    });
    this.#readingFiles = reading;
  }

  /** Reads the files of claims again, once for each time at which a device was first seen that may be theirs. */
  #confirmClaims(seenMs: number | undefined): void {
    if (this.#isSteady || seenMs === undefined || seenMs <= this.#confirmedMs) return;
    this.#confirmedMs = seenMs;
    void this.#claims.read(this.poller.current().allocations).then(() => this.#changed());
  }

  /**
   * Makes a snapshot when no other read runs and the last snapshot was not made just now. Otherwise news waits {@link SETTLE_MS} for the
   * other reads, and an input that tells nothing new waits {@link QUIET_SETTLE_MS}. The end of a refresh makes the snapshot at once.
   */
  #changed(isNews = true): void {
    this.#isBehind = true;
    if (this.#isSteady) return;
    const nowMs = this.#clock.monotonic();
    const settleMs = !this.#isReading() ? 0 : isNews ? SETTLE_MS : QUIET_SETTLE_MS;
    const atMs = Math.max(nowMs + settleMs, this.#restsUntilMs);
    if (atMs <= nowMs) this.assemble();
    else if (this.#nextAssembly === undefined || this.#nextAssembly.atMs > atMs) {
      this.#nextAssembly?.cancel();
      this.#nextAssembly = { atMs, cancel: this.#clock.after(atMs - nowMs, () => this.assemble()) };
    }
  }

  #isReading(): boolean {
    return this.#asking > 0 || this.runners.some((runner) => runner.isReading);
  }

  /** Requests one extra read for each time at which containers were first seen, even if that read fails. */
  #readForHolders(runner: FamilyRunner): void {
    const seenFromMs = this.#assembler.awaited.get(runner.family) ?? Number.NEGATIVE_INFINITY;
    if (seenFromMs <= (this.#readFor.get(runner) ?? Number.NEGATIVE_INFINITY)) return;
    if (!runner.isReading) this.#readFor.set(runner, seenFromMs);
    this.#refreshSoon(runner, restedMs(runner));
  }

  /** Requests one read that begins after the latest claim without a device was seen, even if that read fails. */
  #readForClaim(runner: FamilyRunner, seenMs: number | undefined): void {
    if (seenMs === undefined || seenMs <= (this.#readForClaims.get(runner) ?? Number.NEGATIVE_INFINITY)) return;
    if (!runner.isReading) this.#readForClaims.set(runner, seenMs);
    this.#refreshSoon(runner, startedMs(runner) + CLAIM_SPACING_MS);
  }

  /** Begins a read, which serves the requests for a later one. */
  #refresh(runner: FamilyRunner): Promise<void> {
    if (!runner.isReading) {
      this.#wakes.get(runner)?.cancel();
      this.#wakes.delete(runner);
    }
    return runner.refresh();
  }

  /** `fromMs`: monotonic clock before which the read does not begin. */
  #refreshSoon(runner: FamilyRunner, fromMs: number): void {
    const nowMs = this.#clock.monotonic();
    const atMs = Math.max(nowMs + WAKE_SPACING_MS, fromMs);
    const next = this.#wakes.get(runner);
    if (this.#isSteady || (next !== undefined && next.atMs <= atMs)) return;
    next?.cancel();
    const read = (): void => {
      this.#wakes.delete(runner);
      void this.refreshFamilies((family) => family === runner.family);
    };
    this.#wakes.set(runner, { atMs, cancel: this.#clock.after(atMs - nowMs, read) });
  }
}

/** `atMs`: monotonic clock. */
interface Timer {
  readonly atMs: number;
  cancel(): void;
}

/** When a family that was just read may be read again for the sake of its holders. The next refresh reads it anyway. */
function restedMs(runner: FamilyRunner): number {
  const { startedMs, monotonicMs } = runner.latest() ?? { startedMs: 0, monotonicMs: 0 };
  return monotonicMs + REST * (monotonicMs - startedMs);
}

const sampleOf = ({ stall }: AgentSettings): number => (stall.sample > 0 ? stall.sample : DEFAULT_SAMPLE_MS);
const isUnjoinedClaim = ({ allocation, unresolved }: AllocationState): boolean =>
  allocation.claim !== undefined && unresolved === 'no-device';
const startedMs = (runner: FamilyRunner): number => runner.latest()?.startedMs ?? 0;

/** The API is an extra, so what is wrong with it is no warning. */
function createPodsReader(
  options: PodsApiOptions,
  parts: Required<Pick<PodsReaderSettings, 'clock' | 'onChange' | 'labels'>>,
  logger: Logger,
): PodsReader {
  const onProblem = (detail: string | undefined): void =>
    detail === undefined
      ? logger.info("the kubelet's Pods API answers")
      : logger.info("the kubelet's Pods API does not answer; pods have no UID and no extended resources", { detail });
  return new PodsReader({ options, ...parts, onProblem });
}

function warnOfExpected({ expect }: AgentSettings, families: readonly DeviceFamily[], logger: Logger): void {
  for (const family of Object.keys(expect)) {
    if (families.some(({ name }) => name === family)) continue;
    logger.warn('an expected number of devices cannot be compared', { problem: `expect: "${family}" is not an enabled device family` });
  }
}

/** Marks the remembered devices that hung when the earlier run of the agent ended. */
function withHung(
  known: readonly RestoredDevice[],
  families: readonly DeviceFamily[],
  health: HealthService,
  sys: Tree,
): readonly RestoredDevice[] {
  const hung = families.flatMap(({ name }) => {
    const directories = health.hung(name).map(({ path }) => deviceDirectory(path));
    const devices = known.flatMap(({ device }) => (device.family === name ? [device] : []));
    return devicesIn(directories, devices, sys);
  });
  return known.map((one) => (hung.includes(one.device) ? { ...one, wasHung: true } : one));
}

/** The settings of a snapshot that a new configuration can change. */
function joined(
  { pools, plugin, refresh, usage, idle, expect, health }: AgentSettings,
  families: readonly DeviceFamily[],
): Pick<
  AssembleSettings,
  'rules' | 'served' | 'staleAfterMs' | 'use' | 'expect' | 'partKinds' | 'passingKinds' | 'roles' | 'isPlacementJudged'
> {
  return {
    rules: {
      pools,
      families: resolvers(families),
      numbers: numberOwners(families),
      origins: new Map(families.map(({ name, origin = 'code' }) => [name, origin])),
    },
    served: (devices) => servedIds(plugin.resources, devices),
    staleAfterMs: refresh['stale-after'],
    expect,
    partKinds: new Map(families.map(({ name, partKinds = [] }) => [name, partKinds])),
    passingKinds: new Map(families.map(({ name, passingKinds = [] }) => [name, passingKinds])),
    roles: new Map(families.flatMap(({ name, role }): [string, DeviceRole][] => (role === undefined ? [] : [[name, role]]))),
    use: { activities: activitiesOf(families), idle, canWait: waitingFamilies(families), limits: usage },
    isPlacementJudged: Object.entries(health.conditions ?? {}).some(
      ([key, { enabled }]) => enabled === true && key.endsWith(`.${POOR_PLACEMENT}`),
    ),
  };
}

function numberOwners(families: readonly DeviceFamily[]): ReadonlyMap<string, (resource: string) => boolean> {
  return new Map(
    families.flatMap(({ name, ownsNumbers }): [string, (resource: string) => boolean][] =>
      ownsNumbers === undefined ? [] : [[name, ownsNumbers]],
    ),
  );
}

function activitiesOf(families: readonly DeviceFamily[]): ReadonlyMap<string, ActivitySpec> {
  return new Map(families.flatMap(({ name, activity }): [string, ActivitySpec][] => (activity === undefined ? [] : [[name, activity]])));
}

const waitingFamilies = (families: readonly DeviceFamily[]): ReadonlySet<string> =>
  new Set(families.flatMap(({ name, progress }) => (progress === undefined ? [] : [name])));

function resolvers(families: readonly DeviceFamily[]): ReadonlyMap<string, Resolve> {
  return new Map(families.flatMap((family): [string, Resolve][] => (family.resolve === undefined ? [] : [[family.name, family.resolve]])));
}
