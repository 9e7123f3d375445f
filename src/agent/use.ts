import { type CheckpointUids, holdingPods, podsOfSameId, processOwners } from '../join/processes.ts';
import { isDelegatedId } from '../join/users.ts';
import { type Allocation, allocationKey } from '../model/allocation.ts';
import type { ActivitySpec, IdleThresholds } from '../model/declaration.ts';
import { defined } from '../model/defined.ts';
import type { Device } from '../model/device.ts';
import { activityOf, type DeviceActivity, type TrafficSum } from '../model/device-activity.ts';
import type { HeldRecord, JudgedRecord, UsedRecord } from '../model/device-record.ts';
import type { DelegationRules, DeviceUse, HoldingPod, LastHolders } from '../model/device-use.ts';
import { HardwareKeys } from '../model/hardware.ts';
import type { Verdict } from '../model/health.ts';
import { areHoldersKnown as areKnown, type PodFactsByName, type PodResources } from '../model/pod-resources.ts';
import { ofMetric, type Readings } from '../model/readings.ts';
import { shared } from '../model/shared-metrics.ts';
import { type AllocationState, fitsNoDevice } from '../model/snapshot.ts';
import type { ContainerWaiting } from '../model/usage.ts';
import type { Moment, RestoredDevice } from './known-devices.ts';
import type { Relatives } from './steps/kin.ts';

export interface UseSettings {
  /** How each family shows that its devices work, keyed by family. */
  readonly activities: ReadonlyMap<string, ActivitySpec>;
  readonly idle: IdleThresholds;
  /** Families whose devices can be said to wait. */
  readonly canWait?: ReadonlySet<string>;
  readonly delegation?: DelegationRules;
}

/** What one snapshot joins. */
export interface UseInput {
  readonly records: readonly HeldRecord[];
  readonly allocations: readonly AllocationState[];
  readonly podResources: PodResources;
  readonly kin: Relatives;
  /** Absent while it is not judged. */
  readonly waiting?: readonly ContainerWaiting[] | undefined;
  readonly inCheckpoint: CheckpointUids;
  /** All pods that the kubelet's Pods API tells; absent where it is not asked. */
  readonly pods?: PodFactsByName | undefined;
  /** Records of the snapshot before, keyed by device key. */
  readonly before: ReadonlyMap<string, Pick<JudgedRecord, 'verdict'>>;
}

/** Result of the comparison for one device. */
export type Occupancy = Pick<UsedRecord, 'lastHolders' | 'occupancy'>;

interface UseHistory {
  readonly device: Device;
  readonly lastHolders: LastHolders | undefined;
  /** The pods that the latest answer of the kubelet names, and when they were first seen; undefined before an answer. */
  readonly held?: { readonly pods: readonly HoldingPod[]; readonly fromMs: number } | undefined;
  readonly work?: Work | undefined;
  /** The latest read found a port up. */
  readonly isPortUp?: boolean | undefined;
}

/** Activity of the latest read, and the counters that the next read is compared with. */
interface Work {
  readonly activity: DeviceActivity;
  readonly readMs: number;
  readonly trafficSum: TrafficSum | undefined;
}

/** Conditions of families that tell of a port that is down or waits. */
const PORT_CONDITIONS: ReadonlySet<string> = new Set(['PortDown', 'PortInitializing', 'PortNotActivated']);

/** Compares what devices do with who holds them. It keeps what one snapshot cannot give: earlier counters and earlier holders. */
export class OccupancyTracker {
  /** Keyed by hardware. */
  #kept: ReadonlyMap<string, UseHistory>;

  /** `before`: devices that an earlier run of the agent knew, with their holders. */
  constructor(before: readonly RestoredDevice[] = []) {
    const keys = new HardwareKeys(before.map(({ device }) => device));
    this.#kept = new Map(before.map(({ device, user: lastHolders }) => [keys.of(device), { device, lastHolders }]));
  }

  /** The result is keyed by device key. */
  compare({ activities, idle, canWait, delegation }: UseSettings, input: UseInput, now: Moment): ReadonlyMap<string, Occupancy> {
    const { records, allocations, podResources, inCheckpoint, pods, kin } = input;
    const areHoldersKnown = areKnown(podResources);
    const isKept = (allocation: Allocation): boolean => podResources.held.has(allocationKey(allocation));
    const delegated = podResources.allocations.filter((allocation) => isDelegatedId(delegation?.ids ?? [], allocation));
    const delegates = holdingPods(delegated, inCheckpoint, pods);
    const possible = holdingPods(unresolvedIn(allocations), inCheckpoint, pods);
    const holdersOf = new Map(records.map(({ key, holders }) => [key, holders]));
    const keys = new HardwareKeys(records.map(({ device }) => device));
    const kept = new Map<string, UseHistory>();
    const found = new Map<string, Occupancy>();
    const waiting = new Map((input.waiting ?? []).flatMap((one) => one.devices.map((device) => [device, one] as const)));
    for (const record of records) {
      const { key, device, holders, current, isUnread } = record;
      const spec = activities.get(device.family);
      const before = keys.recall((of) => this.#kept.get(of), device);
      const kinHolders = kin.of(key).flatMap((other) => holdersOf.get(other) ?? []);
      const all = kinHolders.length === 0 ? holders : [...holders, ...kinHolders];
      const held = holdingPods(all, inCheckpoint, pods);
      // Who holds the whole does not hold each of its parts.
      const withParts = [...holders, ...kin.parts(key).flatMap((part) => holdersOf.get(part) ?? [])];
      const ofWhole = withParts.length === all.length ? held : holdingPods(withParts, inCheckpoint, pods);
      const lastHolders = areHoldersKnown ? lastHoldersAfter(before?.lastHolders, ofWhole, now) : before?.lastHolders;
      const heldNow = areHoldersKnown ? heldAfter(before?.held, held, now) : before?.held;
      const work = workAfter(before?.work, record, spec, idle[device.family]);
      const seen = current === undefined || isUnread ? undefined : memoryAndPorts(current.readings);
      const isPortUp = seen === undefined ? before?.isPortUp : seen.ports.includes(true);
      const hardware = keys.of(device);
      if (current === undefined || seen === undefined) {
        kept.set(hardware, { device, lastHolders, held: heldNow, work, isPortUp });
        found.set(key, { lastHolders, occupancy: undefined });
        continue;
      }
      const isDelegated = record.delegating !== undefined;
      const related = { held, possible, lastHolders, isDelegated, delegates, pods };
      const sameId = podsOfSameId(holders, pods, isKept);
      const activity = work && sinceHolders(work.activity, heldNow);
      const occupancy: DeviceUse = {
        monotonicMs: current.monotonicMs,
        ...defined({ activity }),
        ...idleShareOf(spec, idle[device.family]),
        isForHoldersOnly: spec?.isForHoldersOnly ?? false,
        hasParts: kin.parts(key).length > 0,
        isPart: device.parent !== undefined,
        areHoldersKnown,
        isReadWithHolders: heldNow !== undefined && current.startedMs >= heldNow.fromMs,
        holders: namesOf(holders),
        isHeld: held.length > 0,
        ...defined({ lastHolders }),
        ...(sameId.length === 0 ? {} : { sameId }),
        ...(canWait?.has(device.family) === true ? waitingOf(waiting.get(key), holders, input.waiting !== undefined) : {}),
        processes: processOwners(current.processes ?? [], related),
        hasAllProcesses: current.hasAllProcesses ?? false,
        ...seen,
        // The verdict on a port that has just gone down comes with this read.
        isPortFaultTold: before?.isPortUp === true || isPortFaultTold(input.before.get(key)?.verdict),
      };
      kept.set(hardware, { device, lastHolders, held: heldNow, work, isPortUp });
      found.set(key, { lastHolders, occupancy });
    }
    this.#kept = kept;
    return found;
  }
}

/** Allocations that lead to no known device. */
const unresolvedIn = (allocations: readonly AllocationState[]): readonly Allocation[] =>
  allocations.flatMap(({ allocation, unresolved }) => (fitsNoDevice(unresolved) || unresolved === 'ambiguous' ? [allocation] : []));

/** A device without a holder waits for nothing, and when nothing is judged, nothing is said to wait. One whose container has no answer has none. */
function waitingOf(waiting: ContainerWaiting | undefined, holders: readonly Allocation[], isJudged: boolean): Pick<DeviceUse, 'waiting'> {
  if (holders.length === 0 || !isJudged) return NOT_WAITING;
  return defined({ waiting });
}

const NOT_WAITING: Pick<DeviceUse, 'waiting'> = { waiting: { state: 'not-waiting' } };

const nameOf = ({ namespace, pod }: Allocation): string => `${namespace}/${pod}`;
const namesOf = (holders: readonly Allocation[]): readonly string[] => [...new Set(holders.map(nameOf))].sort();

/** While the holders are not known, the earlier ones stay. The first look without a holder is their end. */
function lastHoldersAfter(before: LastHolders | undefined, held: readonly HoldingPod[], { nowMs }: Moment): LastHolders | undefined {
  if (held.length > 0)
    return before?.endedAtMs === undefined && before !== undefined && areSamePods(before.pods, held) ? before : { pods: held };
  return before === undefined || before.endedAtMs !== undefined ? before : { ...before, endedAtMs: nowMs };
}

/** A pod whose UID becomes known counts as other pods: without the UID, its processes could not be compared. */
function heldAfter(before: UseHistory['held'], held: readonly HoldingPod[], { monotonicMs }: Moment): UseHistory['held'] {
  return before !== undefined && areSamePods(before.pods, held) ? before : { pods: held, fromMs: monotonicMs };
}

const areSamePods = (before: readonly HoldingPod[], held: readonly HoldingPod[]): boolean =>
  before.length === held.length &&
  held.every(({ namespace, pod, uid }, at) => before[at]?.pod === pod && before[at].namespace === namespace && before[at].uid === uid);

function workAfter(
  before: Work | undefined,
  { read }: HeldRecord,
  spec: ActivitySpec | undefined,
  thresholds: IdleThresholds[string] | undefined,
): Work | undefined {
  if (spec === undefined || read === undefined || read.monotonicMs === before?.readMs) return before;
  const activity = activityOf(spec, thresholds, {
    readings: read.readings,
    processes: read.processes ?? [],
    hasAllProcesses: read.hasAllProcesses,
    monotonicMs: read.monotonicMs,
    previous: before?.trafficSum,
  });
  return { activity, readMs: read.monotonicMs, trafficSum: activity.trafficSum ?? before?.trafficSum };
}

/** What a source told before the present holders came says nothing of them. */
function sinceHolders(activity: DeviceActivity, held: UseHistory['held']): DeviceActivity {
  return held === undefined || activity.untilMs >= held.fromMs ? activity : { ...activity, isIdle: 'unknown' };
}

function idleShareOf(spec: ActivitySpec | undefined, thresholds: IdleThresholds[string] | undefined): Pick<DeviceUse, 'idleShare'> {
  return spec?.utilization === undefined ? {} : { idleShare: thresholds?.utilization ?? spec.utilization.above };
}

function memoryAndPorts(readings: Readings): Pick<DeviceUse, 'memoryUsedBytes' | 'ports'> {
  const ports = ofMetric(readings, shared.linkUp.name).map(({ value }) => Number(value) === 1);
  const [used] = ofMetric(readings, shared.memoryUsed.name);
  return used === undefined ? { ports } : { ports, memoryUsedBytes: Number(used.value) };
}

/** One that waits to count tells the fault, too. Two remedies at once would contradict each other. */
const isPortFaultTold = ({ conditions = [], ignored = [], pending = [] }: Partial<Verdict> = {}): boolean =>
  [...conditions, ...ignored, ...pending].some(({ type }) => PORT_CONDITIONS.has(type));
