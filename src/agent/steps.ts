import type { UsageOptions } from '../accounting/options.ts';
import { isAllowed } from '../health/occupancy/explained.ts';
import { useFindings } from '../health/occupancy/findings.ts';
import type { PresentHolder } from '../incidents/fault-holders.ts';
import type { LocalityFacts } from '../join/localities.ts';
import type { NameConflicts } from '../join/name-conflicts.ts';
import { strangersAmong, type UidOf } from '../join/processes.ts';
import { type DeviceSight, type Owners, type ResolveRules, Resolver, type ServedIds } from '../join/resolve.ts';
import type { Allocation } from '../model/allocation.ts';
import type { ClaimHardwareIndex, ClaimTimes } from '../model/claim-hardware.ts';
import { wallClockOf } from '../model/clock-step.ts';
import type { DeviceRole } from '../model/container-locality.ts';
import { disabledChecks, type HostNeed } from '../model/declaration.ts';
import { type Device, deviceKey, type VirtualMachine } from '../model/device.ts';
import type { DeviceRecord, HeldRecord, JudgedRecord, ReadTimes, SourceFindings, UsedRecord } from '../model/device-record.ts';
import type { DeviceUse, UseLimits } from '../model/device-use.ts';
import type { ExpectedDevices } from '../model/expected.ts';
import type { Finding, Verdict } from '../model/health.ts';
import type { MetricSpec } from '../model/metric.ts';
import {
  type CheckpointEntry,
  type ExtendedResource,
  isExtendedClaim,
  type PodFacts,
  type PodFactsByName,
  type PodResources,
  podName,
} from '../model/pod-resources.ts';
import { joinedReadings, Readings } from '../model/readings.ts';
import { type AllocationState, type FamilyState, fitsNoDevice } from '../model/snapshot.ts';
import { type FamilyInput, type Moment, type PartKinds, withExpected } from './known-devices.ts';
import type { ServedDevice } from './resources.ts';
import type { Occupancy, UseSettings } from './use.ts';

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

type Known = ReadonlyMap<string, DeviceRecord>;

/** The devices under the names that they keep. `changed`: see {@link NameConflicts}. */
export function withNames(known: Known, changed: NameConflicts['changed']): Known {
  if (changed.size === 0) return known;
  return new Map(
    [...known].flatMap(([key, one]): [string, DeviceRecord][] => {
      const device = changed.has(key) ? changed.get(key) : one.device;
      return device === undefined ? [] : [[key, { ...one, device }]];
    }),
  );
}

/** Finds the devices of an allocation. */
export function resolverOf(
  { rules: fixed, served }: Pick<AssembleSettings, 'rules' | 'served'>,
  known: Known,
  { claims = new Map(), claimTimes }: Pick<Inputs, 'claims' | 'claimTimes'> = {},
): Resolver {
  const rules = {
    ...fixed,
    claims,
    ...(claimTimes === undefined ? {} : { claimTimes }),
    sightOf: (key: string) => sightOf(known.get(key)),
  };
  const records = [...known.values()];
  const devices = records.map(({ device }) => device);
  return new Resolver(devices, served === undefined ? rules : { ...rules, served: served(records) });
}

const sightOf = (record: DeviceRecord | undefined): DeviceSight | undefined =>
  record && { isMissing: record.missingSinceMs !== undefined, firstMs: record.firstReadMs, lastMs: record.read?.startedMs };

/** The longest time between the end of a part and the end of its holder in the kubelet's list. */
const ENDING_MS = 5_000;

/**
 * Drops the parts that ended with their holder. As long as a holder is listed, a part that is gone is missing. The kubelet lists a holder for a
 * moment after the driver has destroyed its part, so an answer soon after the read proves nothing: the part is then unread in `listed`, which
 * is sorted by key.
 */
export function withoutEnded(
  before: Known,
  holders: Owners['holders'],
  { answeredMonotonicMs = 0 }: PodResources,
  passingKinds?: PartKinds,
): { readonly known: Known; readonly listed: readonly DeviceRecord[] } {
  const isPassing = ({ device, missingSinceMs }: DeviceRecord): boolean =>
    missingSinceMs !== undefined && passingKinds?.get(device.family)?.includes(device.kind) === true;
  const isRead = ({ device: { family, parent } }: DeviceRecord): boolean => {
    const whole = parent === undefined ? undefined : before.get(deviceKey({ family, id: parent }));
    return whole !== undefined && whole.missingSinceMs === undefined && !whole.isUnread;
  };
  const gone = [...before.values()].filter((record) => isPassing(record) && isRead(record));
  const ended = new Set(gone.filter(({ key }) => !holders.has(key)));
  const known = gone.length === 0 ? before : new Map([...before].filter(([, record]) => !ended.has(record)));
  const open = new Set(gone.filter(({ missingFromMs = 0 }) => answeredMonotonicMs < missingFromMs + ENDING_MS));
  const listed = [...known.values()].map((record) => {
    if (!open.has(record)) return record;
    const { missingSinceMs, missingFromMs, ...present } = record;
    return { ...present, isUnread: true };
  });
  const isInOrder = listed.every(({ key }, at) => at === 0 || (listed[at - 1] as DeviceRecord).key < key);
  return { known, listed: isInOrder ? listed : listed.sort((a, b) => (a.key < b.key ? -1 : 1)) };
}

/** Only pods that hold devices: the others are out of scope. */
export function ofHolders(pods: PodFactsByName, { allocations }: PodResources): PodFactsByName {
  const holding = new Set(allocations.map(podName));
  const claims = new Map(
    allocations.flatMap(({ namespace, pod, container, claim }): [string, string][] =>
      claim?.namespace === namespace && isExtendedClaim(pod, claim.name)
        ? [[`${podName({ namespace, pod })}\u0000${container}`, claim.name]]
        : [],
    ),
  );
  return new Map([...pods].flatMap(([name, pod]): [string, PodFacts][] => (holding.has(name) ? [[name, withClaims(pod, claims)]] : [])));
}

/** Names the claim of each extended resource, and leaves out those that a device plugin serves. `claims`: by pod and container. */
function withClaims({ extended: wanted = [], ...pod }: PodFacts, claims: ReadonlyMap<string, string>): PodFacts {
  const extended = wanted.flatMap((one): ExtendedResource[] => {
    const claim = claims.get(`${podName(pod)}\u0000${one.container}`);
    return claim === undefined ? [] : [{ ...one, claim }];
  });
  return extended.length === 0 ? pod : { ...pod, extended };
}

/** Where the devices are, and what connects them. */
export function placeFacts(
  { roles = NO_ROLES, cpuNodes = NO_CPUS }: Pick<AssembleSettings, 'roles' | 'cpuNodes'>,
  known: Known,
): Omit<LocalityFacts, 'exclusive'> {
  return { device: (key) => known.get(key)?.device, roleOf: (family) => roles.get(family), cpuNodes };
}

const NO_ROLES: NonNullable<AssembleSettings['roles']> = new Map();
const NO_CPUS: NonNullable<AssembleSettings['cpuNodes']> = new Map();

/** Holders of a device as events name them. */
export const presentHolders = (holders: readonly Allocation[] = NOBODY, uidOf: UidOf): readonly PresentHolder[] =>
  holders.map((holder) => {
    const { namespace, pod, container, resource, deviceId } = holder;
    return { holder: { namespace, pod, container, resource, deviceId }, uid: uidOf(holder) };
  });

const NOBODY: readonly Allocation[] = [];

/** The pod with a container, by the Pods API. */
export const podWith =
  (pods: PodFactsByName = new Map()) =>
  (containerId: string): string | undefined =>
    [...pods.values()].find(({ containers }) => containers.some(({ id }) => id === containerId))?.uid;

interface HeldFacts {
  /** The first snapshot of this run. */
  readonly begun: Moment;
  readonly now: Moment;
  readonly staleAfterMs: number;
  /** What was counted of the faults of a device. */
  readings(device: Device): Readings;
  repeats(device: Device): readonly Finding[];
  readonly limits: UseLimits;
  readonly uidOf: UidOf;
}

/** Adds the holders, and the readings that are not too old. */
export function heldRecords(records: readonly DeviceRecord[], holders: Owners['holders'], facts: HeldFacts): readonly HeldRecord[] {
  return records.map((record) => {
    const held = heldRecord(record, holders.get(record.key) ?? NOBODY, facts);
    const users = held.processes.filter((process) => !isAllowed(process, facts.limits));
    const strangers = strangersAmong(users, held.holders, facts.uidOf);
    return strangers.length === 0 ? held : Object.assign(held, { strangers });
  });
}

function heldRecord(record: DeviceRecord, holders: readonly Allocation[], facts: HeldFacts): HeldRecord {
  const { begun, now, staleAfterMs, readings } = facts;
  const { read, outOfBand, readBeforeMs, wasHung } = record;
  // A reading of an earlier run is old because no agent ran. The stale age counts from the start of this run instead.
  const isStale = (times: { readonly monotonicMs: number } | undefined): boolean =>
    now.monotonicMs - (times ?? begun).monotonicMs >= staleAfterMs;
  const isPresent = record.missingSinceMs === undefined;
  const stale = isStale(read);
  const current = stale || !isPresent ? undefined : read;
  const faults = isPresent ? readings(record.device) : Readings.NONE;
  const own = current?.readings ?? Readings.NONE;
  const sideReadings = outOfBand === undefined || isStale(outOfBand) || !isPresent ? faults : joinedReadings(outOfBand.readings, faults);
  // A device that hung gets no new grace time at each start. Otherwise an agent that restarts often would report it as healthy forever.
  const isAwaited = read === undefined && readBeforeMs !== undefined && wasHung === undefined;
  // The number of recent faults decreases with time. While their source is not read, new ones may be missing.
  const repeats = outOfBand?.areFaultsRead === true ? facts.repeats(record.device) : [];
  const times = read ?? readBefore(record, begun);
  return Object.assign(record, {
    holders,
    ...(outOfBand !== undefined &&
      repeats.length > 0 && { repeats: { findings: repeats, readAtMs: outOfBand.readAtMs, monotonicMs: outOfBand.monotonicMs } }),
    current,
    readings: joinedReadings(own, sideReadings),
    processes: current?.processes ?? NO_PROCESSES,
    readAtMs: wallClockOf(times.readAtMs, times.monotonicMs, now),
    ...(read === undefined ? {} : { monotonicMs: read.monotonicMs }),
    stale,
    awaitedSinceMs: isAwaited ? begun.nowMs : undefined,
  });
}

const NO_PROCESSES: HeldRecord['processes'] = [];

/**
 * The monotonic times of an earlier run are unknown, so the wall clock at the start of this run gives the age. A time in the future means
 * that the wall clock was set back.
 */
function readBefore({ readBeforeMs: beforeMs = 0 }: DeviceRecord, begun: Moment): Pick<ReadTimes, 'readAtMs' | 'monotonicMs'> {
  const readBeforeMs = Math.min(beforeMs, begun.nowMs);
  return { readAtMs: readBeforeMs, monotonicMs: begun.monotonicMs - (begun.nowMs - readBeforeMs) };
}

export const unresolvedIn = (allocations: readonly AllocationState[]): readonly Allocation[] =>
  allocations.flatMap(({ allocation, unresolved }) => (fitsNoDevice(unresolved) || unresolved === 'ambiguous' ? [allocation] : []));

const NO_OCCUPANCY: Occupancy = { lastHolders: undefined, occupancy: undefined };

/** Adds what the devices do, compared with their holders. `occupancies` are keyed by device key. */
export function usedRecords(
  held: readonly HeldRecord[],
  occupancies: ReadonlyMap<string, Occupancy> | undefined,
  limits: UseLimits,
): readonly UsedRecord[] {
  return held.map((record) => {
    const { key, current } = record;
    const { lastHolders, occupancy } = occupancies?.get(key) ?? NO_OCCUPANCY;
    const use = occupancy && useOf(occupancy, current as ReadTimes, limits);
    return Object.assign(record, { lastHolders, occupancy, use });
  });
}

const useOf = (occupancy: DeviceUse, { readAtMs, monotonicMs }: ReadTimes, limits: UseLimits): SourceFindings => ({
  findings: useFindings(occupancy, limits),
  readAtMs,
  monotonicMs,
});

const UNJUDGED: Verdict = { state: 'unknown', sinceMs: 0, conditions: [] };

export const judgedRecords = (used: readonly UsedRecord[], verdicts: ReadonlyMap<string, Verdict>): readonly JudgedRecord[] =>
  used.map((record) => Object.assign(record, { verdict: verdicts.get(record.key) ?? UNJUDGED }));

interface FamilyFacts {
  readonly settings: Pick<AssembleSettings, 'unreturned' | 'needs'>;
  readonly names: NameConflicts;
  readonly expected: readonly ExpectedDevices[];
}

/** The families with what the snapshot found out about them. */
export function familyStates(
  families: readonly FamilyInput[],
  known: Known,
  { settings, names, expected }: FamilyFacts,
): readonly FamilyState[] {
  const present = [...known.values()].flatMap(({ device, missingSinceMs }) => (missingSinceMs === undefined ? [device] : []));
  const unreturned = settings.unreturned?.() ?? [];
  return families.map(({ state }) => {
    const told = withExpected(withProblems(state, names), expected);
    return withDisabled(withUnreturned(told, unreturned, present), settings.needs?.get(state.family), present);
  });
}

function withProblems(state: FamilyState, { problems }: NameConflicts): FamilyState {
  const own = problems.get(state.family) ?? [];
  return own.length === 0 ? state : { ...state, problems: [...state.problems, ...own] };
}

/** Other hardware in its place shows that a device was replaced. */
function withUnreturned(state: FamilyState, absent: readonly Device[], present: readonly Device[]): FamilyState {
  const unreturned = absent
    .filter((device) => device.family === state.family && !present.some((other) => isOtherInPlace(other, device)))
    .map(({ id }) => id);
  return unreturned.length === 0 ? state : { ...state, unreturned };
}

function isOtherInPlace(other: Device, device: Device): boolean {
  const isInPlace = other.family === device.family && other.parent === undefined && other.pciAddress === device.pciAddress;
  const areIdentified = typeof other.identity === 'string' && typeof device.identity === 'string';
  return isInPlace && other.pciAddress !== undefined && areIdentified && other.identity !== device.identity;
}

function withDisabled(state: FamilyState, needs: readonly HostNeed[] = [], present: readonly Device[]): FamilyState {
  const disabled = disabledChecks(needs, state.problems);
  const hasDevices = present.some(({ family }) => family === state.family);
  return disabled.length > 0 && hasDevices ? { ...state, disabledChecks: disabled } : state;
}
