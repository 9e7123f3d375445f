import type { HostFacts } from '../model/agent-stats.ts';
import { conditionName } from '../model/condition-text.ts';
import { defined } from '../model/defined.ts';
import type { Device } from '../model/device.ts';
import { minutes, seconds } from '../model/duration.ts';
import type { Transition } from '../model/events.ts';
import { hardwareKey } from '../model/hardware.ts';
import { faultSince, type HealthState, type Remedy, type Severity } from '../model/health.ts';
import type { Labels, MetricType } from '../model/metric.ts';

/**
 * What was going on when a device failed. It is stored, sent and printed in this form: plain data without control characters, times in
 * RFC 3339, unknown values left out.
 */
export interface IncidentRecord {
  readonly id: string;
  /** When the verdict changed. */
  readonly time: string;
  readonly node: string;
  /** Address of the record's page for people; absent when the agent had none. */
  readonly url?: string;
  readonly agentVersion: string;
  readonly host: HostFacts;
  /** All facts of the device. `key` is `family/id`. */
  readonly device: Device & { readonly key: string };
  readonly missingSince?: string;
  /** When the readings were taken. */
  readonly readAt?: string;
  readonly before: IncidentVerdict;
  readonly after: IncidentVerdict & { readonly pending?: readonly IncidentCondition[] };
  /** The change of the verdict, and those that followed at once. */
  readonly changes: readonly IncidentChange[];
  /** Number of changes that followed at once and are not in the list. */
  readonly furtherChanges?: number;
  /** Later changes of this device that have no record, because it had too many within one hour. */
  readonly suppressed?: { readonly count: number; readonly last: string };
  /** The kubelet did not answer, so that others may hold the device, too. */
  readonly holdersUnknown?: true;
  /** Containers that hold the device, and those that held it a short time before. */
  readonly holders: readonly IncidentHolder[];
  readonly processes: readonly IncidentProcess[];
  /** When the processes were read; absent when there are none. */
  readonly processesReadAt?: string;
  /** Last values that a reset of the device or a reboot can wipe. */
  readonly state: readonly StateValue[];
  readonly readings: IncidentReadings;
  readonly kernel: KernelPart;
  /** Events of the device before the incident, oldest first. */
  readonly events: readonly IncidentEvent[];
  /** Other devices of the node that changed their verdict at about the same time. */
  readonly others: readonly OtherChange[];
}

export interface IncidentVerdict {
  readonly state: HealthState;
  readonly since?: string;
  /** Absent when the agent did not see the device before. */
  readonly conditions?: readonly IncidentCondition[];
}

export interface IncidentCondition {
  readonly type: string;
  readonly instance?: string;
  readonly severity: Severity;
  readonly reason: string;
  readonly message: string;
  readonly remedy: Remedy;
  /** Id of the device whose fault is the source of this one. */
  readonly causedBy?: string;
  readonly since?: string;
}

export interface IncidentChange {
  readonly time: string;
  readonly from?: HealthState;
  readonly to?: HealthState;
  readonly condition?: string;
  readonly instance?: string;
  readonly reason: string;
  readonly message: string;
  readonly remedy: Remedy;
}

export interface IncidentHolder {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  readonly resource: string;
  readonly deviceId: string;
  /** UID of the pod; absent while it is unknown. */
  readonly uid?: string;
  /** When this run of the agent first saw it with the device. */
  readonly since: string;
  /** When the agent no longer saw it with the device; absent while it holds the device. */
  readonly until?: string;
}

export interface IncidentProcess {
  readonly pid: number;
  readonly name?: string;
  readonly isStuck?: true;
  readonly memoryUsedBytes?: number;
  readonly podUid?: string;
  readonly containerId?: string;
}

export interface StateValue {
  readonly metric: string;
  readonly labels: Labels;
  /** An integer that a JSON parser would round is a string of digits. */
  readonly value: number | string;
  /** When the value was read. */
  readonly time: string;
}

/** Columns: each list of values is as long as `times`. null: the read had no value. */
export interface IncidentReadings {
  readonly times: readonly string[];
  readonly series: readonly {
    readonly metric: string;
    readonly labels: Labels;
    readonly type: MetricType;
    readonly values: readonly (number | null)[];
  }[];
}

export interface KernelPart {
  /** The last lines that name the device, oldest first. */
  readonly lines: readonly KernelLine[];
  /** The last lines that the kernel of the boot before wrote about it when it crashed, with the time since that boot, oldest first. */
  readonly crash?: readonly string[];
  /** Number of earlier lines that name the device and are not in the list. */
  readonly earlier?: number;
  /** Why there are no lines, or why some can be missing. */
  readonly problem?: string;
}

export interface KernelLine {
  /** Absent when the boot time of the machine is unknown. */
  readonly time?: string;
  readonly text: string;
}

export interface IncidentEvent extends IncidentChange {
  readonly transition: Transition;
}

export interface OtherChange {
  readonly device: string;
  readonly time: string;
  readonly from?: HealthState;
  readonly to: HealthState;
  readonly condition?: string;
}

/** The line of one incident in a list. */
export interface IncidentSummary {
  readonly id: string;
  readonly time: string;
  /** When its fault began; absent when the verdict changed at once. */
  readonly began?: string;
  /** Key of the device, `family/id`. */
  readonly device: string;
  /** Key of the hardware, which stays the same under another name. Absent in a record of an older version. */
  readonly hardware?: string;
  /** States in their order, the state before the incident first. */
  readonly states: readonly HealthState[];
  readonly conditions: readonly string[];
  /** `namespace/pod/container` of those that the incident hit. */
  readonly holders: readonly string[];
  readonly holdersUnknown?: true;
}

/** Without readings, the last read before a fault is not known; by default a device is read every ten seconds. */
const BETWEEN_READS_MS = seconds(30);
/** A device that could not be read for longer may have failed long before. */
const LONGEST_UNREAD_MS = minutes(2);

/**
 * The holders that an incident hit: those that hold the device, or let go of it after the last read that did not show the fault. A container
 * that loses its device ends, often before the verdict. Who let go before that read held the device before, and ended for another reason.
 */
export function holdersHit({ time, after, changes, readings, holders }: IncidentRecord): readonly IncidentHolder[] {
  const led = new Set(
    changes.flatMap(({ condition: type, instance }) => (type === undefined ? [] : [conditionName({ type, ...defined({ instance }) })])),
  );
  const begins = (after.conditions ?? []).flatMap((one) => (one.since !== undefined && led.has(conditionName(one)) ? [one.since] : []));
  const shownMs = Math.min(...[time, ...begins].map((one) => Date.parse(one)));
  const soundMs = readings.times.map((one) => Date.parse(one)).findLast((readMs) => readMs < shownMs) ?? shownMs - BETWEEN_READS_MS;
  const fromMs = Math.max(soundMs, shownMs - LONGEST_UNREAD_MS);
  return holders.filter(({ until }) => until === undefined || Date.parse(until) >= fromMs);
}

/** When the fault of an incident began: before its verdict changed, if its condition counts only after a time. */
export function beganAt({ time, before, after: { conditions = [] } }: Pick<IncidentRecord, 'time' | 'before' | 'after'>): string {
  const lead = conditions.find(({ severity }) => severity !== 'info');
  // After a restart of the agent, and where the state got worse by an old condition, the begin is that of an earlier incident.
  const isOld = before.state === 'unknown' || before.conditions?.some((one) => lead && conditionName(one) === conditionName(lead)) === true;
  const since = isOld ? undefined : faultSince(conditions);
  return since !== undefined && since < time ? since : time;
}

const MOST_NAMES = 8;

export function summaryOf(record: IncidentRecord): IncidentSummary {
  const { id, time, device, before, changes, after, holdersUnknown } = record;
  const began = beganAt(record);
  const named = holdersHit(record).map(({ namespace, pod, container }) => `${namespace}/${pod}/${container}`);
  const states = changes.flatMap(({ to }) => (to === undefined ? [] : [to]));
  const led = changes.flatMap(({ to, condition: type, instance }) =>
    type === undefined || to === 'healthy' ? [] : [conditionName({ type, ...defined({ instance }) })],
  );
  return {
    id,
    time,
    device: device.key,
    hardware: hardwareKey(device),
    states: [before.state, ...states],
    conditions: [...new Set([...(after.conditions ?? []).map(conditionName), ...led])].slice(0, MOST_NAMES),
    holders: [...new Set(named)].slice(0, MOST_NAMES),
    ...defined({ holdersUnknown, began: began === time ? undefined : began }),
  };
}

const LONGEST_NAME = 12;
const FORM = /^\d{8}-\d{6}-[\w.-]{1,64}$/;

/** `20261123-203015-<family>-GPU-5e1f0000`: sorts by time (UTC), and names the device. Only letters, digits, `.`, `_` and `-`. */
export function incidentId(
  timeMs: number,
  device: { readonly family: string; readonly id: string },
  isTaken: (id: string) => boolean,
): string {
  const [day = '', time = ''] = new Date(timeMs).toISOString().split('T');
  const name = [device.family, device.id].map((part) => part.replace(/[^\w.-]/g, '-').slice(0, LONGEST_NAME)).join('-');
  const id = `${day.replaceAll('-', '')}-${time.slice(0, 8).replaceAll(':', '')}-${name}`.replace(/[.-]+$/, '');
  let unique = id;
  for (let count = 1; isTaken(unique); count += 1) unique = `${id}-${count}`;
  return unique;
}

export const isIncidentId = (text: string): boolean => FORM.test(text);

/** A line of the list. `newerVersion`: a later agent wrote the file, and this one cannot read it. */
export type ListedIncident = IncidentSummary & { readonly newerVersion?: number };

/** Checks what every reader of a record relies on. A file on the node can be changed by hand. */
export function isRecord(value: unknown, id: string): value is IncidentRecord {
  const one = (value ?? {}) as Partial<IncidentRecord>;
  const lists = [
    one.changes,
    one.holders,
    one.processes,
    one.state,
    one.events,
    one.others,
    one.kernel?.lines,
    one.kernel?.crash ?? [],
    one.readings?.times,
  ];
  return (
    one.id === id &&
    typeof one.time === 'string' &&
    typeof one.device?.key === 'string' &&
    typeof one.before?.state === 'string' &&
    typeof one.after?.state === 'string' &&
    lists.every(Array.isArray) &&
    (one.readings?.series ?? []).every(({ values, metric }) => Array.isArray(values) && typeof metric === 'string')
  );
}
