import { formatDuration, hours, type Millis, parseDuration } from '../../model/duration.ts';
import type { Value } from '../../model/metric.ts';
import { addValues } from '../../model/metric.ts';
import { accountKey, type ContainerEntry, type DeviceEntry, type LedgerEntry } from './entry.ts';
import { type Amounts, Timeline } from './timeline.ts';

/** Use of devices by one group. Seconds count for each device: two devices for one hour give 7,200 s. An unknown amount is absent. */
export interface UsageRow {
  /** The namespace, `namespace/pod`, key of the device, resource or value of the label. Empty: the pod has no such label. */
  readonly name: string;
  /** Number of containers. */
  readonly containers: number;
  readonly allocatedSeconds: number;
  /** The part of the group, when several containers hold a device. The sum over all groups is the time in which devices were held. */
  readonly shareSeconds: number;
  readonly idleSeconds: number;
  /** Idle part of the time in which the use was observed. Absent when that is less than a twentieth of the allocated time. */
  readonly idleRatio?: number;
  /** The part of the group in the idle time of shared devices. */
  readonly idleShareSeconds: number;
  readonly unobservedSeconds: number;
  readonly busySeconds: Readonly<Record<string, number>>;
  /** The part of the allocated time in which others used the devices by delegation. */
  readonly delegatedSeconds?: number;
  readonly energyJoules?: number;
  readonly energyEstimatedJoules?: number;
  /** Price of the shares of all devices that have a price, and of their idle part. Absent where none has one. */
  readonly cost?: number;
  readonly idleCost?: number;
  readonly memoryByteSeconds?: number;
  /** Exact: a `bigint` where a number would round. */
  readonly receivedBytes?: Value;
  readonly transmittedBytes?: Value;
  /** Only in a report by device, and in the total: time in which no container held the device and no pod used it. */
  readonly unallocatedSeconds?: number;
  readonly unhealthySeconds?: number;
}

export interface UsageReport {
  readonly sinceMs: number;
  readonly untilMs: number;
  readonly by: Grouping;
  /** Present when the report is about one family. */
  readonly family?: string;
  /** Most idle share first. */
  readonly rows: readonly UsageRow[];
  /** Without devices that consist of other devices, such as a GPU with instances. */
  readonly total: UsageRow;
  /** Number of rows, or of accounts, that exceed the limits of a report. */
  readonly leftOut: number;
}

/** What an hour of a device costs, by family or by model. The price of the model has priority. */
export type Prices = Readonly<Record<string, number>>;

/** The engines of a row with their busy seconds, the busiest first. */
export const enginesOf = ({ busySeconds }: Pick<UsageRow, 'busySeconds'>): readonly (readonly [engine: string, seconds: number])[] =>
  Object.entries(busySeconds).sort(([, a], [, b]) => b - a);

/** All energy of a row. One estimated part makes the sum an estimate. */
export function energyOf({
  energyJoules,
  energyEstimatedJoules,
}: Pick<UsageRow, 'energyJoules' | 'energyEstimatedJoules'>): { readonly joules: number; readonly isEstimate: boolean } | undefined {
  if (energyJoules === undefined && energyEstimatedJoules === undefined) return undefined;
  return { joules: (energyJoules ?? 0) + (energyEstimatedJoules ?? 0), isEstimate: energyEstimatedJoules !== undefined };
}

interface Account {
  readonly entry: LedgerEntry;
  readonly timeline: Timeline;
}

/** Limits of one report. The memory of the agent is bounded, and so is its answer. */
const MAX_ACCOUNTS = 200_000;
const MAX_ROWS = 10_000;
/** The time since the latest reading is not yet observed: the ratio over it alone would say 0. */
const LEAST_OBSERVED = 0.05;
export const HOUR_SECONDS = 3_600;

/** Takes entries one after the other, in any order, and keeps of each account only what the span needs. */
export class UsageReporter {
  readonly #sinceMs: number;
  readonly #untilMs: number;
  readonly #by: Grouping;
  readonly #family: string | undefined;
  readonly #prices: Prices;
  readonly #accounts = new Map<string, Account>();
  #leftOut = 0;

  constructor(span: Omit<UsageQuery, 'since'> & { readonly sinceMs: number; readonly untilMs: number; readonly prices?: Prices }) {
    this.#sinceMs = span.sinceMs;
    this.#untilMs = span.untilMs;
    this.#by = span.by;
    this.#family = span.family;
    this.#prices = span.prices ?? {};
  }

  add(entry: LedgerEntry): void {
    if (this.#family !== undefined && entry.family !== this.#family) return;
    if (entry.sinceMs >= this.#untilMs || (entry.endedAtMs ?? this.#untilMs) < this.#sinceMs) return;
    const key = accountKey(entry);
    const known = this.#accounts.get(key);
    if (known === undefined && this.#accounts.size >= MAX_ACCOUNTS) {
      this.#leftOut += 1;
      return;
    }
    const timeline = known?.timeline ?? new Timeline(entry.sinceMs, this.#sinceMs, this.#untilMs);
    timeline.add(entry.atMs, amountsOf(entry));
    this.#accounts.set(key, { entry: newest(known?.entry, entry), timeline });
  }

  report(): UsageReport {
    const accounts = withoutTwins([...this.#accounts.values()]);
    const wholes = new Set(accounts.flatMap(({ entry }) => entry.parent ?? []));
    const total = new Group('total');
    const groups = new Map<string, Group>();
    for (const { entry, timeline } of accounts) {
      const growth = timeline.growth();
      if (entry.kind === 'device' && !wholes.has(entry.device)) total.addDevice(growth);
      if (entry.kind === 'device' ? this.#by !== 'device' : (growth.get('allocatedSeconds') ?? 0) === 0) continue;
      const name = nameOf(entry, this.#by);
      const group = groups.get(name) ?? new Group(name);
      groups.set(name, group);
      if (entry.kind === 'device') group.addDevice(growth);
      else for (const one of [group, total]) one.addContainer(entry, growth, priceOf(entry, this.#prices));
    }
    const rows = [...groups.values()].map((group) => group.row()).sort(mostWasteFirst);
    return {
      sinceMs: this.#sinceMs,
      untilMs: this.#untilMs,
      by: this.#by,
      ...(this.#family !== undefined && { family: this.#family }),
      rows: rows.slice(0, MAX_ROWS),
      total: total.row(),
      leftOut: this.#leftOut + Math.max(0, rows.length - MAX_ROWS),
    };
  }
}

/**
 * During an update, two agents can both write an account of the same container or device, each with a begin of its own. When accounts cover the
 * same time, only the longest one counts.
 */
function withoutTwins(accounts: readonly Account[]): readonly Account[] {
  const kept = new Map<string, Account[]>();
  const lengthOf = ({ entry }: Account): number => endOf(entry) - entry.sinceMs;
  for (const account of accounts.toSorted((a, b) => lengthOf(b) - lengthOf(a))) {
    const key = accountKey({ ...account.entry, sinceMs: 0 });
    const others = kept.get(key) ?? [];
    const isTwin = others.some(({ entry }) => {
      const sharedMs = Math.min(endOf(entry), endOf(account.entry)) - Math.max(entry.sinceMs, account.entry.sinceMs);
      return sharedMs > lengthOf(account) / 2;
    });
    if (!isTwin) kept.set(key, [...others, account]);
  }
  return [...kept.values()].flat();
}

const endOf = ({ endedAtMs, atMs }: LedgerEntry): number => endedAtMs ?? atMs;

function priceOf({ model, family }: LedgerEntry, prices: Prices): number | undefined {
  if (model !== undefined && Object.hasOwn(prices, model)) return prices[model];
  return Object.hasOwn(prices, family) ? prices[family] : undefined;
}

const newest = (known: LedgerEntry | undefined, entry: LedgerEntry): LedgerEntry =>
  known === undefined || entry.atMs >= known.atMs ? entry : known;

function mostWasteFirst(a: UsageRow, b: UsageRow): number {
  return b.idleShareSeconds - a.idleShareSeconds || b.shareSeconds - a.shareSeconds || (a.name < b.name ? -1 : 1);
}

function nameOf(entry: LedgerEntry, by: Grouping): string {
  if (entry.kind === 'device' || by === 'device') return entry.device;
  if (by === 'namespace') return entry.namespace;
  // A user without a name has its UID.
  if (by === 'pod') return entry.namespace === '' ? entry.pod : `${entry.namespace}/${entry.pod}`;
  if (by === 'resource') return entry.resource;
  const name = by.slice('label:'.length);
  return entry.labels !== undefined && Object.hasOwn(entry.labels, name) ? (entry.labels[name] as string) : '';
}

const CONTAINER_AMOUNTS = [
  ...(['allocatedSeconds', 'shareSeconds', 'idleSeconds', 'unobservedSeconds'] as const),
  ...(['delegatedSeconds', 'energyJoules', 'energyEstimatedJoules', 'memoryByteSeconds', 'receivedBytes', 'transmittedBytes'] as const),
] satisfies readonly (keyof ContainerEntry)[];
const DEVICE_AMOUNTS = ['unallocatedSeconds', 'unhealthySeconds'] as const satisfies readonly (keyof DeviceEntry)[];
const BUSY = 'busySeconds.';

function amountsOf(entry: LedgerEntry): Amounts {
  const amounts = new Map<string, Value>();
  const put = (name: string, value: Value | undefined): void => {
    if (value !== undefined) amounts.set(name, value);
  };
  if (entry.kind === 'device') for (const name of DEVICE_AMOUNTS) put(name, entry[name]);
  else {
    for (const name of CONTAINER_AMOUNTS) put(name, entry[name]);
    for (const [engine, value] of Object.entries(entry.busySeconds)) put(BUSY + engine, value);
  }
  return amounts;
}

/** The sums of one row. */
class Group {
  readonly #name: string;
  readonly #sums = new Map<string, Value>();
  readonly #containers = new Set<string>();
  #idleShareSeconds = 0;
  /** Absent until a device has a price. */
  #cost: { readonly cost: number; readonly idleCost: number } | undefined;

  constructor(name: string) {
    this.#name = name;
  }

  addContainer(entry: ContainerEntry, growth: Amounts, price: number | undefined): void {
    this.#add(growth);
    this.#containers.add([entry.namespace, entry.pod, entry.container, entry.uid ?? ''].join('\u0000'));
    const of = (name: string): number => Number(growth.get(name) ?? 0);
    const allocated = of('allocatedSeconds') - of('delegatedSeconds');
    const idleShare = allocated === 0 ? 0 : (of('idleSeconds') * of('shareSeconds')) / allocated;
    this.#idleShareSeconds += idleShare;
    if (price === undefined) return;
    const { cost, idleCost } = this.#cost ?? { cost: 0, idleCost: 0 };
    this.#cost = { cost: cost + of('shareSeconds') * (price / HOUR_SECONDS), idleCost: idleCost + idleShare * (price / HOUR_SECONDS) };
  }

  addDevice(growth: Amounts): void {
    this.#add(growth);
  }

  row(): UsageRow {
    const sum = (name: string): number => Number(this.#sums.get(name) ?? 0);
    const observed = sum('allocatedSeconds') - sum('delegatedSeconds') - sum('unobservedSeconds');
    const optional = [...CONTAINER_AMOUNTS.slice(4), ...DEVICE_AMOUNTS].flatMap((name) => {
      const value = this.#sums.get(name);
      return value === undefined ? [] : [[name, value] as const];
    });
    const busy = [...this.#sums].filter(([name]) => name.startsWith(BUSY)).sort(([a], [b]) => (a < b ? -1 : 1));
    return {
      name: this.#name,
      containers: this.#containers.size,
      allocatedSeconds: sum('allocatedSeconds'),
      shareSeconds: sum('shareSeconds'),
      idleSeconds: sum('idleSeconds'),
      // Time without observation is neither idle nor busy.
      ...(observed > sum('allocatedSeconds') * LEAST_OBSERVED ? { idleRatio: Math.min(1, sum('idleSeconds') / observed) } : {}),
      idleShareSeconds: this.#idleShareSeconds,
      unobservedSeconds: sum('unobservedSeconds'),
      busySeconds: Object.fromEntries(busy.map(([name, value]) => [name.slice(BUSY.length), Number(value)])),
      ...Object.fromEntries(optional),
      ...this.#cost,
    };
  }

  #add(growth: Amounts): void {
    for (const [name, amount] of growth) this.#sums.set(name, addValues(this.#sums.get(name) ?? 0, amount));
  }
}

export const GROUPINGS = ['namespace', 'pod', 'device', 'resource'] as const;

/** The key by which a report groups accounts. `label:NAME` is a label of the pod. */
export type Grouping = (typeof GROUPINGS)[number] | `label:${string}`;

export interface UsageQuery {
  /** Length of the time that the report covers, up to now. */
  readonly since: Millis;
  readonly by: Grouping;
  /** Only devices of this family: hours of GPUs and of adapters are not alike. Absent: all. */
  readonly family?: string;
}

export type ParsedQuery =
  | { readonly query: UsageQuery; readonly problem?: undefined }
  | { readonly query?: undefined; readonly problem: string };

export const DEFAULT_SINCE = hours(24);
const LONGEST = hours(24 * 3_650);
const FAMILY = /^[a-z][a-z0-9-]{0,63}$/;

/** Checks the texts of a query. A problem is a sentence without a subject: "since must be …". */
export function parseQuery({ since, by, family }: Readonly<Partial<Record<'since' | 'by' | 'family', unknown>>>): ParsedQuery {
  const duration = since === undefined ? DEFAULT_SINCE : typeof since === 'string' ? parseDuration(since) : undefined;
  if (duration === undefined || duration <= 0 || duration > LONGEST) {
    return { problem: `since must be a time such as 24h or 7d, and ${formatDuration(LONGEST)} at most` };
  }
  const grouping = by ?? 'namespace';
  if (!isGrouping(grouping)) return { problem: `by must be one of ${GROUPINGS.join(', ')} or label:NAME` };
  if (family !== undefined && !(typeof family === 'string' && FAMILY.test(family)))
    return { problem: 'family must be the name of a family' };
  return { query: { since: duration, by: grouping, ...(family !== undefined && { family }) } };
}

const isGrouping = (value: unknown): value is Grouping =>
  typeof value === 'string' && ((GROUPINGS as readonly string[]).includes(value) || /^label:[\w./-]{1,317}$/.test(value));
