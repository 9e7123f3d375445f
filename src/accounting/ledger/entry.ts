import { schemaCheck, shape, TEXT, TIME } from '../../host/fs/saved-schema.ts';
import { type PodFacts, podName } from '../../model/pod-resources.ts';
import type { Snapshot } from '../../model/snapshot.ts';
import type { ContainerUsage, DeviceUsage } from '../../model/usage.ts';
import { CONTAINER_USAGE, DEVICE_USAGE, restoredUsage } from '../usage-schema.ts';

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
    ...usage.containers.map((account): ContainerEntry => {
      // The ledger has the sums of counters, not each of them.
      const { counters: _, ...sums } = account;
      const known = labels(account);
      const atMs = account.endedAtMs ?? takenAtMs;
      return { kind: 'container', atMs, ...factsOf(account.device), ...sums, ...(known === undefined ? {} : { labels: known }) };
    }),
    ...usage.devices.map(
      (account): DeviceEntry => ({ kind: 'device', atMs: account.endedAtMs ?? takenAtMs, ...factsOf(account.device), ...account }),
    ),
  ];
}

/**
 * What identifies the account of an entry. The UID and the present name of the device are no part of it: they can change, and would make a
 * second account.
 */
export const accountKey = (entry: LedgerEntry): string => (entry.kind === 'device' ? deviceAccountKey(entry) : containerKey(entry));

export const deviceAccountKey = ({ beganAs, device, sinceMs }: DeviceUsage): string => `${beganAs ?? device}\u0000${sinceMs}`;

export const containerKey = (account: ContainerUsage): string =>
  [account.namespace, account.pod, account.container, account.resource, account.beganAs ?? account.device, account.sinceMs].join('\u0000');

/** Plain JSON. An integer that JSON would round becomes its digits; other numbers keep three of their decimals, so that lines are short. */
export const toRecord = (entry: LedgerEntry): object => JSON.parse(JSON.stringify(entry, short)) as object;

function short(_key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString();
  return typeof value === 'number' ? Math.round(value * 1_000) / 1_000 : value;
}

const FACTS = shape({ atMs: TIME, family: TEXT }, { model: TEXT, parent: TEXT });
const CONTAINER = { allOf: [FACTS, CONTAINER_USAGE] };
const DEVICE = { allOf: [FACTS, DEVICE_USAGE] };

/** The entry of a record of the ledger; undefined for a record that is none. */
export type EntryOf = (line: Readonly<Record<string, unknown>>) => LedgerEntry | undefined;

/** Resolves when records can be checked. */
export async function entryReader(): Promise<EntryOf> {
  const [container, device] = [await schemaCheck(CONTAINER), await schemaCheck(DEVICE)];
  return (line) => {
    if (line.kind === 'device') return device(line) === undefined ? (line as unknown as DeviceEntry) : undefined;
    if (line.kind !== 'container' || container(line) !== undefined) return undefined;
    return restoredUsage(line as unknown as ContainerEntry) as ContainerEntry;
  };
}

type Labels = Readonly<Record<string, string>>;

/**
 * Labels of the pods of all accounts. The kubelet forgets a pod before its last entry is written, so this keeps them as long as a snapshot
 * has the account.
 */
export class PodLabels {
  #byAccount: ReadonlyMap<string, Labels> = new Map();

  /** Must be called with each snapshot. */
  update({ usage, pods }: Pick<Snapshot, 'usage' | 'pods'>): void {
    if (this.#byAccount.size === 0 && pods === undefined) return;
    const labels = new Map<string, Labels>();
    for (const account of usage?.containers ?? []) {
      const key = containerKey(account);
      const one = currentLabels(account, pods?.get(podName(account))) ?? this.#byAccount.get(key);
      if (one !== undefined) labels.set(key, one);
    }
    this.#byAccount = labels;
  }

  of(account: ContainerUsage): Labels | undefined {
    return this.#byAccount.get(containerKey(account)) ?? account.labels;
  }
}

/** A successor of the same name has another UID. An ended account has the labels of its own pod already. */
function currentLabels(account: ContainerUsage, pod: PodFacts | undefined): Labels | undefined {
  if (account.endedAtMs !== undefined) return undefined;
  return account.uid === undefined || account.uid === pod?.uid ? pod?.labels : undefined;
}
