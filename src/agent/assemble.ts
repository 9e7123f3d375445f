import type { Accounts } from '../accounting/accounts.ts';
import type { UsageOptions } from '../accounting/options.ts';
import type { UsageInput } from '../accounting/used-device.ts';
import type { ResourceDevices } from '../health/journal/ready-devices.ts';
import { isAllowed, useLimits } from '../health/occupancy/explained.ts';
import { useFindings } from '../health/occupancy/findings.ts';
import type { PresentHolder } from '../incidents/fault-holders.ts';
import { FaultLedger } from '../incidents/fault-ledger.ts';
import { containerReadings } from '../join/container-readings.ts';
import { type LocalityFacts, localities } from '../join/localities.ts';
import { nameConflicts, type Origins } from '../join/name-conflicts.ts';
import { findOwners } from '../join/owners.ts';
import { checkpointUids, podUids } from '../join/pod-uids.ts';
import { strangersAmong } from '../join/processes.ts';
import { type DeviceSight, type ResolveRules, Resolver, type ServedIds } from '../join/resolve.ts';
import type { Allocation } from '../model/allocation.ts';
import type { ClaimHardwareIndex, ClaimTimes } from '../model/claim-hardware.ts';
import type { Problem } from '../model/collection.ts';
import type { ContainerLocality, DeviceRole } from '../model/container-locality.ts';
import { type Device, deviceKey } from '../model/device.ts';
import type { DeviceRecord, HeldRecord, JudgedRecord, ReadTimes, SourceFindings, UsedRecord } from '../model/device-record.ts';
import type { DeviceUse, UseLimits } from '../model/device-use.ts';
import type { VirtualMachine } from '../model/direct-access.ts';
import type { EventHolder, HealthEvent } from '../model/events.ts';
import { HardwareKeys } from '../model/hardware.ts';
import type { Finding, Verdict } from '../model/health.ts';
import { disabledChecks, type HostNeed } from '../model/host-need.ts';
import type { MetricSpec } from '../model/metric.ts';
import { type PodFactsByName, podName } from '../model/pod-facts.ts';
import type { CheckpointEntry, PodResources } from '../model/pod-resources.ts';
import type { AllocationState, FamilyState, Snapshot } from '../model/snapshot.ts';
import type { ContainerWaiting } from '../model/waiting.ts';
import type { WaitingTracker } from '../waiting/tracker.ts';
import { ExpectedTracker, type PartKinds, withExpected } from './expected.ts';
import { type FamilyInput, knownDevices, type Moment, type RestoredDevice, restored } from './known-devices.ts';
import { placementFindings } from './placement.ts';
import { resourceDevices } from './resource-devices.ts';
import type { ServedDevice } from './served.ts';
import { type Occupancy, OccupancyTracker, type UseInput, type UseSettings } from './use.ts';

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
  /** Kinds of parts that may end with their holder. */
  readonly passingKinds?: PartKinds;
  /** The role of each family whose devices exchange data, keyed by the name of the family. */
  readonly roles?: ReadonlyMap<string, DeviceRole>;
  /** The NUMA node of each CPU. */
  readonly cpuNodes?: ReadonlyMap<number, number>;
  readonly virtual?: VirtualMachine | undefined;
  /** Whether GPUs are compared with those that are free. */
  readonly isPlacementJudged?: boolean;
  /** Hardware that was out of service when it was last listed and that was not listed since, as the latest judgement left it. */
  readonly unreturned?: () => readonly Device[];
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
  /** When these files were read. Without it, the times of claims and devices are not compared. */
  readonly claimTimes?: ReadonlyMap<string, ClaimTimes>;
}

export type Judge = (
  devices: readonly UsedRecord[],
  now: Moment,
  faults: readonly Omit<HealthEvent, 'id'>[],
) => ReadonlyMap<string, Verdict>;

const UNJUDGED: Verdict = { state: 'unknown', sinceMs: 0, conditions: [] };
const NOBODY: readonly Allocation[] = [];
const NO_FAMILIES: ReadonlySet<string> = new Set();
const NONE_AWAITED: ReadonlyMap<string, number> = new Map();

/** What remembers the use of devices, for an agent that goes on. */
export interface UsageDependencies {
  readonly accounts: Accounts;
  readonly waiting?: WaitingTracker;
}

/**
 * Builds snapshots: joins the latest device readings with the latest allocations and judges each device. It keeps only the state that one
 * reading cannot give: the devices known so far.
 */
export class Assembler {
  #settings: AssembleSettings;
  readonly #judge: Judge;
  readonly #faults: FaultLedger;
  readonly #accounts: Accounts | undefined;
  readonly #waiting: WaitingTracker | undefined;
  #known: ReadonlyMap<string, DeviceRecord>;
  /** The records of the latest snapshot, keyed by device key. */
  #records: ReadonlyMap<string, JudgedRecord> = new Map();
  readonly #occupancy: OccupancyTracker;
  readonly #expectedTracker = new ExpectedTracker();
  #verdicts: ReadonlyMap<string, Verdict> = new Map();
  #unconfirmedMs: number | undefined;
  #begunAt: Moment | undefined;
  #sequence = 0;

  /** `before`: devices that an earlier run of the agent knew. Those that the probes do not find again are missing. */
  constructor(
    settings: AssembleSettings,
    judge: Judge,
    before: readonly RestoredDevice[] = [],
    usage?: UsageDependencies,
    faults = new FaultLedger(0),
  ) {
    this.#settings = settings;
    this.#judge = judge;
    this.#faults = faults;
    this.#known = restored(before);
    this.#accounts = usage?.accounts;
    this.#waiting = usage?.waiting;
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

  /** When a device was first seen that may be a claim's, if the files of that claim were read before. Monotonic clock. */
  get unconfirmedMs(): number | undefined {
    return this.#unconfirmedMs;
  }

  /** Families to read again sooner than the usual refresh, because a container seems to wait. */
  get readSoon(): ReadonlySet<string> {
    return this.#waiting?.soon ?? NO_FAMILIES;
  }

  /** What the device did at its last read, compared with its holders; undefined when the latest reading did not read it. */
  useOf(key: string): DeviceUse | undefined {
    return this.#records.get(key)?.occupancy;
  }

  /** What counts as allowed and as left behind. */
  get limits(): UseLimits {
    return useLimits(this.#settings.use?.limits ?? { 'allowed-processes': [], 'dirty-mib': 0 });
  }

  /** Known devices of a family, including missing ones. */
  known(family: string): readonly Device[] {
    return [...this.#known.values()].map(({ device }) => device).filter((device) => device.family === family);
  }

  /** The devices of a Kubernetes resource; undefined while the kubelet has not told what it can allocate. */
  devicesOf(resource: string, snapshot: Snapshot): ResourceDevices | undefined {
    const served = this.#settings.served?.([...this.#known.values()]).get(resource);
    return resourceDevices(resource, snapshot, this.#resolver(new Map()), served);
  }

  assemble({ families, podResources, pods, checkpoint, claims = new Map(), claimTimes }: Inputs, now: Moment): Snapshot {
    this.#begunAt ??= now;
    const { specs, missingRetentionMs, expect = {} } = this.#settings;
    const found = knownDevices(this.#known, families, missingRetentionMs, now);
    const { changed, problems } = nameConflicts(
      [...found.values()].map(({ device }) => device),
      this.#origins,
    );
    this.#known = withNames(found, changed);
    const { allocations, holders, unconfirmedMs } = findOwners(
      podResources,
      this.#resolver(claims, claimTimes),
      (key) => this.#known.get(key)?.missingSinceMs !== undefined,
    );
    this.#unconfirmedMs = unconfirmedMs;
    const known = this.#withoutEnded(holders, podResources).sort((a, b) => (a.key < b.key ? -1 : 1));
    const facts = pods === undefined ? {} : { pods: ofHolders(pods, podResources) };
    const inCheckpoint = checkpointUids(checkpoint);
    const uidOf = podUids(inCheckpoint, facts.pods);
    const { limits } = this;
    const { answeredAtMs } = podResources;
    const keys = new HardwareKeys(known.map(({ device }) => device));
    const holdersOf = (key: string): readonly PresentHolder[] =>
      (holders.get(key) ?? NOBODY).map((holder) => ({ holder: eventHolder(holder), uid: uidOf(holder) }));
    const told = this.#faults.step({ ...now, devices: known, holdersOf, answeredAtMs, podOf: podWith(pods) }, keys);
    const held = known.map((record) => {
      const joined = this.#held(record, holders.get(record.key) ?? NOBODY, keys, now);
      const users = joined.processes.filter((process) => !isAllowed(process, limits));
      const strangers = strangersAmong(users, joined.holders, uidOf);
      return strangers.length === 0 ? joined : Object.assign(joined, { strangers });
    });
    const ownReadings = containerReadings(held, specs, { checkpoint, ...facts });
    const faultsOf: UsageInput['faultsOf'] = (device, holder, uid) => this.#faults.ownReadings(keys.of(device), holder, uid);
    const usage = this.#accounts?.step({ ...now, devices: held, containerReadings: ownReadings, answeredAtMs, uidOf, faultsOf });
    const waiting = usage && this.#waiting?.step({ ...now, devices: held, usage });
    const near = this.#localities(allocations, podResources);
    const owned = { unresolved: unresolvedIn(allocations), inCheckpoint, pods };
    const used = this.#used(held, waiting, owned, podResources, near, now);
    const verdicts = this.#judge(used, now, told);
    this.#accounts?.judged(verdicts);
    this.#verdicts = verdicts;
    const devices = used.map((record) => Object.assign(record, { verdict: verdicts.get(record.key) ?? UNJUDGED }));
    this.#records = new Map(devices.map((record) => [record.key, record]));
    const expected = this.#expectedTracker.look(expect, families, this.#known.values(), this.#settings.partKinds);
    return {
      sequence: ++this.#sequence,
      takenAtMs: now.nowMs,
      devices,
      allocations,
      ...(near.length === 0 ? {} : { localities: near }),
      ...(this.#settings.virtual === undefined ? {} : { virtual: this.#settings.virtual }),
      containerReadings: ownReadings,
      families: families.map(({ state }) =>
        this.#withDisabled(this.#withUnreturned(withExpected(withProblems(state, problems.get(state.family)), expected))),
      ),
      ...(expected.length === 0 ? {} : { expected }),
      podResources,
      ...(usage === undefined ? {} : { usage }),
      ...(waiting === undefined ? {} : { waiting }),
      ...facts,
    };
  }

  /**
   * Drops the parts that ended with their holder. As long as a holder is listed, a part that is gone is missing. The kubelet lists a holder for a
   * moment after the driver has destroyed its part, so an answer soon after the read proves nothing: the part is then unread.
   */
  #withoutEnded(holders: ReadonlyMap<string, readonly Allocation[]>, { answeredAtMs = 0 }: PodResources): DeviceRecord[] {
    const isPassing = ({ device, missingSinceMs }: DeviceRecord): boolean =>
      missingSinceMs !== undefined && this.#settings.passingKinds?.get(device.family)?.includes(device.kind) === true;
    const isRead = ({ device: { family, parent } }: DeviceRecord): boolean => {
      const whole = parent === undefined ? undefined : this.#known.get(deviceKey({ family, id: parent }));
      return whole !== undefined && whole.missingSinceMs === undefined && !whole.isUnread;
    };
    const gone = [...this.#known.values()].filter((record) => isPassing(record) && isRead(record));
    if (gone.length === 0) return [...this.#known.values()];
    const ended = new Set(gone.filter(({ key }) => !holders.has(key)));
    this.#known = new Map([...this.#known].filter(([, record]) => !ended.has(record)));
    const open = new Set(gone.filter(({ missingSinceMs = 0 }) => answeredAtMs < missingSinceMs + ENDING_MS));
    return [...this.#known.values()].map((record) => {
      const { missingSinceMs, missingFromMs, ...listed } = record;
      return open.has(record) ? { ...listed, isUnread: true } : record;
    });
  }

  #localities(allocations: readonly AllocationState[], { exclusive }: PodResources): readonly ContainerLocality[] {
    return this.#settings.roles === undefined ? [] : localities(allocations, { ...this.#placeFacts, exclusive });
  }

  get #placeFacts(): Omit<LocalityFacts, 'exclusive'> {
    const { roles = new Map(), cpuNodes = new Map() } = this.#settings;
    return { device: (key) => this.#known.get(key)?.device, roleOf: (family) => roles.get(family), cpuNodes };
  }

  /** Other hardware in its place shows that a device was replaced. */
  #withUnreturned(state: FamilyState): FamilyState {
    const absent = (this.#settings.unreturned?.() ?? []).filter(({ family }) => family === state.family);
    if (absent.length === 0) return state;
    const present = [...this.#known.values()].flatMap(({ device, missingSinceMs }) => (missingSinceMs === undefined ? [device] : []));
    const unreturned = absent.filter((device) => !present.some((other) => isOtherInPlace(other, device))).map(({ id }) => id);
    return unreturned.length === 0 ? state : { ...state, unreturned };
  }

  #withDisabled(state: FamilyState): FamilyState {
    const { family, problems } = state;
    const disabled = disabledChecks(this.#settings.needs?.get(family) ?? [], problems);
    const hasDevices = [...this.#known.values()].some((one) => one.device.family === family && one.missingSinceMs === undefined);
    return disabled.length > 0 && hasDevices ? { ...state, disabledChecks: disabled } : state;
  }

  #held(record: DeviceRecord, holders: readonly Allocation[], keys: HardwareKeys, now: Moment): HeldRecord {
    const begun = this.#begunAt as Moment;
    const { read, outOfBand, readBeforeMs, wasHung } = record;
    // A reading of an earlier run is old because no agent ran. The stale age counts from the start of this run instead.
    const isStale = (times: { readonly monotonicMs: number } | undefined): boolean =>
      now.monotonicMs - (times ?? begun).monotonicMs >= this.#settings.staleAfterMs;
    const isPresent = record.missingSinceMs === undefined;
    const stale = isStale(read);
    const current = stale || !isPresent ? undefined : read;
    const faults = isPresent ? this.#faults.readingsOf(keys.of(record.device)) : [];
    const own = current?.readings ?? [];
    const sideReadings = outOfBand === undefined || isStale(outOfBand) || !isPresent ? faults : [...outOfBand.readings, ...faults];
    // A device that hung gets no new grace time at each start. Otherwise an agent that restarts often would report it as healthy forever.
    const isAwaited = read === undefined && readBeforeMs !== undefined && wasHung === undefined;
    return Object.assign(record, {
      holders,
      current,
      readings: sideReadings.length === 0 ? own : [...own, ...sideReadings],
      processes: current?.processes ?? [],
      readAtMs: wallClockOf(read ?? readBefore(record, begun), now),
      ...(read === undefined ? {} : { monotonicMs: read.monotonicMs }),
      stale,
      awaitedSinceMs: isAwaited ? begun.nowMs : undefined,
    });
  }

  #used(
    held: readonly HeldRecord[],
    waiting: readonly ContainerWaiting[] | undefined,
    owned: Pick<UseInput, 'unresolved' | 'inCheckpoint' | 'pods'>,
    { answeredAtMs, problem }: PodResources,
    near: readonly ContainerLocality[],
    now: Moment,
  ): readonly UsedRecord[] {
    const { limits } = this;
    const { use } = this.#settings;
    const known = new Map(held.map((record) => [record.key, record]));
    const areHoldersKnown = answeredAtMs !== undefined && problem === undefined;
    const found = use && this.#occupancy.compare(use, { known, waiting, ...owned, areHoldersKnown, verdicts: this.#verdicts }, now);
    const isJudged = this.#settings.isPlacementJudged === true && areHoldersKnown;
    const placement = isJudged ? placementFindings(held, near, this.#verdicts, this.#placeFacts) : NO_FINDINGS;
    return held.map((record) => {
      const { user, occupancy } = found?.get(record.key) ?? NO_OCCUPANCY;
      const use = occupancy && useOf(occupancy, record.current as ReadTimes, limits);
      const own = placement.get(record.key);
      return Object.assign(record, { user, occupancy, use: use && own ? { ...use, findings: [...use.findings, own] } : use });
    });
  }

  get #origins(): Origins {
    return this.#settings.rules.origins ?? NO_ORIGINS;
  }

  #resolver(claims: ClaimHardwareIndex, claimTimes?: ReadonlyMap<string, ClaimTimes>): Resolver {
    const { rules: fixed, served } = this.#settings;
    const rules = {
      ...fixed,
      claims,
      ...(claimTimes === undefined ? {} : { claimTimes }),
      sightOf: (key: string) => sightOf(this.#known.get(key)),
    };
    const known = [...this.#known.values()];
    const devices = known.map(({ device }) => device);
    return new Resolver(devices, served === undefined ? rules : { ...rules, served: served(known) });
  }
}

/** The longest time between the end of a part and the end of its holder in the kubelet's list. */
const ENDING_MS = 5_000;

const sightOf = (record: DeviceRecord | undefined): DeviceSight | undefined =>
  record && { isMissing: record.missingSinceMs !== undefined, firstMs: record.firstReadMs, lastMs: record.read?.startedMs };

function isOtherInPlace(other: Device, device: Device): boolean {
  const isInPlace = other.family === device.family && other.parent === undefined && other.pciAddress === device.pciAddress;
  const areIdentified = typeof other.identity === 'string' && typeof device.identity === 'string';
  return isInPlace && other.pciAddress !== undefined && areIdentified && other.identity !== device.identity;
}

const unresolvedIn = (allocations: readonly AllocationState[]): readonly Allocation[] =>
  allocations.flatMap(({ allocation, unresolved }) => (unresolved === 'no-device' || unresolved === 'ambiguous' ? [allocation] : []));

function eventHolder({ namespace, pod, container, resource, deviceId }: Allocation): EventHolder {
  return { namespace, pod, container, resource, deviceId };
}

/** The pod with a container, by the Pods API. */
const podWith =
  (pods: PodFactsByName = new Map()) =>
  (containerId: string): string | undefined =>
    [...pods.values()].find(({ containers }) => containers.some(({ id }) => id === containerId))?.uid;

const NO_ORIGINS: Origins = new Map();

function withNames(
  known: ReadonlyMap<string, DeviceRecord>,
  changed: ReadonlyMap<string, Device | undefined>,
): ReadonlyMap<string, DeviceRecord> {
  if (changed.size === 0) return known;
  return new Map(
    [...known].flatMap(([key, one]): [string, DeviceRecord][] => {
      const device = changed.has(key) ? changed.get(key) : one.device;
      return device === undefined ? [] : [[key, { ...one, device }]];
    }),
  );
}

const withProblems = (state: FamilyState, problems: readonly Problem[] = []): FamilyState =>
  problems.length === 0 ? state : { ...state, problems: [...state.problems, ...problems] };

const NO_FINDINGS: ReadonlyMap<string, Finding> = new Map();
const NO_OCCUPANCY: Occupancy = { user: undefined, occupancy: undefined };

const useOf = (occupancy: DeviceUse, { readAtMs, monotonicMs }: ReadTimes, limits: UseLimits): SourceFindings => ({
  findings: useFindings(occupancy, limits),
  readAtMs,
  monotonicMs,
});

/** Only pods that hold devices: the others are out of scope. */
function ofHolders(pods: PodFactsByName, { allocations }: PodResources): PodFactsByName {
  const holding = new Set(allocations.map(podName));
  return new Map([...pods].filter(([name]) => holding.has(name)));
}

/** A smaller difference between the clocks is drift. */
const CLOCK_STEP_MS = 1_000;

/** Time of a reading on the wall clock as it is set now. */
function wallClockOf({ readAtMs, monotonicMs }: Pick<ReadTimes, 'readAtMs' | 'monotonicMs'>, now: Moment): number {
  const atMs = now.nowMs - (now.monotonicMs - monotonicMs);
  return Math.abs(atMs - readAtMs) > CLOCK_STEP_MS ? atMs : readAtMs;
}

/**
 * The monotonic times of an earlier run are unknown, so the wall clock at the start of this run gives the age. A time in the future means
 * that the wall clock was set back.
 */
function readBefore({ readBeforeMs: beforeMs = 0 }: DeviceRecord, begun: Moment): Pick<ReadTimes, 'readAtMs' | 'monotonicMs'> {
  const readBeforeMs = Math.min(beforeMs, begun.nowMs);
  return { readAtMs: readBeforeMs, monotonicMs: begun.monotonicMs - (begun.nowMs - readBeforeMs) };
}
