import { setAside } from '../host/fs/kept-file.ts';
import { schemaProblem } from '../host/fs/saved-schema.ts';
import { type SavedFormat, type SavedIgnored, type SavedRead, type SavedSections, SavedStateFile } from '../host/fs/saved-state.ts';
import type { ContainerUsage, DeviceUsage } from '../model/usage.ts';
import { type ContainerAccount, type EndedAccount, giveUpWaiting, usageOf } from './container-account.ts';
import { type DeviceAccount, NOT_READ } from './device-account.ts';
import { containerKey, deviceAccountKey } from './ledger/entry.ts';
import { OwnCounters } from './own-counters.ts';
import { restoredUsage, USAGE_SCHEMA } from './usage-schema.ts';

/** The accounts on the disk, with both clocks of their last step. */
export interface SavedUsage {
  /** Wall clock. */
  readonly savedAtMs: number;
  /** CLOCK_MONOTONIC, which begins at the boot of the machine. */
  readonly sinceBootMs: number;
  readonly accounts: AccountsState;
  /** What the waiting detector knows about each container. A file of an earlier agent does not have it. */
  readonly waiting?: Readonly<Record<string, object>>;
}

export type UsageRead =
  | { readonly saved: SavedUsage; readonly bootId: string; readonly ignored?: undefined }
  | { readonly saved?: undefined; readonly ignored: SavedIgnored; readonly message: string; readonly kept?: string | undefined };

const FORMAT: SavedFormat = { format: 'device-agent-usage', version: 5, name: 'usage state' };
const MAX_BYTES = 64 * 1024 * 1024;

export interface UsageFile {
  readonly path: string;
  /** A file that cannot be used is renamed, so that no write destroys it. */
  read(): Promise<UsageRead>;
  /** Writes what changed. `isLast`: the file gets the complete state. On failure the file has the old state, and the error message is returned. */
  write(saved: SavedUsage, isLast?: boolean): Promise<string | undefined>;
}

/** File of the accounts. After a kill at any moment it has the previous or the next state, never a part. */
export function createUsageFile(path: string, bootId: string, maxBytes = MAX_BYTES): UsageFile {
  const file = new SavedStateFile(path, FORMAT, bootId, maxBytes);
  return {
    path,
    async read() {
      const result = await checked(await file.read());
      return result.ignored === undefined || result.ignored === 'absent' ? result : { ...result, kept: await setAside(path) };
    },
    write: ({ accounts, waiting = {}, ...times }, isLast) => file.write({ times, waiting, ...accounts }, undefined, isLast),
  };
}

async function checked(read: SavedRead): Promise<UsageRead> {
  if (read.ignored !== undefined) return read;
  const saved = savedIn(read.body);
  const problem = await schemaProblem(USAGE_SCHEMA, saved);
  if (problem !== undefined) return { ignored: 'damaged', message: `contains no usage state: ${problem}` };
  return { saved: saved as SavedUsage, bootId: read.bootId };
}

function savedIn({ times, waiting, ...accounts }: SavedSections): unknown {
  return { ...times, ...(waiting && { waiting }), accounts };
}

/** Accounts by names that only distinguish them. */
type ByName<T> = Readonly<Record<string, T>>;

/** All accounts as plain data: the usage as outputs see it, and what a later run needs to go on. In JSON, a `bigint` is its digits. */
export interface AccountsState {
  readonly devices: ByName<SavedDevice>;
  readonly active: ByName<SavedContainer>;
  readonly ended: ByName<EndedAccount>;
  readonly endedDevices: ByName<EndedAccount<DeviceUsage>>;
}

export interface SavedDevice extends Pick<DeviceAccount, 'identity' | 'facts' | 'former'> {
  readonly usage: DeviceUsage;
}

export interface SavedContainer extends Pick<ContainerAccount, 'name' | 'ids' | 'ageMs' | 'pendingMs' | 'run'> {
  readonly usage: ContainerUsage;
  /** Time from the last allocated moment to the save. */
  readonly seenAgoMs: number;
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
    devices: Object.fromEntries([...devices].map(([key, account]) => [key, savedDevice(account)])),
    active: Object.fromEntries([...active].map(([key, account]) => [key, savedContainer(account, steppedMs)])),
    ended: Object.fromEntries(ended.map((one) => [`${containerKey(one.usage)} ${one.usage.uid} ${one.usage.endedAtMs}`, one])),
    endedDevices: Object.fromEntries(endedDevices.map((one) => [`${deviceAccountKey(one.usage)} ${one.usage.endedAtMs}`, one])),
  };
}

const savedDevice = ({ usage, identity, facts, former }: DeviceAccount): SavedDevice => ({
  usage: { ...usage },
  identity,
  facts,
  ...(former === undefined ? {} : { former }),
});

function savedContainer(account: ContainerAccount, steppedMs: number): SavedContainer {
  const { name, ids, ageMs, pendingMs, seenAtMs, run } = account;
  // These are sums of the counters.
  const { energyJoules: _, receivedBytes: __, transmittedBytes: ___, ...usage } = usageOf(account);
  return {
    ...(run === undefined ? {} : { run }),
    name,
    usage,
    ids,
    ageMs,
    pendingMs,
    seenAgoMs: Math.max(0, steppedMs - seenAtMs),
  };
}

/** The accounts of an earlier run, whose last step was at `steppedMs` on the monotonic clock of this run. */
export function restoredAccounts(state: AccountsState | undefined, steppedMs: number, isSameBoot: boolean): AllAccounts {
  const { devices = {}, active = {}, ended = {}, endedDevices = {} } = state ?? {};
  return {
    devices: new Map(
      Object.values(devices).map((saved) => [saved.usage.device, { ...saved, usage: { ...saved.usage }, ...NOT_READ, awaitedMs: 0 }]),
    ),
    active: new Map(
      Object.values(active).map((saved) => [`${saved.usage.device} ${saved.name}`, restoredContainer(saved, steppedMs, isSameBoot)]),
    ),
    ended: Object.values(ended).map((one) => ({ ...one, usage: restoredUsage(one.usage) })),
    endedDevices: Object.values(endedDevices),
  };
}

function restoredContainer({ seenAgoMs, ...saved }: SavedContainer, steppedMs: number, isSameBoot: boolean): ContainerAccount {
  const { counters = [], energyJoules: _, receivedBytes: __, transmittedBytes: ___, ...usage } = restoredUsage(saved.usage);
  const account = {
    ...saved,
    usage: { ...usage, busySeconds: { ...usage.busySeconds } },
    absentFromMs: undefined,
    ...{ countedFromAtMs: steppedMs, lookedAtMs: steppedMs, observedAtMs: steppedMs, seenAtMs: steppedMs - seenAgoMs, isAwaited: true },
    counters: OwnCounters.restored(counters, isSameBoot),
  };
  giveUpWaiting(account);
  return account;
}
