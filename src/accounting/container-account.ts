import type { Reading, Value } from '../model/metric.ts';
import { addValues } from '../model/metric.ts';
import { shared } from '../model/shared-metrics.ts';
import type { ContainerUsage } from '../model/usage.ts';
import type { Work } from './device-work.ts';
import type { HeldIds, Holder } from './holders.ts';
import { OwnCounters } from './own-counters.ts';

/**
 * Account of one container on one device. It is changed in place at each snapshot. Times whose name ends in `AtMs` are monotonic, except
 * `startedAtMs`, `endedAtMs` and `lastActiveMs`. The allocated time is always the sum of idle, unobserved, pending and busy time, where
 * each engine alone is busy for at most the busy time.
 */
export interface ContainerAccount {
  /** Namespace, pod and container as one text. */
  readonly name: string;
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  readonly resource: string;
  /** Key of the device. It changes when the hardware gets another name. */
  device: string;
  /** Key of the device at the begin of the account. */
  readonly beganAs: string;
  uid: string | undefined;
  ids: HeldIds;
  /** Monotonic clock of the first answer of the kubelet that lacked it; undefined while the latest answer has it. */
  absentFromMs: number | undefined;
  /** Wall clock. */
  readonly startedAtMs: number;
  /** Reads that began earlier show what others did. */
  countedFromAtMs: number;
  /** End of the last read that was taken. */
  lookedAtMs: number;
  /** Time up to which reads told what the device did. A source that is read at its own interval tells it later. */
  observedAtMs: number;
  /** End of the last time that counts as allocated. */
  seenAtMs: number;
  allocatedMs: number;
  shareMs: number;
  readonly busyMs: Record<string, number>;
  idleMs: number;
  unobservedMs: number;
  /** Allocated time that no read has classified yet. */
  pendingMs: number;
  energyEstimatedJoules?: number;
  /** Its shares of the energy that the next read of the energy counter tells, one share of 1 for each read of the device. */
  energyShares?: number;
  memoryByteSeconds?: number;
  lastActiveMs?: number;
  /** Time since the start, on the monotonic clock and over restarts of the agent. */
  ageMs: number;
  /** The age passed the time for which new totals are exported as 0. It never becomes false again. */
  isShown: boolean;
  readonly counters: OwnCounters;
  /** Saved by an earlier run of the agent, and not yet seen by this one. */
  isAwaited: boolean;
  /** Id of the container whose processes used the device last; absent while it is not known. */
  run?: string;
  restarts?: number;
  /** Wall clock. */
  restartedMs?: number;
}

export function openAccount(holder: Holder, device: string, { nowMs, monotonicMs }: Moment): ContainerAccount {
  const { name, namespace, pod, container, resource, uid, ids } = holder;
  return {
    ...{ name, namespace, pod, container, resource, uid, ids, device, beganAs: device, absentFromMs: undefined },
    startedAtMs: nowMs,
    ...{ countedFromAtMs: monotonicMs, lookedAtMs: monotonicMs, observedAtMs: monotonicMs, seenAtMs: monotonicMs },
    ...{ allocatedMs: 0, shareMs: 0, busyMs: {}, idleMs: 0, unobservedMs: 0, pendingMs: 0 },
    ...{ ageMs: 0, isShown: false, counters: new OwnCounters(monotonicMs), isAwaited: false },
  };
}

/** A container that restarts within its pod keeps the device and its account, and gets another id. */
export function seeRun(account: ContainerAccount, run: string | undefined, nowMs: number): void {
  if (run === undefined || run === account.run) return;
  if (account.run !== undefined) {
    account.restarts = (account.restarts ?? 0) + 1;
    account.restartedMs = nowMs;
  }
  account.run = run;
}

export interface Moment {
  readonly nowMs: number;
  readonly monotonicMs: number;
}

/** Adds time up to now, in which the container held its share of the device. */
export function charge(account: ContainerAccount, ms: number, share: number, monotonicMs: number): void {
  account.allocatedMs += ms;
  account.shareMs += ms * share;
  account.pendingMs += ms;
  account.seenAtMs = monotonicMs;
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
  if (work.isIdle === false) account.lastActiveMs = now.nowMs - (now.monotonicMs - toMs);
  if (isLong) {
    account.unobservedMs += spanMs;
    return spanMs;
  }
  if (memoryBytes !== undefined) account.memoryByteSeconds = (account.memoryByteSeconds ?? 0) + (memoryBytes * spanMs) / 1_000;
  for (const [engine, share] of Object.entries(work.engines)) {
    // An engine that never worked has 0, so that the growth of its counter is seen from the start.
    account.busyMs[engine] = (account.busyMs[engine] ?? 0) + (work.isIdle === false ? share * spanMs : 0);
  }
  if (work.isIdle === true) account.idleMs += spanMs;
  else if (work.isIdle === 'unknown') account.unobservedMs += spanMs;
  return spanMs;
}

/** Gives up the time for which no read came. */
export function giveUpWaiting(account: ContainerAccount): void {
  account.unobservedMs += account.pendingMs;
  account.pendingMs = 0;
}

/** The account as all outputs see it. */
export function usageOf(account: ContainerAccount): ContainerUsage {
  const { namespace, pod, container, resource, device, uid, startedAtMs, allocatedMs, shareMs, busyMs, idleMs, unobservedMs } = account;
  const { beganAs, energyEstimatedJoules, memoryByteSeconds, lastActiveMs, isShown, restarts, restartedMs } = account;
  const counters = account.counters.readings();
  const busySeconds: Record<string, number> = {};
  for (const engine in busyMs) busySeconds[engine] = (busyMs[engine] as number) / 1_000;
  const usage: { -readonly [K in keyof ContainerUsage]: ContainerUsage[K] } = {
    namespace,
    pod,
    container,
    resource,
    device,
    sinceMs: startedAtMs,
    allocatedSeconds: allocatedMs / 1_000,
    shareSeconds: shareMs / 1_000,
    busySeconds,
    idleSeconds: idleMs / 1_000,
    unobservedSeconds: unobservedMs / 1_000,
  };
  if (uid !== undefined) usage.uid = uid;
  if (beganAs !== device) usage.beganAs = beganAs;
  const energy = sumOf(counters, shared.energy.name);
  if (energy !== undefined) usage.energyJoules = Number(energy);
  if (energyEstimatedJoules !== undefined) usage.energyEstimatedJoules = energyEstimatedJoules;
  if (memoryByteSeconds !== undefined) usage.memoryByteSeconds = memoryByteSeconds;
  const receivedBytes = sumOf(counters, shared.receivedBytes.name);
  if (receivedBytes !== undefined) usage.receivedBytes = receivedBytes;
  const transmittedBytes = sumOf(counters, shared.transmittedBytes.name);
  if (transmittedBytes !== undefined) usage.transmittedBytes = transmittedBytes;
  if (lastActiveMs !== undefined) usage.lastActiveMs = lastActiveMs;
  if (restarts !== undefined) usage.restarts = restarts;
  if (restartedMs !== undefined) usage.restartedMs = restartedMs;
  if (!isShown) usage.isNew = true;
  if (counters.length > 0) usage.counters = counters;
  return usage;
}

/** Exact sum of all series of a metric. Undefined when there is none. */
function sumOf(counters: readonly Reading[], metric: string): Value | undefined {
  let sum: Value | undefined;
  for (const { metric: name, value } of counters) if (name === metric) sum = sum === undefined ? value : addValues(sum, value);
  return sum;
}
