import type { Accounts } from '../accounting/accounts.ts';
import type { UsageOptions } from '../accounting/options.ts';
import type { UsedDevice } from '../accounting/used-device.ts';
import type { JudgedDevice } from '../health/engine/judge-device.ts';
import { useLimits } from '../health/occupancy/explained.ts';
import { useFindings } from '../health/occupancy/findings.ts';
import { containerReadings } from '../join/container-readings.ts';
import { nameConflicts, type Origins } from '../join/name-conflicts.ts';
import { findOwners } from '../join/owners.ts';
import { checkpointUids, podUids } from '../join/pod-uids.ts';
import { type ResolveRules, Resolver, type ServedIds } from '../join/resolve.ts';
import type { Allocation } from '../model/allocation.ts';
import type { ClaimHardwareIndex } from '../model/claim-hardware.ts';
import type { Problem } from '../model/collection.ts';
import type { Device } from '../model/device.ts';
import type { DeviceUse, DeviceUser, UseLimits } from '../model/device-use.ts';
import type { Verdict } from '../model/health.ts';
import { disabledChecks, type HostNeed } from '../model/host-need.ts';
import type { MetricSpec } from '../model/metric.ts';
import { type PodFactsByName, podName } from '../model/pod-facts.ts';
import type { CheckpointEntry, PodResources } from '../model/pod-resources.ts';
import type { AllocationState, DeviceState, FamilyState, Snapshot } from '../model/snapshot.ts';
import type { TimedCollection } from '../supervisor/family-runner.ts';
import { ExpectedTracker, type PartKinds, withExpected } from './expected.ts';
import { type FamilyInput, type KnownDevice, knownDevices, type Moment, type RestoredDevice, restored } from './known-devices.ts';
import type { ServedDevice } from './served.ts';
import { OccupancyTracker, type UseInput, type UseSettings, type Uses } from './use.ts';

export interface AssembleSettings {
  readonly rules: ResolveRules;
  /** Maps the ids of the resources that this agent serves to devices. */
  readonly served?: (known: readonly ServedDevice[]) => ServedIds;
  /** Declared metrics of all families, keyed by name. */
  readonly specs: ReadonlyMap<string, MetricSpec>;
  readonly staleAfterMs: number;
  readonly missingRetentionMs: number;
  /** Number of devices that each family must have at least. */
  readonly expect?: Readonly<Record<string, number>>;
  readonly partKinds?: PartKinds;
  /** What the families need of the host. */
  readonly needs?: ReadonlyMap<string, readonly HostNeed[]>;
  /** Without them, the use of devices is not compared with their holders. */
  readonly use?: UseSettings & { readonly limits: Pick<UsageOptions, 'allowed-processes' | 'dirty-mib'> };
}

/** Latest input of each source, whatever its age. */
export interface Inputs {
  readonly families: readonly FamilyInput[];
  readonly podResources: PodResources;
  /** Absent while the Pods API is not asked. */
  readonly pods?: PodFactsByName;
  readonly checkpoint: readonly CheckpointEntry[];
  /** The hardware that the files of DRA drivers name for claims. */
  readonly claims?: ClaimHardwareIndex;
}

export type Judge = (devices: readonly JudgedDevice[], now: Moment) => ReadonlyMap<string, Verdict>;

const UNJUDGED: Verdict = { state: 'unknown', sinceMs: 0, conditions: [] };
const NOBODY: readonly Allocation[] = [];
const NONE_AWAITED: ReadonlyMap<string, number> = new Map();

type Unjudged = Omit<DeviceState, 'verdict'>;

interface LookedAt {
  readonly state: Unjudged;
  readonly read: KnownDevice['read'];
}

/** What remembers the use of devices, for an agent that goes on. */
export interface UsageDependencies {
  readonly accounts: Accounts;
}

/**
 * Builds snapshots: joins the latest device readings with the latest allocations and judges each device. It keeps only the state that one
 * reading cannot give: the devices known so far.
 */
export class Assembler {
  #settings: AssembleSettings;
  readonly #judge: Judge;
  readonly #accounts: Accounts | undefined;
  #known: ReadonlyMap<string, KnownDevice>;
  readonly #occupancy: OccupancyTracker;
  readonly #expectedTracker = new ExpectedTracker();
  #uses: ReadonlyMap<string, DeviceUse> = new Map();
  #verdicts: ReadonlyMap<string, Verdict> = new Map();
  #begunAt: Moment | undefined;
  #sequence = 0;

  /** `before`: devices that an earlier run of the agent knew. Those that the probes do not find again are missing. */
  constructor(settings: AssembleSettings, judge: Judge, before: readonly RestoredDevice[] = [], usage?: UsageDependencies) {
    this.#settings = settings;
    this.#judge = judge;
    this.#known = restored(before);
    this.#accounts = usage?.accounts;
    this.#occupancy = new OccupancyTracker(before);
  }

  /** Replaces settings from the next snapshot on. */
  configure(settings: Partial<AssembleSettings>): void {
    this.#settings = { ...this.#settings, ...settings };
  }

  /** Families with a container whose counters have no base yet. The value is the monotonic time from which a read gives the base. */
  get awaited(): ReadonlyMap<string, number> {
    return this.#accounts?.awaited ?? NONE_AWAITED;
  }

  /** What the device did at its last read, compared with its holders; undefined when the latest reading did not read it. */
  useOf(key: string): DeviceUse | undefined {
    return this.#uses.get(key);
  }

  /** What counts as allowed and as left behind. */
  get limits(): UseLimits {
    return useLimits(this.#settings.use?.limits ?? { 'allowed-processes': [], 'dirty-mib': 0 });
  }

  /** Known devices of a family, including missing ones. */
  known(family: string): readonly Device[] {
    return [...this.#known.values()].map(({ device }) => device).filter((device) => device.family === family);
  }

  assemble({ families, podResources, pods, checkpoint, claims = new Map() }: Inputs, now: Moment): Snapshot {
    this.#begunAt ??= now;
    const { specs, missingRetentionMs, expect = {} } = this.#settings;
    const found = knownDevices(this.#known, families, missingRetentionMs, now);
    const { changed, problems } = nameConflicts(
      [...found.values()].map(({ device }) => device),
      this.#origins,
    );
    this.#known = withNames(found, changed);
    const known = [...this.#known].sort(([a], [b]) => (a < b ? -1 : 1));
    const { allocations, holders } = findOwners(
      podResources,
      this.#resolver(claims),
      (key) => this.#known.get(key)?.missingSinceMs !== undefined,
    );
    const holdersOf = (key: string): readonly Allocation[] => holders.get(key) ?? NOBODY;
    const unjudged = known.map(([key, device]) => this.#unjudged(key, device, holdersOf(key), now));
    const told = pods === undefined ? {} : { pods: ofHolders(pods, podResources) };
    const inCheckpoint = checkpointUids(checkpoint);
    const uidOf = podUids(inCheckpoint, told.pods);
    const looked = unjudged.map((state): LookedAt => ({ state, read: this.#known.get(state.key)?.read }));
    const ownReadings = containerReadings(unjudged, specs, { checkpoint, ...told });
    const { answeredAtMs } = podResources;
    const usage = this.#accounts?.step({ ...now, devices: looked.map(asUsed), containerReadings: ownReadings, answeredAtMs, uidOf });
    const { uses, users } = this.#look({ holdersOf, unresolved: unresolvedIn(allocations), inCheckpoint, pods }, podResources, now);
    const { limits } = this;
    const verdicts = this.#judge(
      known.map(([key, device]) => ({
        ...this.#judged(key, device, holdersOf(key)),
        ...judgedUse(device, uses.get(key), limits, users.get(key)),
      })),
      now,
    );
    this.#accounts?.judged(verdicts);
    this.#uses = uses;
    this.#verdicts = verdicts;
    const expected = this.#expectedTracker.look(expect, families, this.#known.values(), this.#settings.partKinds);
    return {
      sequence: ++this.#sequence,
      takenAtMs: now.nowMs,
      devices: unjudged.map((state): DeviceState => ({ ...state, verdict: verdicts.get(state.key) ?? UNJUDGED })),
      allocations,
      containerReadings: ownReadings,
      families: families.map(({ state }) => this.#withDisabled(withExpected(withProblems(state, problems.get(state.family)), expected))),
      ...(expected.length === 0 ? {} : { expected }),
      podResources,
      ...(usage === undefined ? {} : { usage }),
      ...told,
    };
  }

  #withDisabled(state: FamilyState): FamilyState {
    const { family, problems } = state;
    const disabled = disabledChecks(this.#settings.needs?.get(family) ?? [], problems);
    const hasDevices = [...this.#known.values()].some((one) => one.device.family === family && one.missingSinceMs === undefined);
    return disabled.length > 0 && hasDevices ? { ...state, disabledChecks: disabled } : state;
  }

  #unjudged(key: string, device: KnownDevice, holders: readonly Allocation[], now: Moment): Unjudged {
    const begun = this.#begunAt as Moment;
    // A reading of an earlier run is old because no agent ran. The stale age counts from the start of this run instead.
    const isStale = (look: { readonly monotonicMs: number } | undefined): boolean =>
      now.monotonicMs - (look ?? begun).monotonicMs >= this.#settings.staleAfterMs;
    const readAtMs = wallClockOf(device.read ?? readBefore(device, begun), now);
    const age = { isStale: isStale(device.read), isAsideStale: isStale(device.outOfBand) };
    return toState(key, device, holders, age, readAtMs);
  }

  #look(
    owned: Pick<UseInput, 'holdersOf' | 'unresolved' | 'inCheckpoint' | 'pods'>,
    { answeredAtMs, problem }: PodResources,
    now: Moment,
  ): Uses {
    const { use, staleAfterMs } = this.#settings;
    if (use === undefined) return NO_USES;
    const areHoldersKnown = answeredAtMs !== undefined && problem === undefined;
    return this.#occupancy.look(use, { known: this.#known, ...owned, areHoldersKnown, staleAfterMs, verdicts: this.#verdicts }, now);
  }

  get #origins(): Origins {
    return this.#settings.rules.origins ?? NO_ORIGINS;
  }

  #resolver(claims: ClaimHardwareIndex): Resolver {
    const { rules: fixed, served } = this.#settings;
    const rules = { ...fixed, claims };
    // A declaration that others can change gives no device a holder.
    const known = [...this.#known.values()].filter(({ device }) => this.#origins.get(device.family) !== 'others');
    const devices = known.map(({ device }) => device);
    return new Resolver(devices, served === undefined ? rules : { ...rules, served: served(known.map(asServed)) });
  }

  #judged(
    key: string,
    { device, read, outOfBand, isUnread, missingSinceMs, readBeforeMs, wasHung }: KnownDevice,
    holders: readonly Allocation[],
  ): JudgedDevice {
    // A device that hung gets no new grace time at each start. Otherwise an agent that restarts often would report it as healthy forever.
    const isAwaited = read === undefined && readBeforeMs !== undefined && wasHung === undefined;
    return {
      key,
      device,
      ...(read === undefined ? {} : { read: { findings: read.findings, atMs: read.readAtMs, monotonicMs: read.monotonicMs } }),
      ...(outOfBand === undefined
        ? {}
        : { outOfBand: { findings: outOfBand.findings, atMs: outOfBand.readAtMs, monotonicMs: outOfBand.monotonicMs } }),
      isUnread,
      ...(isAwaited ? { awaitedSinceMs: (this.#begunAt as Moment).nowMs } : {}),
      ...(missingSinceMs === undefined ? {} : { missingSinceMs }),
      holders,
    };
  }
}

const unresolvedIn = (allocations: readonly AllocationState[]): readonly Allocation[] =>
  allocations.flatMap(({ allocation, unresolved }) => (unresolved === 'no-device' || unresolved === 'ambiguous' ? [allocation] : []));

const NO_ORIGINS: Origins = new Map();

function withNames(
  known: ReadonlyMap<string, KnownDevice>,
  changed: ReadonlyMap<string, Device | undefined>,
): ReadonlyMap<string, KnownDevice> {
  if (changed.size === 0) return known;
  return new Map(
    [...known].flatMap(([key, one]): [string, KnownDevice][] => {
      const device = changed.has(key) ? changed.get(key) : one.device;
      return device === undefined ? [] : [[key, { ...one, device }]];
    }),
  );
}

const withProblems = (state: FamilyState, problems: readonly Problem[] = []): FamilyState =>
  problems.length === 0 ? state : { ...state, problems: [...state.problems, ...problems] };

const NO_USES: Uses = { uses: new Map(), users: new Map() };

function judgedUse(
  { read }: KnownDevice,
  use: DeviceUse | undefined,
  limits: UseLimits,
  user: DeviceUser | undefined,
): Pick<JudgedDevice, 'use' | 'user'> {
  const remembered = user === undefined ? {} : { user };
  if (use === undefined || read === undefined) return remembered;
  return { ...remembered, use: { findings: useFindings(use, limits), atMs: read.readAtMs, monotonicMs: read.monotonicMs } };
}

/** Only pods that hold devices: the others are out of scope. */
function ofHolders(pods: PodFactsByName, { allocations }: PodResources): PodFactsByName {
  const holding = new Set(allocations.map(podName));
  return new Map([...pods].filter(([name]) => holding.has(name)));
}

function asUsed({ state, read }: LookedAt): UsedDevice {
  const { key, device, holders, readings, processes, stale, missingSinceMs } = state;
  const isCurrent = !stale && missingSinceMs === undefined && read !== undefined;
  const times = isCurrent ? { read: { fromMs: read.startedMs, toMs: read.monotonicMs } } : {};
  return { key, device, holders, readings, processes, ...times };
}

const asServed = ({ device, missingSinceMs }: KnownDevice): ServedDevice =>
  missingSinceMs === undefined ? { device } : { device, missingSinceMs };

/** A smaller difference between the clocks is drift. */
const CLOCK_STEP_MS = 1_000;

/** Time of a reading on the wall clock as it is set now. */
function wallClockOf({ readAtMs, monotonicMs }: Pick<TimedCollection, 'readAtMs' | 'monotonicMs'>, now: Moment): number {
  const atMs = now.nowMs - (now.monotonicMs - monotonicMs);
  return Math.abs(atMs - readAtMs) > CLOCK_STEP_MS ? atMs : readAtMs;
}

/**
 * The monotonic times of an earlier run are unknown, so the wall clock at the start of this run gives the age. A time in the future means
 * that the wall clock was set back.
 */
function readBefore({ readBeforeMs: beforeMs = 0 }: KnownDevice, begun: Moment): Pick<TimedCollection, 'readAtMs' | 'monotonicMs'> {
  const readBeforeMs = Math.min(beforeMs, begun.nowMs);
  return { readAtMs: readBeforeMs, monotonicMs: begun.monotonicMs - (begun.nowMs - readBeforeMs) };
}

function toState(
  key: string,
  { device, read, outOfBand, missingSinceMs }: KnownDevice,
  holders: readonly Allocation[],
  { isStale, isAsideStale }: { readonly isStale: boolean; readonly isAsideStale: boolean },
  readAtMs: number,
): Unjudged {
  const isPresent = missingSinceMs === undefined;
  const isCurrent = !isStale && isPresent;
  const own = isCurrent && read !== undefined ? read.readings : [];
  return {
    key,
    device,
    readings: outOfBand === undefined || isAsideStale || !isPresent ? own : [...own, ...outOfBand.readings],
    processes: isCurrent ? (read?.processes ?? []) : [],
    holders,
    readAtMs,
    ...(isPresent ? {} : { missingSinceMs }),
    stale: isStale,
  };
}
