import { defined } from '../model/defined.ts';
import type { Device } from '../model/device.ts';
import type { TrafficSum } from '../model/device-activity.ts';
import { addValues, type Reading, type Value } from '../model/metric.ts';
import { memoizedBy } from '../model/readings.ts';
import { shared } from '../model/shared-metrics.ts';
import type { ContainerUsage, DeviceUsage, OwnCounter } from '../model/usage.ts';
import type { Work } from './device-work.ts';
import type { Holder, HolderIds } from './holders.ts';
import { OwnCounters } from './own-counters.ts';

type Changing<T> = { -readonly [K in keyof T]: T[K] };

export interface Moment {
  readonly nowMs: number;
  readonly monotonicMs: number;
}

/**
 * Account of one container on one device. It is changed in place at each snapshot. Times whose name ends in `AtMs` are monotonic. The
 * allocated time is always the sum of delegated, idle, unobserved, pending and busy time, where each engine alone is busy for at most the busy time.
 */
export interface ContainerAccount {
  /** Namespace, pod and container as one text. */
  readonly name: string;
  /** Its use so far, without its counters and their sums. */
  readonly usage: Changing<Omit<ContainerUsage, 'busySeconds' | 'isNew'>> & { readonly busySeconds: Record<string, number> };
  readonly counters: OwnCounters;
  ids: HolderIds;
  /** Of the device. */
  identity: Identity;
  /** Time since the start, and since the end, on the monotonic clock and over restarts of the agent. */
  ageMs: number;
  endedForMs?: number | undefined;
  /** Monotonic clock of the first answer of the kubelet that lacked it; absent while the latest answer has it. */
  absentFromMs?: number | undefined;
  /** Reads that began earlier show what others did. */
  countedFromAtMs: number;
  /** End of the last read that was taken. */
  lookedAtMs: number;
  /** Time up to which reads told what the device did. A source that is read at its own interval tells it later. */
  observedAtMs: number;
  /** End of the last time that counts as allocated. */
  seenAtMs: number;
  /** Allocated time that no read has classified yet. */
  pendingMs: number;
  /** Its shares of the energy that the next read of the energy counter tells, one share of 1 for each read of the device. */
  energyShares?: number;
  /** Saved by an earlier run of the agent, and not yet seen by this one. */
  isAwaited: boolean;
}

export function openAccount(
  { name, namespace, pod, container, resource, uid, ids }: Holder,
  device: string,
  now: Moment,
): ContainerAccount {
  return {
    name,
    usage: {
      ...{ namespace, pod, container, resource, ...defined({ uid }), device, sinceMs: now.nowMs },
      ...{ allocatedSeconds: 0, shareSeconds: 0, busySeconds: {}, idleSeconds: 0, unobservedSeconds: 0 },
    },
    counters: new OwnCounters(now.monotonicMs),
    ...{ ids, identity: {}, ageMs: 0, pendingMs: 0, isAwaited: false },
    ...seenAt(now.monotonicMs),
  };
}

/** Whatever happened before this moment says nothing of what the container does from now on. */
export const seenAt = (atMs: number) => ({ countedFromAtMs: atMs, lookedAtMs: atMs, observedAtMs: atMs, seenAtMs: atMs });

/** Adds time up to now, in which the container held its share of the device. */
export function charge(account: ContainerAccount, ms: number, share: number, monotonicMs: number): void {
  account.usage.allocatedSeconds += ms / 1_000;
  account.usage.shareSeconds += (ms * share) / 1_000;
  account.pendingMs += ms;
  account.seenAtMs = monotonicMs;
}

/** Adds time up to now, in which the container held the device for its users. Reads of this time are theirs. */
export function delegate(account: ContainerAccount, ms: number, monotonicMs: number): void {
  const { usage } = account;
  giveUpWaiting(account);
  usage.allocatedSeconds += ms / 1_000;
  usage.delegatedSeconds = (usage.delegatedSeconds ?? 0) + ms / 1_000;
  Object.assign(account, seenAt(monotonicMs));
}

/** One read, as it concerns one container. */
export interface AccountRead {
  /** Monotonic clock of its end. */
  readonly lookMs: number;
  readonly work: Work;
  readonly now: Moment;
  readonly memoryBytes: number | undefined;
  /** A longer time since the last read is not observed. */
  readonly longestMs: number;
}

/** Classifies the time before a read by what the read tells of it. Returns the time in milliseconds. */
export function observe(account: ContainerAccount, { lookMs, work, now, memoryBytes, longestMs }: AccountRead): number {
  const isLong = lookMs - account.lookedAtMs > longestMs;
  const toMs = isLong ? lookMs : Math.min(lookMs, work.untilMs);
  account.lookedAtMs = lookMs;
  // What came after the last read of the source stays pending until its next one.
  if (toMs <= account.observedAtMs) return 0;
  const spanMs = Math.max(0, account.pendingMs - Math.max(0, account.seenAtMs - toMs));
  account.pendingMs -= spanMs;
  account.observedAtMs = toMs;
  const { usage } = account;
  const seconds = spanMs / 1_000;
  if (work.isIdle === false) usage.lastActiveMs = now.nowMs - (now.monotonicMs - toMs);
  if (isLong || work.isIdle === 'unknown') usage.unobservedSeconds += seconds;
  else if (work.isIdle) usage.idleSeconds += seconds;
  if (isLong) return spanMs;
  if (memoryBytes !== undefined) usage.memoryByteSeconds = (usage.memoryByteSeconds ?? 0) + memoryBytes * seconds;
  for (const [engine, share] of Object.entries(work.engines)) {
    // An engine that never worked has 0, so that the growth of its counter is seen from the start.
    usage.busySeconds[engine] = (usage.busySeconds[engine] ?? 0) + (work.isIdle === false ? share * seconds : 0);
  }
  return spanMs;
}

/** Gives up the time for which no read came. */
export function giveUpWaiting(account: ContainerAccount): void {
  account.usage.unobservedSeconds += account.pendingMs / 1_000;
  account.pendingMs = 0;
}

/** The account as all outputs see it. The totals of a new one are shown as 0 for a time. */
export function usageOf({ usage, counters: own, ageMs }: ContainerAccount, zeroForMs: number): ContainerUsage {
  const counters = own.readings();
  const told: ContainerUsage = { ...usage, busySeconds: { ...usage.busySeconds }, ...(ageMs < zeroForMs && { isNew: true }) };
  return counters.length === 0 ? told : Object.assign(told, sumsOf(counters));
}

const sumsOf = memoizedBy((counters: readonly OwnCounter[]) => {
  const energy = sumOf(counters, shared.energy.name);
  const receivedBytes = sumOf(counters, shared.receivedBytes.name);
  const transmittedBytes = sumOf(counters, shared.transmittedBytes.name);
  return { ...defined({ energyJoules: energy === undefined ? undefined : Number(energy), receivedBytes, transmittedBytes }), counters };
});

/** Exact sum of all series of a metric. Undefined when there is none. */
function sumOf(counters: readonly Reading[], metric: string): Value | undefined {
  let sum: Value | undefined;
  for (const { metric: name, value } of counters) if (name === metric) sum = sum === undefined ? value : addValues(sum, value);
  return sum;
}

/** What is known of one device since the start of the agent. It is changed in place at each snapshot. */
export interface DeviceAccount {
  readonly usage: Changing<DeviceUsage>;
  identity: Identity;
  /** Pod and UID of the holder whose account ended last: the kubelet's checkpoint names it until the next pod gets the device. */
  former?: { readonly uid: string; readonly pod: string };
  /** The last verdict was unhealthy. */
  isUnhealthy: boolean;
  /** Monotonic clock at which the last read began. */
  readFromMs?: number;
  trafficSum?: TrafficSum | undefined;
  /** Energy counter at its last read, with the monotonic clock. */
  energy?: { readonly joules: number; readonly atMs: number };
  /** Reads of the device since that read, or since the last read of its power where no counter was seen. */
  energyLooks: number;
  /** Power at its last read; undefined where that read had none, and where the driver counts energy. */
  power?: { readonly watts: number; readonly atMs: number } | undefined;
}

export const openDeviceAccount = (key: string): DeviceAccount => ({
  usage: { device: key, allocatedSeconds: 0, unallocatedSeconds: 0, unhealthySeconds: 0, unobservedSeconds: 0 },
  ...{ identity: {}, isUnhealthy: false, energyLooks: 0 },
});

/** What distinguishes hardware from other hardware of the same name. */
export type Identity = Pick<Device, 'identity' | 'pciAddress' | 'uuid'>;

/** What is not read now stays as it was. */
export const identityAfter = (before: Identity, { identity, pciAddress, uuid }: Identity): Identity => ({
  ...before,
  ...defined({ identity: identity ?? undefined, pciAddress, uuid }),
});
