import { defined } from '../model/defined.ts';
import { addValues, areSameLabels, type Reading, type Value } from '../model/metric.ts';
import { keptBy } from '../model/readings.ts';
import { shared } from '../model/shared-metrics.ts';
import type { ContainerUsage, DeviceUsage, OwnCounter } from '../model/usage.ts';
import type { Work } from './device-work.ts';
import type { HeldIds, Holder } from './holders.ts';
import { OwnCounters } from './own-counters.ts';

/** An amount that an account changes in place, and that outputs have a copy of. */
export type Changing<T> = { -readonly [K in keyof T]: T[K] };

/**
 * Account of one container on one device. It is changed in place at each snapshot. Times whose name ends in `AtMs` are monotonic. The
 * allocated time is always the sum of delegated, idle, unobserved, pending and busy time, where each engine alone is busy for at most the busy time.
 */
export interface ContainerAccount {
  /** Namespace, pod and container as one text. */
  readonly name: string;
  /** Its use so far, without the values of its counters. */
  usage: Changing<Omit<ContainerUsage, 'busySeconds'>> & { readonly busySeconds: Record<string, number> };
  ids: HeldIds;
  /** Monotonic clock of the first answer of the kubelet that lacked it; undefined while the latest answer has it. */
  absentFromMs: number | undefined;
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
  /** Time since the start, on the monotonic clock and over restarts of the agent. */
  ageMs: number;
  readonly counters: OwnCounters;
  /** Saved by an earlier run of the agent, and not yet seen by this one. */
  isAwaited: boolean;
  /** Id of the container whose processes used the device last; absent while it is not known. */
  run?: string;
}

export function openAccount(holder: Holder, device: string, { nowMs, monotonicMs }: Moment): ContainerAccount {
  const { name, namespace, pod, container, resource, uid, ids } = holder;
  return {
    name,
    usage: {
      ...{ namespace, pod, container, resource, ...(uid === undefined ? {} : { uid }), device, sinceMs: nowMs },
      ...{ allocatedSeconds: 0, shareSeconds: 0, busySeconds: {}, idleSeconds: 0, unobservedSeconds: 0, isNew: true },
    },
    ...{ ids, absentFromMs: undefined, pendingMs: 0, ageMs: 0, counters: new OwnCounters(monotonicMs), isAwaited: false },
    ...{ countedFromAtMs: monotonicMs, lookedAtMs: monotonicMs, observedAtMs: monotonicMs, seenAtMs: monotonicMs },
  };
}

/** A container that restarts within its pod keeps the device and its account, and gets another id. */
export function seeRun(account: ContainerAccount, run: string | undefined, nowMs: number): void {
  if (run === undefined || run === account.run) return;
  if (account.run !== undefined) {
    account.usage.restarts = (account.usage.restarts ?? 0) + 1;
    account.usage.restartedMs = nowMs;
  }
  account.run = run;
}

export interface Moment {
  readonly nowMs: number;
  readonly monotonicMs: number;
}

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
  Object.assign(account, { seenAtMs: monotonicMs, countedFromAtMs: monotonicMs, lookedAtMs: monotonicMs, observedAtMs: monotonicMs });
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
  if (isLong) {
    usage.unobservedSeconds += seconds;
    return spanMs;
  }
  if (memoryBytes !== undefined) usage.memoryByteSeconds = (usage.memoryByteSeconds ?? 0) + memoryBytes * seconds;
  for (const [engine, share] of Object.entries(work.engines)) {
    // An engine that never worked has 0, so that the growth of its counter is seen from the start.
    usage.busySeconds[engine] = (usage.busySeconds[engine] ?? 0) + (work.isIdle === false ? share * seconds : 0);
  }
  if (work.isIdle === true) usage.idleSeconds += seconds;
  else if (work.isIdle === 'unknown') usage.unobservedSeconds += seconds;
  return spanMs;
}

/** Gives up the time for which no read came. */
export function giveUpWaiting(account: ContainerAccount): void {
  account.usage.unobservedSeconds += account.pendingMs / 1_000;
  account.pendingMs = 0;
}

/** The totals of a new account are shown as 0 for a time, and then never again. */
export function stepAge(account: ContainerAccount, ms: number, zeroForMs: number): void {
  account.ageMs += ms;
  if (account.usage.isNew !== true || account.ageMs < zeroForMs) return;
  const { isNew: _, ...usage } = account.usage;
  account.usage = usage;
}

/** The device of an account has another name. */
export function renameDevice(usage: Changing<Pick<ContainerUsage, 'device' | 'beganAs'>>, device: string): void {
  const beganAs = usage.beganAs ?? usage.device;
  usage.device = device;
  if (beganAs === device) delete usage.beganAs;
  else usage.beganAs = beganAs;
}

/** The account as all outputs see it, and as the disk has it. */
export function usageOf({ usage, counters: own }: ContainerAccount): ContainerUsage {
  const counters = own.readings();
  const told = { ...usage, busySeconds: { ...usage.busySeconds } };
  return counters.length === 0 ? told : Object.assign(told, sumsOf(counters));
}

const sumsOf = keptBy((counters: readonly OwnCounter[]) => {
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

/** Most accounts that are kept after their end. */
export const MOST_ENDED = 2_000;

/** An account that ended a short time ago. */
export interface EndedAccount<T extends ContainerUsage | DeviceUsage = ContainerUsage> {
  readonly usage: T;
  /** Time since the start and since the end, on the monotonic clock and over restarts of the agent. */
  readonly ageMs: number;
  readonly endedForMs: number;
}

export interface EndedTimes {
  readonly zeroForMs: number;
  readonly lingerMs: number;
}

/** The accounts after more time. One leaves when its final values could be seen for `lingerMs`; the oldest leave first beyond the limit. */
export function stepEnded<T extends ContainerUsage | DeviceUsage>(
  ended: readonly EndedAccount<T>[],
  ms: number,
  { zeroForMs, lingerMs }: EndedTimes,
): readonly EndedAccount<T>[] {
  if (ended.length === 0) return ended;
  return ended.slice(-MOST_ENDED).flatMap(({ usage, ...times }) => {
    const [ageMs, endedForMs] = [times.ageMs + ms, times.endedForMs + ms];
    if (endedForMs >= lingerMs && ageMs >= zeroForMs + lingerMs) return [];
    return [{ usage: ageMs >= zeroForMs ? shown(usage) : usage, ageMs, endedForMs }];
  });
}

/** The account with these counters of faults. The same one when it has them. */
export function withFaults(account: EndedAccount, faults: readonly Reading[]): EndedAccount {
  const { counters = [] } = account.usage;
  const isOther = ({ metric, labels = {} }: Reading): boolean =>
    faults.every((fault) => fault.metric !== metric || !areSameLabels(fault.labels, labels));
  const isKnown = (fault: Reading): boolean =>
    counters.some(({ metric, labels, value }) => metric === fault.metric && value === fault.value && areSameLabels(labels, fault.labels));
  if (faults.every(isKnown)) return account;
  return { ...account, usage: { ...account.usage, counters: [...counters.filter(isOther), ...faults] } };
}

function shown<T extends ContainerUsage | DeviceUsage>(usage: T): T {
  if (!('isNew' in usage)) return usage;
  const { isNew: _, ...rest } = usage;
  return rest as T;
}
