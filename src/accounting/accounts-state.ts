import { defined } from '../model/defined.ts';
import type { Labels, Reading, Value } from '../model/metric.ts';
import { restoredValue, type SavedValue, savedValue } from '../model/metric.ts';
import type { ContainerUsage, DeviceUsage } from '../model/usage.ts';
import type { ContainerAccount } from './container-account.ts';
import type { DeviceAccount } from './device-account.ts';
import type { EndedAccount } from './ended-accounts.ts';
import { containerKey } from './ledger/entry.ts';
import { OwnCounters, type SavedCounter } from './own-counters.ts';

type Mutable<T> = { -readonly [K in keyof T]: T[K] };
type ByName<T> = Readonly<Record<string, T>>;

/** All accounts as plain data for JSON. The names of the entries only distinguish them. In a file of version 2 they are lists. */
export interface AccountsState {
  readonly devices: ByName<SavedDevice>;
  readonly active: ByName<SavedContainer>;
  readonly ended: ByName<SavedEnded>;
  /** Absent in a file of an earlier version, as `beganAs` in all accounts. */
  readonly endedDevices?: ByName<EndedAccount<DeviceUsage>>;
}

type SavedDevice = Pick<
  DeviceAccount,
  'key' | 'identity' | 'startedAtMs' | 'former' | 'allocatedMs' | 'unallocatedMs' | 'unhealthyMs' | 'unobservedMs'
> & { readonly beganAs?: string };

type Kept =
  | 'name'
  | 'namespace'
  | 'pod'
  | 'container'
  | 'resource'
  | 'ids'
  | 'device'
  | 'startedAtMs'
  | 'allocatedMs'
  | 'shareMs'
  | 'busyMs';
type KeptToo =
  | 'idleMs'
  | 'energyEstimatedJoules'
  | 'memoryByteSeconds'
  | 'lastActiveMs'
  | 'ageMs'
  | 'isShown'
  | 'run'
  | 'restarts'
  | 'restartedMs';

interface SavedContainer extends Pick<ContainerAccount, Kept | KeptToo> {
  readonly uid?: string;
  readonly beganAs?: string;
  /** With the time that was pending. */
  readonly unobservedMs: number;
  /** Time from the last allocated moment to the save. */
  readonly seenAgoMs: number;
  readonly counters: readonly SavedCounter[];
}

/** Metric, value and labels. Each container on a device has many, so their names are left out. */
type SavedReading = readonly [metric: string, value: SavedValue, labels?: Labels];
type SavedUsage = Omit<ContainerUsage, 'receivedBytes' | 'transmittedBytes' | 'counters'> & {
  readonly receivedBytes?: SavedValue;
  readonly transmittedBytes?: SavedValue;
  readonly counters?: readonly SavedReading[];
};

interface SavedEnded extends Omit<EndedAccount, 'usage'> {
  readonly usage: SavedUsage;
}

/** Accounts of devices by their keys, and of containers that have not ended by device and container. */
export interface AllAccounts {
  readonly devices: Map<string, DeviceAccount>;
  readonly active: Map<string, ContainerAccount>;
  readonly ended: readonly EndedAccount[];
  readonly endedDevices: readonly EndedAccount<DeviceUsage>[];
}

export function savedAccounts({ devices, active, ended, endedDevices }: AllAccounts, steppedMs: number): AccountsState {
  return {
    devices: named(devices, savedDevice),
    active: named(active, (account) => savedContainer(account, steppedMs)),
    ended: Object.fromEntries(
      ended.map(({ usage, ...times }) => [
        `${containerKey(usage)} ${usage.uid} ${usage.endedAtMs}`,
        { usage: savedUsage(usage), ...times },
      ]),
    ),
    endedDevices: Object.fromEntries(
      endedDevices.map((one) => [`${one.usage.beganAs ?? one.usage.device} ${one.usage.sinceMs} ${one.usage.endedAtMs}`, one]),
    ),
  };
}

function named<T, S>(accounts: Iterable<readonly [string, T]>, saved: (account: T) => S): ByName<S> {
  const result: Record<string, S> = {};
  for (const [name, account] of accounts) result[name] = saved(account);
  return result;
}

function savedDevice(account: DeviceAccount): SavedDevice {
  const { key, beganAs, identity, facts, startedAtMs, former, allocatedMs, unallocatedMs, unhealthyMs, unobservedMs } = account;
  const saved = { key, beganAs, identity, facts, startedAtMs, allocatedMs, unallocatedMs, unhealthyMs, unobservedMs };
  return former === undefined ? saved : { ...saved, former };
}

/** Each name is spelled out: to copy the rest of an object takes several times as long, and nothing else runs meanwhile. */
function savedContainer(account: ContainerAccount, steppedMs: number): SavedContainer {
  const { name, namespace, pod, container, resource, uid, ids, device, beganAs, startedAtMs, allocatedMs, shareMs, busyMs } = account;
  const {
    idleMs,
    unobservedMs,
    pendingMs,
    energyEstimatedJoules,
    memoryByteSeconds,
    lastActiveMs,
    ageMs,
    isShown,
    run,
    restarts,
    restartedMs,
  } = account;
  const common = {
    name,
    namespace,
    pod,
    container,
    resource,
    ids,
    device,
    beganAs,
    startedAtMs,
    allocatedMs,
    shareMs,
    idleMs,
    ageMs,
    isShown,
  };
  const saved: Mutable<SavedContainer> = Object.assign(common, {
    busyMs: { ...busyMs },
    unobservedMs: unobservedMs + pendingMs,
    seenAgoMs: Math.max(0, steppedMs - account.seenAtMs),
    counters: account.counters.saved,
  });
  if (uid !== undefined) saved.uid = uid;
  if (energyEstimatedJoules !== undefined) saved.energyEstimatedJoules = energyEstimatedJoules;
  if (memoryByteSeconds !== undefined) saved.memoryByteSeconds = memoryByteSeconds;
  if (lastActiveMs !== undefined) saved.lastActiveMs = lastActiveMs;
  if (run !== undefined) saved.run = run;
  if (restarts !== undefined) saved.restarts = restarts;
  if (restartedMs !== undefined) saved.restartedMs = restartedMs;
  return saved;
}

function savedUsage({ receivedBytes, transmittedBytes, counters, ...usage }: ContainerUsage): SavedUsage {
  return {
    ...usage,
    ...savedBytes({ receivedBytes, transmittedBytes }),
    ...(counters === undefined ? {} : { counters: counters.map(savedReading) }),
  };
}

interface Bytes<T> {
  readonly receivedBytes?: T;
  readonly transmittedBytes?: T;
}

function savedBytes({ receivedBytes: received, transmittedBytes: sent }: Bytes<Value | undefined>): Bytes<SavedValue> {
  return defined({
    receivedBytes: received === undefined ? undefined : savedValue(received),
    transmittedBytes: sent === undefined ? undefined : savedValue(sent),
  });
}

function restoredBytes({ receivedBytes, transmittedBytes }: Bytes<SavedValue>): Bytes<Value> {
  return defined({ receivedBytes: restoredValue(receivedBytes), transmittedBytes: restoredValue(transmittedBytes) });
}

const savedReading = ({ metric, value, labels }: Reading): SavedReading =>
  labels === undefined ? [metric, savedValue(value)] : [metric, savedValue(value), labels];

function restoredReadings(saved: readonly SavedReading[]): readonly Reading[] {
  return saved.flatMap(([metric, total, labels]) => {
    const value = restoredValue(total);
    if (value === undefined) return [];
    return [labels === undefined ? { metric, value } : { metric, value, labels }];
  });
}

/** The accounts of an earlier run, whose last step was at `steppedMs` on the monotonic clock of this run. */
export function restoredAccounts(state: AccountsState | undefined, steppedMs: number, isSameBoot: boolean): AllAccounts {
  const { devices = {}, active = {}, ended = {}, endedDevices = {} } = state ?? {};
  return {
    devices: new Map(Object.values(devices).map((saved) => [saved.key, restoredDevice(saved)])),
    active: new Map(
      Object.values(active).map((saved) => [`${saved.device} ${saved.name}`, restoredContainer(saved, steppedMs, isSameBoot)]),
    ),
    ended: Object.values(ended).map(({ usage, ...times }) => {
      const { receivedBytes, transmittedBytes, counters, ...kept } = usage;
      const values = { ...restoredBytes(usage), ...(counters === undefined ? {} : { counters: restoredReadings(counters) }) };
      return { usage: { ...kept, ...values }, ...times };
    }),
    endedDevices: Object.values(endedDevices),
  };
}

function restoredDevice(saved: SavedDevice): DeviceAccount {
  return {
    beganAs: saved.key,
    facts: {},
    ...saved,
    isUnhealthy: false,
    awaitedMs: 0,
    readFromMs: undefined,
    trafficSum: undefined,
    joules: undefined,
    joulesAtMs: undefined,
    energyLooks: 0,
  };
}

function restoredContainer(saved: SavedContainer, steppedMs: number, isSameBoot: boolean): ContainerAccount {
  const { uid, seenAgoMs, counters, ...kept } = saved;
  const seenAtMs = steppedMs - seenAgoMs;
  return {
    beganAs: kept.device,
    ...kept,
    uid,
    absentFromMs: undefined,
    busyMs: { ...kept.busyMs },
    ...{ countedFromAtMs: steppedMs, lookedAtMs: steppedMs, observedAtMs: steppedMs, seenAtMs, pendingMs: 0, isAwaited: true },
    counters: OwnCounters.restored(counters, isSameBoot),
  };
}
