import { defined } from '../../model/defined.ts';
import type { Value } from '../../model/metric.ts';
import type { Snapshot } from '../../model/snapshot.ts';
import type { ContainerUsage, DeviceUsage } from '../../model/usage.ts';

/** Facts of the device that a line repeats, because the device can be gone when the line is read. */
interface DeviceFacts {
  readonly family: string;
  readonly model?: string;
  /** Key of the device that contains it. */
  readonly parent?: string;
}

/**
 * One line of the ledger: an account as it was at one time. All amounts are totals since the begin of the account, so that a line that is
 * there twice, or missing, changes no difference between two other lines.
 */
export type LedgerEntry =
  | (ContainerUsage & DeviceFacts & { readonly kind: 'container' /** Wall clock. */; readonly atMs: number })
  | (DeviceUsage & DeviceFacts & { readonly kind: 'device'; readonly atMs: number });

export type ContainerEntry = Extract<LedgerEntry, { kind: 'container' }>;
export type DeviceEntry = Extract<LedgerEntry, { kind: 'device' }>;

/** Labels of the pod of an account. */
export type LabelsOf = (account: ContainerUsage) => Readonly<Record<string, string>> | undefined;

const withLabels = (account: ContainerUsage, labels: ReturnType<LabelsOf>): ContainerUsage =>
  labels === undefined ? account : { ...account, labels };

/** The ledger has the sums of counters, not each of them. */
function summed({ counters: _, ...account }: ContainerUsage): ContainerUsage {
  return account;
}

/** Entries of all accounts of a snapshot. The last entry of an ended account has the time of its end. */
export function entriesOf(snapshot: Snapshot, labels: LabelsOf = () => undefined): readonly LedgerEntry[] {
  const { usage, takenAtMs } = snapshot;
  if (usage === undefined) return [];
  const facts = new Map(
    snapshot.devices.map(({ key, device: { family, model, parent } }): [string, DeviceFacts] => [
      key,
      { family, ...(model === undefined ? {} : { model }), ...(parent === undefined ? {} : { parent: `${family}/${parent}` }) },
    ]),
  );
  const factsOf = (key: string): DeviceFacts => facts.get(key) ?? { family: key.split('/', 1)[0] as string };
  return [
    ...usage.containers.map(
      (account): ContainerEntry => ({
        kind: 'container',
        atMs: account.endedAtMs ?? takenAtMs,
        ...factsOf(account.device),
        ...withLabels(summed(account), labels(account)),
      }),
    ),
    ...usage.devices.map(
      (account): DeviceEntry => ({ kind: 'device', atMs: account.endedAtMs ?? takenAtMs, ...factsOf(account.device), ...account }),
    ),
  ];
}

/**
 * What identifies the account of an entry. The UID and the present name of the device are no part of it: they can change, and would make a
 * second account.
 */
export const accountKey = (entry: LedgerEntry): string =>
  entry.kind === 'device' ? `${entry.beganAs ?? entry.device}\u0000${entry.sinceMs}` : containerKey(entry);

export const containerKey = (account: ContainerUsage): string =>
  [account.namespace, account.pod, account.container, account.resource, account.beganAs ?? account.device, account.sinceMs].join('\u0000');

/** Plain JSON. An integer that JSON would round becomes its digits; other numbers keep three of their decimals, so that lines are short. */
export const toRecord = (entry: LedgerEntry): object => JSON.parse(JSON.stringify(entry, short)) as object;

function short(_key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString();
  return typeof value === 'number' ? Math.round(value * 1_000) / 1_000 : value;
}

const CONTAINER_TEXTS = ['namespace', 'pod', 'container', 'resource', 'device', 'family'];
const CONTAINER_NUMBERS = ['atMs', 'sinceMs', 'allocatedSeconds', 'shareSeconds', 'idleSeconds', 'unobservedSeconds'];
const CONTAINER_OPTIONAL = [
  'endedAtMs',
  'energyJoules',
  'energyEstimatedJoules',
  'memoryByteSeconds',
  'lastActiveMs',
  'restarts',
  'restartedMs',
];
const DEVICE_TEXTS = ['device', 'family'];
const DEVICE_NUMBERS = ['atMs', 'sinceMs', 'allocatedSeconds', 'unallocatedSeconds', 'unhealthySeconds', 'unobservedSeconds'];

/** The entry of a record of the ledger; undefined for a record that is none. */
export function entryOf(record: Readonly<Record<string, unknown>>): LedgerEntry | undefined {
  const isText = (name: string): boolean => typeof record[name] === 'string';
  const isAmount = (name: string): boolean => Number.isFinite(record[name]) && (record[name] as number) >= 0;
  if (!['model', 'parent', 'uid', 'beganAs'].every((name) => record[name] === undefined || isText(name))) return undefined;
  if (record.kind === 'device') {
    const hasEnd = record.endedAtMs === undefined || isAmount('endedAtMs');
    return hasEnd && DEVICE_TEXTS.every(isText) && DEVICE_NUMBERS.every(isAmount) ? (record as unknown as DeviceEntry) : undefined;
  }
  if (record.kind !== 'container' || !CONTAINER_TEXTS.every(isText) || !CONTAINER_NUMBERS.every(isAmount)) return undefined;
  if (!CONTAINER_OPTIONAL.every((name) => record[name] === undefined || isAmount(name))) return undefined;
  if (!isMapOf(record.busySeconds, Number.isFinite) || !isMapOf(record.labels ?? {}, (value) => typeof value === 'string'))
    return undefined;
  const { receivedBytes: received, transmittedBytes: transmitted, ...rest } = record;
  return {
    ...(rest as unknown as ContainerEntry),
    ...defined({ receivedBytes: bytesOf(received), transmittedBytes: bytesOf(transmitted) }),
  };
}

const isMapOf = (value: unknown, isValue: (value: unknown) => boolean): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && Object.values(value).every(isValue);

function bytesOf(value: unknown): Value | undefined {
  if (typeof value === 'string' && /^\d{1,40}$/.test(value)) return BigInt(value);
  return Number.isFinite(value) && (value as number) >= 0 ? (value as number) : undefined;
}
