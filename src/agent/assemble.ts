import type { Accounts, Awaited } from '../accounting/accounts.ts';
import type { UsageInput } from '../accounting/holders.ts';
import type { ResourceDevices } from '../health/journal/ready-devices.ts';
import { useLimits } from '../health/occupancy/explained.ts';
import type { PresentHolder } from '../incidents/fault-holders.ts';
import { FaultLedger } from '../incidents/fault-ledger.ts';
import { containerReadings } from '../join/container-readings.ts';
import { localities } from '../join/localities.ts';
import { nameConflicts, type Origins } from '../join/name-conflicts.ts';
import { checkpointUids, podUids } from '../join/processes.ts';
import { findOwners, type Owners } from '../join/resolve.ts';
import { isDelegatedId } from '../join/users.ts';
import type { Allocation } from '../model/allocation.ts';
import { allocationKey } from '../model/allocation.ts';
import { wallClockOf } from '../model/clock-step.ts';
import type { Device } from '../model/device.ts';
import type { DeviceRecord, HeldRecord, JudgedRecord, UsedRecord } from '../model/device-record.ts';
import type { DelegationRules, DeviceUse, UseLimits } from '../model/device-use.ts';
import type { HealthEvent } from '../model/events.ts';
import { HardwareKeys } from '../model/hardware.ts';
import type { Finding, Verdict } from '../model/health.ts';
import { areHoldersKnown, type PodFactsByName } from '../model/pod-resources.ts';
import type { Readings } from '../model/readings.ts';
import type { Snapshot } from '../model/snapshot.ts';
import type { WaitingTracker } from '../waiting/tracker.ts';
import { ExpectedTracker, knownDevices, type Moment, type RestoredDevice, restored } from './known-devices.ts';
import { resourceDevices } from './resources.ts';
import {
  type AssembleSettings,
  familyStates,
  heldRecords,
  type Inputs,
  judgedRecords,
  ofHolders,
  placeFacts,
  podWith,
  presentHolders,
  resolverOf,
  unresolvedIn,
  usedRecords,
  withNames,
  withoutEnded,
} from './steps.ts';
import { kinOf, OccupancyTracker } from './use.ts';
import { UserTracker } from './users.ts';

export type Judge = (
  devices: readonly UsedRecord[],
  now: Moment,
  faults: readonly Omit<HealthEvent, 'id'>[],
) => ReadonlyMap<string, Verdict>;

const NO_FAMILIES: ReadonlySet<string> = new Set();
const NONE_AWAITED: ReadonlyMap<string, Awaited> = new Map();

/** What remembers the use of devices, for an agent that goes on. */
export interface UsageDependencies {
  readonly accounts: Accounts;
  readonly waiting?: WaitingTracker;
}

/** State that one snapshot passes to the next one. The accounts, the ledger of faults and the trackers keep their own state. */
interface Memory {
  /** The devices known so far, keyed by device key. */
  readonly known: ReadonlyMap<string, DeviceRecord>;
  /** The records of the snapshot, keyed by device key. */
  readonly records: ReadonlyMap<string, JudgedRecord>;
  readonly verdicts: ReadonlyMap<string, Verdict>;
  readonly owners: Owners;
  /** The time of the first snapshot. */
  readonly begun: Moment | undefined;
  readonly sequence: number;
}

/** Builds snapshots: joins the latest device readings with the latest allocations and judges each device. */
export class Assembler {
  #settings: AssembleSettings;
  #memory: Memory;
  readonly #judge: Judge;
  readonly #faults: FaultLedger;
  readonly #accounts: Accounts | undefined;
  readonly #waiting: WaitingTracker | undefined;
  readonly #occupancy: OccupancyTracker;
  readonly #users = new UserTracker();
  readonly #expected = new ExpectedTracker();

  /** `before`: devices that an earlier run of the agent knew. Those that the probes do not find again are missing. */
  constructor(
    settings: AssembleSettings,
    judge: Judge,
    before: readonly RestoredDevice[] = [],
    usage?: UsageDependencies,
    faults = new FaultLedger(0),
  ) {
    this.#settings = settings;
    this.#memory = {
      known: restored(before),
      records: new Map(),
      verdicts: new Map(),
      owners: { allocations: [], holders: new Map() },
      begun: undefined,
      sequence: 0,
    };
    this.#judge = judge;
    this.#faults = faults;
    this.#accounts = usage?.accounts;
    this.#waiting = usage?.waiting;
    this.#occupancy = new OccupancyTracker(before);
  }

  /** Replaces settings from the next snapshot on. */
  configure(settings: Partial<AssembleSettings>): void {
    this.#settings = { ...this.#settings, ...settings };
  }

  /** Families with a container whose counters have no base yet. */
  get awaited(): ReadonlyMap<string, Awaited> {
    return this.#accounts?.awaited ?? NONE_AWAITED;
  }

  /** When a device was first seen that may be a claim's, if the files of that claim were read before. Monotonic clock. */
  get unconfirmedMs(): number | undefined {
    return this.#memory.owners.unconfirmedMs;
  }

  /** Families to read again sooner than the usual refresh, because a container seems to wait. */
  get readSoon(): ReadonlySet<string> {
    return this.#waiting?.soon ?? NO_FAMILIES;
  }

  /** What the device did at its last read, compared with its holders; undefined when the latest reading did not read it. */
  useOf(key: string): DeviceUse | undefined {
    return this.#memory.records.get(key)?.occupancy;
  }

  /** What counts as allowed and as left behind. */
  get limits(): UseLimits {
    return useLimits(this.#settings.use?.limits ?? NO_LIMITS);
  }

  /** Known devices of a family: the present ones, then the missing ones. Who looks for the device at an address finds the present one first. */
  known(family: string): readonly Device[] {
    const known = [...this.#memory.known.values()].filter(({ device }) => device.family === family);
    const devices = (areMissing: boolean): readonly Device[] =>
      known.flatMap(({ device, missingSinceMs }) => ((missingSinceMs !== undefined) === areMissing ? [device] : []));
    return [...devices(false), ...devices(true)];
  }

  /** The devices of a Kubernetes resource; undefined while the kubelet has not told what it can allocate. */
  devicesOf(resource: string, snapshot: Snapshot): ResourceDevices | undefined {
    const { known } = this.#memory;
    const served = this.#settings.served?.([...known.values()]).get(resource);
    return resourceDevices(resource, snapshot, resolverOf(this.#settings, known), served);
  }

  /**
   * The steps of a snapshot, in their order. Those of `steps.ts` and `join` are pure: the result depends on the arguments alone. The faults,
   * the accounts, the waiting, the occupancy, the expected counts and the judge each keep a memory of their own.
   */
  assemble(inputs: Inputs, now: Moment): Snapshot {
    const [settings, { limits }, before] = [this.#settings, this, this.#memory];
    const { families, podResources, pods, checkpoint } = inputs;
    const { answeredAtMs } = podResources;
    const begun = before.begun ?? now;

    // Which devices are known, and under which names.
    const found = knownDevices(before.known, families, settings.missingRetentionMs, now);
    const devicesFound = Array.from(found.values(), ({ device }) => device);
    const origins = settings.rules.origins ?? NO_ORIGINS;
    const names = nameConflicts(devicesFound, origins);
    const named = withNames(found, names.changed);

    // Who holds them.
    const isMissing = (key: string): boolean => named.get(key)?.missingSinceMs !== undefined;
    const owners = findOwners(podResources, resolverOf(settings, named, inputs), isMissing);
    const { known, listed } = withoutEnded(named, owners.holders, podResources, settings.passingKinds);
    const facts = pods === undefined ? {} : { pods: ofHolders(pods, podResources) };
    const inCheckpoint = checkpointUids(checkpoint);
    const uidOf = podUids(inCheckpoint, facts.pods);
    const places = placeFacts(settings, known);
    const { exclusive } = podResources;
    const near = settings.roles === undefined ? [] : localities(owners.allocations, { ...places, exclusive });

    // The readings of the containers, their accounts, and the holders that each fault hit.
    const keys = new HardwareKeys(listed.map(({ device }) => device));
    const holdersOf = (key: string): readonly PresentHolder[] => presentHolders(owners.holders.get(key), uidOf);
    const answered = answeredAtMs === undefined ? undefined : wallClockOf(answeredAtMs, podResources.answeredMonotonicMs, now);
    const told = this.#faults.step({ ...now, devices: listed, holdersOf, answeredAtMs: answered, podOf: podWith(pods) }, keys);
    const readings = (device: Device): Readings => this.#faults.readingsOf(keys.of(device));
    const repeats = (device: Device): readonly Finding[] => this.#faults.findingsOf(keys.of(device));
    const held = heldRecords(listed, owners.holders, { begun, now, staleAfterMs: settings.staleAfterMs, readings, repeats, limits, uidOf });
    const kin = kinOf(known);
    const delegation = settings.use?.delegation ?? NO_DELEGATION;
    const isWatched = (family: string): boolean => settings.use?.activities.get(family)?.isForHoldersOnly === true;
    this.#users.look(held, { kin, isWatched, rules: delegation, limits, podResources, inCheckpoint, pods }, now);
    const ownReadings = containerReadings(held, settings.specs, { checkpoint, ...facts });
    const faultsOf: UsageInput['faultsOf'] = (device, holder, uid) => this.#faults.ownReadings(keys.of(device), holder, uid);
    const usage = this.#accounts?.step({ ...now, devices: held, containerReadings: ownReadings, answeredAtMs, pods, uidOf, faultsOf });
    const waiting = usage && this.#waiting?.step({ ...now, devices: held, usage });

    // Whether they do what their holders want, and how they are.
    const isAnswering = areHoldersKnown(podResources);
    const { verdicts: judgedBefore } = before;
    const owned = {
      unresolved: unresolvedIn(owners.allocations),
      delegated: podResources.allocations.filter((allocation) => isDelegatedId(delegation.ids, allocation)),
      isKept: (allocation: Allocation) => podResources.held.has(allocationKey(allocation)),
      kin,
      inCheckpoint,
      pods,
      areHoldersKnown: isAnswering,
      verdicts: judgedBefore,
    };
    const heldByKey = new Map(held.map((record) => [record.key, record]));
    const occupancy = settings.use && this.#occupancy.compare(settings.use, { known: heldByKey, waiting, ...owned }, now);
    const used = usedRecords(held, occupancy, limits);
    const verdicts = this.#judge(used, now, told);
    this.#accounts?.judged(verdicts);
    const devices = judgedRecords(used, verdicts);
    const expected = this.#expected.look(settings.expect ?? {}, families, known.values(), settings.partKinds);

    const sequence = before.sequence + 1;
    const records = new Map(devices.map((record) => [record.key, record]));
    this.#memory = { known, records, verdicts, owners, begun, sequence };
    return {
      sequence,
      takenAtMs: now.nowMs,
      devices,
      allocations: owners.allocations,
      ...(near.length === 0 ? {} : { localities: near }),
      ...(settings.virtual === undefined ? {} : { virtual: settings.virtual }),
      containerReadings: ownReadings,
      families: familyStates(families, known, { settings, names, expected }),
      ...(expected.length === 0 ? {} : { expected }),
      podResources,
      ...(usage === undefined ? {} : { usage }),
      ...(waiting === undefined ? {} : { waiting }),
      ...(pods === undefined || facts.pods === undefined ? {} : { pods: withUsers(facts.pods, pods, held) }),
    };
  }
}

const NO_LIMITS = { 'allowed-processes': [], 'dirty-mib': 0 };

/** The facts of holders with those of users. */
function withUsers(known: PodFactsByName, pods: PodFactsByName, held: readonly HeldRecord[]): PodFactsByName {
  const uids = new Set(held.flatMap(({ users = [] }) => users.map(({ uid }) => uid)));
  return uids.size === 0 ? known : new Map([...known, ...[...pods].filter(([, { uid }]) => uids.has(uid))]);
}

const NO_DELEGATION: DelegationRules = { holders: [], ids: [] };
const NO_ORIGINS: Origins = new Map();
