import type { Allocation } from '../model/allocation.ts';
import { defined } from '../model/defined.ts';
import { type Device, deviceKey } from '../model/device.ts';
import type { DeviceUser } from '../model/device-use.ts';
import type { ActiveCondition, HealthState, IgnoredCondition, PendingCondition, Remedy, Severity, Verdict } from '../model/health.ts';
import { pendingTrouble, remedyNow } from '../model/health.ts';
import { timeText } from './units.ts';

/** State of a device as people see it: the verdict, or `missing` when the hardware no longer lists the device. */
export type DisplayState = HealthState | 'missing';

/**
 * Use of a device. `held`: a container holds it. `held by parts`: no container holds it, but containers hold parts of it, so that it cannot
 * be allocated itself. `used`: no container holds it, but the processes of pods use it. `free`: the kubelet says that no container holds it. `unknown`: the kubelet did not say it, or
 * a container holds an id that several devices have.
 */
export const DEVICE_USES = ['held', 'held by parts', 'used', 'free', 'no holder', 'unknown'] as const;
export type DeviceUse = (typeof DEVICE_USES)[number];

/** Facts of a device that its row shows. */
type RowFacts = Pick<
  Device,
  'family' | 'id' | 'kind' | 'parent' | 'numaNode' | 'pciAddress' | 'pciPath' | 'model' | 'product' | 'vendor' | 'driver' | 'firmware'
>;

/**
 * One device as all show it: the API, the event stream, the page and the commands. Plain data that is the same as JSON. Times are RFC 3339 in
 * UTC. A value that is not known is absent.
 */
export interface DeviceView extends RowFacts {
  /** `family/id`. */
  readonly key: string;
  /** Short name for people: `GPU 0`, `eth0`. It may change at a reboot; `id` does not. */
  readonly name: string;
  /** Another name of it: its network interface, or its name in the kernel. */
  readonly also?: string;
  /** Since when the hardware no longer lists the device; absent while it is there. */
  readonly missingSince?: string;
  /** Time of the read that the readings come from. */
  readonly readAt: string;
  /** True when the last read is too old to be shown. */
  readonly stale: boolean;
  readonly health: HealthView;
  /**
   * The record of the fault that it has; absent without one. `hit`: `namespace/pod` of those that held it when the fault began. `countedAt`:
   * when the fault took the verdict, where that was after its begin.
   */
  readonly incident?: { readonly id: string; readonly countedAt?: string; readonly hit: readonly string[] };
  readonly use: DeviceUse;
  /** Containers that hold the device or a part of it. */
  readonly holders: readonly HolderView[];
  /** Pods whose processes use the device without holding it, by name, or by UID where no name is known; absent without one. */
  readonly users?: readonly UserView[];
  /** `namespace/pod` of those that held it last; only of a device that nobody can use: it has no holder, and is not free. */
  readonly lastHolders?: readonly string[];
  /** The farthest device that a container holds with it, and the way to it: `SYS to eth0`. */
  readonly farthest?: string;
  /** The most telling readings, three at most. */
  readonly shown: readonly DisplayReading[];
}

export interface HealthView {
  /** The verdict. */
  readonly state: HealthState;
  /** Time at which it took the state; absent while unknown. */
  readonly since?: string;
  /** Conditions that count, worst first. */
  readonly conditions: readonly ConditionView[];
  /** Conditions that do not count yet; absent when there are none. */
  readonly pending?: readonly ConditionView[];
  /** Conditions that an ignore rule covers; absent when there are none. */
  readonly ignored?: readonly (ConditionView & { readonly ignoreReason: string; readonly ignoredUntil: string })[];
  /** Fatal conditions that no read could judge so far; absent when there are none. */
  readonly unchecked?: readonly string[];
  readonly transitions?: Verdict['transitions'];
}

export interface ConditionView {
  readonly type: string;
  readonly instance?: string;
  readonly severity: Severity;
  readonly reason: string;
  readonly message: string;
  /** Remedy that applies now: `none` for a condition that ended. */
  readonly remedy: Remedy;
  /** Id of the device whose fault is the source of this one. */
  readonly causedBy?: string;
  readonly since: string;
  readonly unverifiedSince?: string;
  /** Present for a condition that does not count yet. */
  readonly countsAt?: string;
  /** Present for a condition that ended and still counts. */
  readonly recovering?: { readonly since: string; readonly until: string };
  /** Name of the parent that has the same condition, or whose fault is its cause: its row shows the condition and the remedy. */
  readonly ofWhole?: string;
}

/** A container that holds the device. `deviceId`: one of several where it holds several replicas. */
export interface HolderView extends Omit<Allocation, 'numaNodes'> {
  /** Name of the part that it holds, as `name` of its row; absent when it holds the device itself. */
  readonly part?: string;
  /** The container holds the device for its users. */
  readonly delegated?: true;
}

export type UserView = Omit<DeviceUser, 'processes'>;

/** What is said of a device without a holder: `free`, `no holder; last: ml/train-0`. */
export function noHolderText({ use, lastHolders = [] }: Pick<DeviceView, 'use' | 'lastHolders'>): string {
  const [last, ...others] = lastHolders;
  return last === undefined ? use : `${use}; last: ${last}${others.length === 0 ? '' : ` +${others.length}`}`;
}

/** `namespace/pod`, or the UID. */
export const userName = ({ namespace, pod, uid }: UserView): string => (pod === undefined ? `pod ${uid}` : `${namespace}/${pod}`);

/** The first user, and how many others; undefined without one. */
export function usersText({ users: [first, ...others] = [] }: Pick<DeviceView, 'users'>): string | undefined {
  return first && `used by ${userName(first)}${others.length === 0 ? '' : ` +${others.length}`}`;
}

/** A reading of a device, ready to be shown. */
export interface DisplayReading {
  /** `Busy`, `Memory`, `In`, … */
  readonly label: string;
  /** `87 %`, `48.1 of 79.6 GiB`, `23 Gbit/s`. */
  readonly text: string;
  /** Absent where there is no number yet: a rate needs two reads. */
  readonly value?: number;
  /** Share of the limit or the total, 0 to 1; absent when no limit is known. */
  readonly ratio?: number;
  /** The value that is a ratio of 1. */
  readonly limit?: number;
}

export const stateOf = ({ health, missingSince }: Pick<DeviceView, 'health' | 'missingSince'>): DisplayState =>
  missingSince === undefined ? health.state : 'missing';

/** Time at which it took the state that people see. */
export const sinceOf = ({ health, missingSince }: Pick<DeviceView, 'health' | 'missingSince'>): string | undefined =>
  missingSince ?? health.since;

/** Conditions that count, worst first, and then those that do not count yet. */
export const conditionsOf = ({ health }: Pick<DeviceView, 'health'>): readonly ConditionView[] => [
  ...health.conditions,
  ...(health.pending ?? []),
];

/** Whether all its faults are those of its whole. A condition for information is no fault, and a part can have own ones. */
export function hasOnlyFaultsOfWhole(device: Pick<DeviceView, 'health'>): boolean {
  const faults = conditionsOf(device).filter(({ severity }) => severity !== 'info');
  return faults.length > 0 && faults.every(({ ofWhole }) => ofWhole !== undefined);
}

/** The leading condition. A condition for information never leads. */
export const leadOf = (device: Pick<DeviceView, 'health'>): ConditionView | undefined =>
  conditionsOf(device).find(({ severity }) => severity !== 'info');

/** The remedy of the leading condition. It is the only one that is shown, because the remedy of another condition can contradict it. */
export function remedyOf(device: Pick<DeviceView, 'health'>): Remedy | undefined {
  const asked = conditionsOf(device).filter(({ remedy }) => remedy !== 'none');
  return (asked.find(({ severity }) => severity !== 'info') ?? asked[0])?.remedy;
}

/** Whether a condition waits that will change its state. */
export const isPending = ({ health }: Pick<DeviceView, 'health'>): boolean => pendingTrouble(health).length > 0;

/**
 * What its row shows: the state, that a condition waits (`pending`), or that its faults ended and nobody needs to act (`recovering`). A
 * recovering device still has its verdict.
 */
export type Appearance = DisplayState | 'pending' | 'recovering';

export function appearanceOf(device: Pick<DeviceView, 'health' | 'missingSince'>): Appearance {
  const state = stateOf(device);
  if (isPending(device)) return state === 'healthy' ? 'pending' : state;
  if (state !== 'unhealthy' && state !== 'degraded') return state;
  const counting = device.health.conditions.filter(({ severity }) => severity !== 'info');
  const isOver = counting.every(({ recovering, unverifiedSince }) => recovering !== undefined && unverifiedSince === undefined);
  return counting.length > 0 && isOver ? 'recovering' : state;
}

/**
 * Time at which it took the appearance: a condition began to wait, or the last fault ended. Otherwise that of its state, or of the condition
 * that leads, which the device can have before it counts.
 */
export function appearedAt(device: Pick<DeviceView, 'health' | 'missingSince'>): string | undefined {
  const { health } = device;
  const appearance = appearanceOf(device);
  if (appearance === 'pending')
    return pendingTrouble(health)
      .map(({ since }) => since)
      .toSorted()[0];
  if (appearance === 'recovering')
    return health.conditions
      .flatMap(({ recovering }) => (recovering === undefined ? [] : [recovering.since]))
      .toSorted()
      .at(-1);
  const since = sinceOf(device);
  const lead = appearance === 'unhealthy' || appearance === 'degraded' ? leadOf(device)?.since : undefined;
  return since !== undefined && lead !== undefined && lead < since ? lead : since;
}

/** Its model, or what else is known of its maker. */
export const modelText = ({
  product,
  model,
  vendor,
  driver,
}: Pick<DeviceView, 'product' | 'model' | 'vendor' | 'driver'>): string | undefined =>
  product ?? model ?? (vendor === undefined ? undefined : [vendor, driver].filter((one) => one !== undefined).join(' '));

export const parentKey = ({ family, parent }: Pick<Device, 'family' | 'parent'>): string | undefined =>
  parent === undefined ? undefined : deviceKey({ family, id: parent });

export function healthView(verdict: Verdict): HealthView {
  const { state, sinceMs, conditions, pending, ignored, unchecked, transitions } = verdict;
  return defined({
    state,
    since: sinceMs > 0 ? timeText(sinceMs) : undefined,
    conditions: conditions.map(conditionView),
    pending: pending?.map(conditionView),
    ignored: ignored?.map(ignoredView),
    unchecked,
    transitions,
  });
}

function conditionView(one: ActiveCondition & Partial<Pick<PendingCondition, 'countsAtMs'>>): ConditionView {
  const { type, instance, severity, reason, message, causedBy, sinceMs, unverifiedSinceMs, countsAtMs, recovering } = one;
  return defined({
    type,
    instance,
    severity,
    reason,
    message,
    remedy: remedyNow(one),
    causedBy,
    since: timeText(sinceMs),
    unverifiedSince: timeText(unverifiedSinceMs),
    countsAt: timeText(countsAtMs),
    recovering: recovering && { since: timeText(recovering.sinceMs), until: timeText(recovering.untilMs) },
  });
}

const ignoredView = (condition: IgnoredCondition): NonNullable<HealthView['ignored']>[number] => ({
  ...conditionView(condition),
  ignoreReason: condition.ignoreReason,
  ignoredUntil: timeText(condition.ignoredUntilMs),
});
