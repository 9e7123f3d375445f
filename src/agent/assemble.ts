import type { Accounts, Awaited } from '../accounting/accounts.ts';
import type { UsageInput } from '../accounting/holders.ts';
import type { ResourceDevices } from '../health/journal/ready-devices.ts';
import { useLimits } from '../health/occupancy/explained.ts';
import { FaultLedger } from '../incidents/fault-ledger.ts';
import { containerReadings } from '../join/container-readings.ts';
import { localities } from '../join/localities.ts';
import { checkpointUids, podUids } from '../join/processes.ts';
import type { Owners } from '../join/resolve.ts';
import { defined } from '../model/defined.ts';
import type { Device } from '../model/device.ts';
import type { DeviceRecord, JudgedRecord, UsedRecord } from '../model/device-record.ts';
import type { DeviceUse, UseLimits } from '../model/device-use.ts';
import type { HealthEvent } from '../model/events.ts';
import { HardwareKeys } from '../model/hardware.ts';
import type { Verdict } from '../model/health.ts';
import type { Snapshot } from '../model/snapshot.ts';
import type { WaitingTracker } from '../waiting/tracker.ts';
import type { AssembleSettings, Inputs } from './inputs.ts';
import { ExpectedTracker, knownDevices, type Moment, type RestoredDevice, restored } from './known-devices.ts';
import { resourceDevices } from './resources.ts';
import { withoutEnded } from './steps/ended.ts';
import { familyStates } from './steps/families.ts';
import { faultInput } from './steps/faults.ts';
import { heldRecords } from './steps/held.ts';
import { judgedRecords, usedRecords } from './steps/judged.ts';
import { kinOf } from './steps/kin.ts';
import { withNames } from './steps/names.ts';
import { ownersOf, resolverOf } from './steps/owners.ts';
import { placeFacts } from './steps/places.ts';
import { ofHolders, withUsers } from './steps/pods.ts';
import { OccupancyTracker } from './use.ts';
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
  /** See {@link Owners}. */
  readonly unconfirmedMs: number | undefined;
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
      unconfirmedMs: undefined,
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
    return this.#memory.unconfirmedMs;
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
   * The steps of a snapshot, in their order. Those of `steps` and `join` are pure: the result depends on the arguments alone. The faults, the
   * accounts, the waiting, the users, the occupancy, the expected counts and the judge each keep a memory of their own.
   */
  assemble(inputs: Inputs, now: Moment): Snapshot {
    const [settings, { limits }, before] = [this.#settings, this, this.#memory];
    const { families, podResources, pods, checkpoint } = inputs;
    const begun = before.begun ?? now;

    // Which devices are known, and under which names.
    const found = knownDevices(before.known, families, settings.missingRetentionMs, now);
    const { named, conflicts } = withNames(found, settings.rules.origins);

    // Who holds them.
    const owners = ownersOf(settings, named, inputs);
    const { known, listed } = withoutEnded(named, owners.holders, podResources, settings.passingKinds);
    const holding = ofHolders(pods, podResources);
    const inCheckpoint = checkpointUids(checkpoint);
    const uidOf = podUids(inCheckpoint, holding);
    const near = localities(owners.allocations, placeFacts(settings, known, podResources));
    const kin = kinOf(known);

    // Their faults, whom each one hit, and the readings that are not too old.
    const keys = new HardwareKeys(listed.map(({ device }) => device));
    const events = this.#faults.step(faultInput({ devices: listed, owners, uidOf, podResources, pods }, now), keys);
    const held = heldRecords(listed, owners.holders, {
      begun,
      now,
      staleAfterMs: settings.staleAfterMs,
      faults: this.#faults,
      keys,
      limits,
      uidOf,
    });
    this.#users.look(held, { kin, settings: settings.use, limits, podResources, inCheckpoint, pods }, now);

    // The readings of the containers, their accounts, and whether they wait.
    const ofContainers = containerReadings(held, settings.specs, { checkpoint, pods: holding });
    const faultsOf: UsageInput['faultsOf'] = (device, holder, uid) => this.#faults.ownReadings(keys.of(device), holder, uid);
    const { answeredAtMs } = podResources;
    const usage = this.#accounts?.step({ ...now, devices: held, containerReadings: ofContainers, answeredAtMs, pods, uidOf, faultsOf });
    const waiting = usage && this.#waiting?.step({ ...now, devices: held, usage });

    // Whether they do what their holders want, and how they are.
    const joined = {
      records: held,
      allocations: owners.allocations,
      podResources,
      kin,
      waiting,
      inCheckpoint,
      pods,
      before: before.records,
    };
    const used = usedRecords(held, settings.use && this.#occupancy.compare(settings.use, joined, now), limits);
    const verdicts = this.#judge(used, now, events);
    this.#accounts?.judged(verdicts);
    const devices = judgedRecords(used, verdicts);
    const expected = this.#expected.look(settings.expect ?? {}, families, known.values(), settings.partKinds);

    const sequence = before.sequence + 1;
    this.#memory = {
      known,
      records: new Map(devices.map((record) => [record.key, record])),
      unconfirmedMs: owners.unconfirmedMs,
      begun,
      sequence,
    };
    return {
      sequence,
      takenAtMs: now.nowMs,
      devices,
      allocations: owners.allocations,
      containerReadings: ofContainers,
      families: familyStates(families, known, { settings, conflicts, expected }),
      podResources,
      ...defined({
        localities: near.length === 0 ? undefined : near,
        virtual: settings.virtual,
        expected: expected.length === 0 ? undefined : expected,
        usage,
        waiting,
        pods: withUsers(holding, pods, held),
      }),
    };
  }
}

const NO_LIMITS = { 'allowed-processes': [], 'dirty-mib': 0 };
