import type { ResourceDevices } from '../health/journal/ready-devices.ts';
import { whyDirty } from '../health/occupancy/explained.ts';
import type { Clock } from '../host/clock.ts';
import { readCpuNodes, readVirtualMachine } from '../host/facts.ts';
import { deviceDirectory } from '../host/fs/step-guard.ts';
import { Tree } from '../host/fs/tree.ts';
import { createHost, type Host } from '../host/host.ts';
import { createChangeLog } from '../log/changes.ts';
import type { Logger } from '../log/logger.ts';
import { defined } from '../model/defined.ts';
import type { Observe } from '../model/observation.ts';
import { MAX_RELEASE_MS, type ReleaseAnswer, type ReleaseRequest } from '../model/release.ts';
import { type AllocationState, fitsNoDevice, type Snapshot } from '../model/snapshot.ts';
import type { DeviceFamily } from '../probes/family.ts';
import { FamilyRunner } from '../supervisor/family-runner.ts';
import { devicesIn } from '../supervisor/left-out.ts';
import type { StartReader } from '../supervisor/messages.ts';
import { isPresent } from '../supervisor/probe-look.ts';
import { ReaderPool } from '../supervisor/reader-pool.ts';
import { startReader } from '../supervisor/reader-process.ts';
import { Assembler } from './assemble.ts';
import type { HealthService } from './health.ts';
import { HolderSources } from './holders.ts';
import type { AssembleSettings } from './inputs.ts';
import type { RestoredDevice } from './known-devices.ts';
import { ProblemLog } from './log-lines.ts';
import { servedIds } from './resources.ts';
import { type Lacks, Schedule, type ScheduleSettings } from './schedule.ts';
import type { AgentSettings } from './settings.ts';
import { Store } from './store.ts';
import type { AccountingService } from './usage.ts';

/** Interval of the reads of devices whose container seems to wait. */
const DEFAULT_SAMPLE_MS = 1_000;
const CLOSE_GRACE_MS = 1_000;

/** What a capture, a replay or a test replaces. */
export interface CoreDependencies {
  readonly start: StartReader;
  /** Takes what the agent itself reads. Present only in a capture. */
  readonly observe?: Observe;
  /** The clock of a capture or a replay. Default: the system's. */
  readonly clock?: Clock;
  /**
   * A capture or a replay: one refresh makes one snapshot. The order in which its reads end must not show, so no snapshot is made before the
   * last one ended, and nothing is read between two refreshes.
   */
  readonly isSteady?: true;
}

/**
 * Probes, kubelet client and store, without the outputs that read them. It connects what reads ({@link FamilyRunner}, {@link HolderSources}),
 * what decides when ({@link Schedule}), and what makes a snapshot of it ({@link Assembler}).
 */
export class AgentCore {
  readonly store = new Store();
  readonly runners: readonly FamilyRunner[];
  /** Answers of the kubelet, and files of the drivers of claims. */
  readonly holders: HolderSources;
  readonly #clock: Clock;
  readonly #schedule: Schedule;
  readonly #assembler: Assembler;
  readonly #problems: ProblemLog;
  readonly #readers: ReaderPool;
  readonly #health: HealthService;
  /** Families whose driver can be closed on request. */
  readonly #releasable: ReadonlySet<string>;

  constructor(
    settings: AgentSettings,
    health: HealthService,
    logger: Logger,
    clock: Clock,
    parts?: CoreDependencies,
    usage?: AccountingService,
  ) {
    this.#clock = clock;
    this.#health = health;
    const { start, observe, isSteady = false } = parts ?? { start: startReader };
    this.#readers = new ReaderPool(clock, start);
    const families = settings.families.map(({ family }) => family);
    this.#releasable = new Set(families.flatMap(({ name, canRelease }) => (canRelease === true ? [name] : [])));
    warnOfExpected(settings, families, logger);
    this.#problems = new ProblemLog(createChangeLog(logger), families);
    const host = createHost(settings.roots, clock, { observe });
    const changed = (isNews: boolean): void => this.#schedule.changed(isNews);
    const known = (): Snapshot['podResources'] | undefined => this.store.snapshot()?.podResources;
    this.holders = new HolderSources(settings, { clock, logger, problems: this.#problems, host, observe, changed, known });
    this.runners = settings.families.map(({ family, options }): FamilyRunner => {
      const runner: FamilyRunner = new FamilyRunner(
        {
          family: family.name,
          ...defined({ declared: family.declared }),
          options,
          roots: settings.roots,
          timeoutMs: settings.refresh.timeout,
          canBeSlow: family.canBeSlow,
          hung: health.hung(family.name),
          isExpected: health.known().some(({ device }) => device.family === family.name),
          wasReadCompletely: health.wasReadCompletely(family.name),
        },
        {
          clock,
          readers: this.#readers,
          events: {
            changed,
            wake: () => this.#schedule.wake(runner),
            crashed: (name, message) => logger.error('a probe ended with an error', { family: name, error: message }),
          },
          isPresent: () => isPresent(family, host, options),
          known: () => this.#assembler.known(family.name),
          counted: () => health.faults.mark(family.name),
        },
      );
      return runner;
    });
    const before = withHung(health.known(), families, health, new Tree(settings.roots.sysfs));
    this.#assembler = new Assembler(assembleSettings(settings, host, health), health.judge, before, usage, health.faults);
    this.#schedule = new Schedule(
      { clock, runners: this.runners, isSteady, ...samples(settings) },
      { assemble: () => this.#assemble(), ask: (isForFault) => this.holders.ask(isForFault), readClaims: () => this.holders.readClaims() },
    );
    health.onDue(() => this.assemble());
    // The state of an earlier run is valid until the next read, and is served at once.
    if (before.length > 0) this.assemble();
  }

  /** Takes other settings. Those that need a restart stay as they are. */
  configure(settings: AgentSettings): void {
    this.#assembler.configure(reloadableSettings(settings));
    this.#schedule.configure(samples(settings));
    for (const { family, options } of settings.families)
      this.runners.find((runner) => runner.family === family.name)?.configure({ options, timeoutMs: settings.refresh.timeout });
  }

  /** Reads everything once. Resolves when each part has answered or timed out. */
  refresh(): Promise<void> {
    return this.#schedule.read(this.runners, { hasHolders: true });
  }

  /** Reads some families once and makes a snapshot. Resolves when each family has answered or timed out. */
  refreshFamilies(isWanted: (family: string) => boolean): Promise<void> {
    return this.#schedule.read(this.#wanted(isWanted), { hasHolders: false });
  }

  /** As {@link refreshFamilies}, with the holders: the kubelet and its checkpoint are asked too. */
  refreshWithHolders(isWanted: (family: string) => boolean): Promise<void> {
    return this.#schedule.read(this.#wanted(isWanted), { hasHolders: true });
  }

  /** Makes a snapshot of the latest inputs. */
  assemble(): void {
    this.#schedule.assemble();
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
    this.#schedule.catchUp();
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

  /** Whether a claim has no device although its driver has named hardware for it. */
  get hasUnjoinedClaims(): boolean {
    return this.holders.hasClaims && this.store.snapshot()?.allocations.some(isUnjoinedClaim) === true;
  }

  /** Resolves to false when the thread that reads the checkpoint and the claims is stuck in the kernel, so that the process cannot end by itself. */
  async close(): Promise<boolean> {
    this.#schedule.close();
    this.holders.stop();
    for (const runner of this.runners) runner.close();
    await this.#readers.close(CLOSE_GRACE_MS);
    this.holders.close();
    return !this.holders.isStuck;
  }

  #wanted(isWanted: (family: string) => boolean): readonly FamilyRunner[] {
    return this.runners.filter(({ family }) => isWanted(family));
  }

  #assemble(): Lacks {
    const snapshot = this.#assembler.assemble(
      {
        families: this.runners.map((runner) => ({ state: runner.state(), latest: runner.latest(), isBlind: runner.isBlind })),
        ...this.holders.inputs,
      },
      { nowMs: this.#clock.now(), monotonicMs: this.#clock.monotonic() },
    );
    this.#health.hangs(Object.fromEntries(this.runners.map(({ family, hung }) => [family, hung])));
    this.#health.completed(this.runners.flatMap(({ family, wasReadCompletely }) => (wasReadCompletely ? [family] : [])));
    this.#problems.update(snapshot);
    this.store.publish(snapshot);
    this.holders.seen(snapshot.devices.flatMap(({ processes }) => processes));
    const { awaited, readSoon, unconfirmedMs } = this.#assembler;
    return { awaited, readSoon, unconfirmedMs, allocations: snapshot.allocations, isFaultOpen: this.#health.faults.isWaiting };
  }
}

const samples = ({ stall }: AgentSettings): Pick<ScheduleSettings, 'sampleMs'> => ({
  sampleMs: stall.sample > 0 ? stall.sample : DEFAULT_SAMPLE_MS,
});
const isUnjoinedClaim = ({ allocation, unresolved }: AllocationState): boolean =>
  allocation.claim !== undefined && fitsNoDevice(unresolved);

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

function assembleSettings(settings: AgentSettings, host: Host, health: HealthService): AssembleSettings {
  const families = settings.families.map(({ family }) => family);
  return {
    ...reloadableSettings(settings),
    specs: new Map(families.flatMap((family) => family.metrics).map((spec) => [spec.name, spec])),
    needs: new Map(families.map(({ name, needs = [] }) => [name, needs])),
    missingRetentionMs: settings.device['missing-retention'],
    cpuNodes: readCpuNodes(host.sys),
    virtual: readVirtualMachine(host.sys, host.proc),
    unreturned: () => health.engine.unreturned(),
  };
}

/** The settings of a snapshot that a new configuration can change. */
function reloadableSettings({
  families: enabled,
  podResources,
  pools,
  plugin,
  refresh,
  usage,
  idle,
  expect,
}: AgentSettings): Pick<AssembleSettings, 'rules' | 'served' | 'staleAfterMs' | 'use' | 'expect' | 'partKinds' | 'passingKinds' | 'roles'> {
  const families = enabled.map(({ family }) => family);
  return {
    rules: {
      pools,
      withoutHardware: [...podResources['without-hardware'], ...families.flatMap(({ withoutHardware = [] }) => withoutHardware)],
      delegatedIds: usage['delegated-ids'],
      families: declared(families, ({ resolve }) => resolve),
      claimNames: declared(families, ({ claimNames }) => claimNames),
      numbers: declared(families, ({ ownsNumbers }) => ownsNumbers),
      origins: declared(families, ({ origin = 'code' }) => origin),
    },
    served: (devices) => servedIds(plugin.resources, devices),
    staleAfterMs: refresh['stale-after'],
    expect,
    partKinds: declared(families, ({ partKinds }) => partKinds),
    passingKinds: declared(families, ({ passingKinds }) => passingKinds),
    roles: declared(families, ({ role }) => role),
    use: {
      activities: declared(families, ({ activity }) => activity),
      idle,
      canWait: new Set(declared(families, ({ progress }) => progress).keys()),
      limits: usage,
      delegation: { holders: usage['delegated-holders'], ids: usage['delegated-ids'] },
    },
  };
}

/** What families declare, keyed by the name of the family, without those that do not declare it. */
function declared<T>(families: readonly DeviceFamily[], partOf: (family: DeviceFamily) => T | undefined): ReadonlyMap<string, T> {
  return new Map(
    families.flatMap((family): [string, T][] => {
      const part = partOf(family);
      return part === undefined ? [] : [[family.name, part]];
    }),
  );
}
