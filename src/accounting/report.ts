import type { LineLog, LineLogRead } from '../host/fs/line-log.ts';
import { addValues, subtractValues, type Value } from '../model/metric.ts';
import { accountKey, DAY_MS, entryReader, type LedgerEntry } from './ledger.ts';
import type { Grouping, UsageQuery } from './query.ts';
import { type UnobservedReason, unobservedReason } from './unobserved.ts';

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
  /** The same by its likeliest reason; absent where all was observed. */
  readonly unobservedBecause?: Readonly<Partial<Record<UnobservedReason, number>>>;
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
}

export interface UsageReport {
  readonly sinceMs: number;
  readonly untilMs: number;
  readonly by: Grouping;
  /** Present when the report is about one family. */
  readonly family?: string;
  /** Of `cost` and `idleCost`, where the configuration names it. */
  readonly currency?: string;
  /** Most idle share first. */
  readonly rows: readonly UsageRow[];
  readonly total: UsageRow;
  /** Number of rows, or of accounts, that exceed the limits of a report. */
  readonly leftOut: number;
}

/** What an hour of a device costs, by family or by model. The price of the model has priority. */
export type Prices = Readonly<Record<string, number>>;
interface Priced {
  readonly prices?: Prices;
  readonly currency?: string;
}

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

/** The lines of one account that its growth needs: those around the begin of the span, and the last one. */
interface Account {
  readonly before?: LedgerEntry | undefined;
  readonly after?: LedgerEntry | undefined;
  readonly last: LedgerEntry;
}

/** Limits of one report. The memory of the agent is bounded, and so is its answer. */
const MAX_ACCOUNTS = 200_000;
const MAX_ROWS = 10_000;
/** The time since the latest reading is not yet observed: the ratio over it alone would say 0. */
const LEAST_OBSERVED = 0.05;
export const HOUR_SECONDS = 3_600;

type Span = Omit<UsageQuery, 'since'> & { readonly sinceMs: number; readonly untilMs: number } & Priced;

/** Takes entries one after the other, in any order, and keeps of each account only what the span needs. */
export class UsageReporter {
  readonly #span: Span;
  readonly #prices: ReadonlyMap<string, number>;
  readonly #accounts = new Map<string, Account>();
  #leftOut = 0;

  constructor(span: Span) {
    this.#span = span;
    this.#prices = new Map(Object.entries(span.prices ?? {}));
  }

  add(entry: LedgerEntry): void {
    const { sinceMs, untilMs, family } = this.#span;
    if (family !== undefined && familyOf(entry) !== family) return;
    if (entry.sinceMs >= untilMs || (entry.endedAtMs ?? untilMs) < sinceMs) return;
    const key = accountKey(entry);
    const known = this.#accounts.get(key);
    if (known === undefined && this.#accounts.size >= MAX_ACCOUNTS) {
      this.#leftOut += 1;
      return;
    }
    const [last, before, after] = [known?.last ?? entry, known?.before ?? entry, known?.after ?? entry];
    const isBefore = entry.atMs <= sinceMs;
    this.#accounts.set(key, {
      last: entry.atMs >= last.atMs ? entry : last,
      before: !isBefore ? known?.before : entry.atMs >= before.atMs ? entry : before,
      after: isBefore ? known?.after : entry.atMs <= after.atMs ? entry : after,
    });
  }

  report(): UsageReport {
    const { sinceMs, untilMs, by, family, currency = '' } = this.#span;
    const accounts = withoutTwins([...this.#accounts.values()]);
    const total = new Group('total');
    const groups = new Map<string, Group>();
    for (const account of accounts) {
      const { last } = account;
      const growth = growthOf(account, sinceMs);
      if (Number(growth.get('allocatedSeconds') ?? 0) === 0) continue;
      const name = nameOf(last, by);
      const group = groups.get(name) ?? new Group(name);
      groups.set(name, group);
      for (const one of [group, total]) one.add(last, growth, this.#prices.get(last.model ?? '') ?? this.#prices.get(familyOf(last)));
    }
    const rows = [...groups.values()].map((group) => group.row()).sort(mostWasteFirst);
    return {
      ...{ sinceMs, untilMs, by, ...(family !== undefined && { family }), ...(currency !== '' && { currency }) },
      ...{ rows: rows.slice(0, MAX_ROWS), total: total.row() },
      leftOut: this.#leftOut + Math.max(0, rows.length - MAX_ROWS),
    };
  }
}

/** Each running account has a line in each hour, and each segment ends after a day: so the line before the span is read too. */
const BEFORE_MS = DAY_MS + 7_200_000;

export interface LedgerReport extends UsageReport {
  /** Wall clock of the snapshot with the accounts that go on; absent while there is none. */
  readonly takenAtMs?: number;
  readonly ledger: LineLogRead;
}

/** Makes a report of the ledger, and of accounts that run now. Without a disk there is no ledger. Never rejects. */
export async function reportOf(
  ledger: LineLog | undefined,
  live: Iterable<LedgerEntry>,
  query: UsageQuery & Priced,
  nowMs: number,
): Promise<LedgerReport> {
  const sinceMs = nowMs - query.since;
  const reporter = new UsageReporter({ ...query, sinceMs, untilMs: nowMs });
  let foreign = 0;
  const entryOf = await entryReader();
  const read = await ledger?.read(sinceMs - BEFORE_MS, (record) => {
    const entry = entryOf(record);
    if (entry === undefined) foreign += 1;
    else reporter.add(entry);
  });
  for (const entry of live) reporter.add(entry);
  return { ...reporter.report(), ledger: { newerFiles: 0, ...read, damagedLines: (read?.damagedLines ?? 0) + foreign } };
}

/**
 * During an update, two agents can both write an account of the same container, each with a begin of its own. When accounts cover the
 * same time, only the longest one counts.
 */
function withoutTwins(accounts: readonly Account[]): readonly Account[] {
  const kept = new Map<string, Account[]>();
  const lengthOf = ({ last }: Account): number => last.atMs - last.sinceMs;
  for (const account of accounts.toSorted((a, b) => lengthOf(b) - lengthOf(a))) {
    const { last } = account;
    const others = kept.get(accountKey({ ...last, sinceMs: 0 })) ?? [];
    const isTwin = others.some(
      (other) => Math.min(other.last.atMs, last.atMs) - Math.max(other.last.sinceMs, last.sinceMs) > lengthOf(account) / 2,
    );
    if (!isTwin) kept.set(accountKey({ ...last, sinceMs: 0 }), [...others, account]);
  }
  return [...kept.values()].flat();
}

const familyOf = ({ device }: LedgerEntry): string => device.slice(0, device.indexOf('/'));

const mostWasteFirst = (a: UsageRow, b: UsageRow): number =>
  b.idleShareSeconds - a.idleShareSeconds || b.shareSeconds - a.shareSeconds || (a.name < b.name ? -1 : 1);

function nameOf({ namespace, pod, device, resource, labels = {} }: LedgerEntry, by: Grouping): string {
  if (by === 'device') return device;
  if (by === 'namespace') return namespace;
  // A user without a name has its UID.
  if (by === 'pod') return namespace === '' ? pod : `${namespace}/${pod}`;
  if (by === 'resource') return resource;
  return new Map(Object.entries(labels)).get(by.slice('label:'.length)) ?? '';
}

/** Amounts by name, such as `idleSeconds` or `busySeconds.compute`. An amount that is not known is absent. Whole numbers stay exact. */
type Amounts = ReadonlyMap<string, Value>;

/** Amounts that each row has. */
const ALWAYS = ['allocatedSeconds', 'shareSeconds', 'idleSeconds', 'unobservedSeconds'] as const;
const SOMETIMES = [
  'delegatedSeconds',
  'energyJoules',
  'energyEstimatedJoules',
  'memoryByteSeconds',
  'receivedBytes',
  'transmittedBytes',
] as const;
const BUSY = 'busySeconds.';

function amountsOf(entry: LedgerEntry | undefined): Amounts {
  const amounts = new Map<string, Value>();
  for (const name of [...ALWAYS, ...SOMETIMES]) if (entry?.[name] !== undefined) amounts.set(name, entry[name]);
  for (const [engine, value] of Object.entries(entry?.busySeconds ?? {})) amounts.set(BUSY + engine, value);
  return amounts;
}

/** Growth of the totals within the span. Between two lines they grow evenly, before the first one from 0. */
function growthOf({ before, after, last }: Account, sinceMs: number): Amounts {
  const [all, low, high] = [amountsOf(last), amountsOf(before), amountsOf(after)];
  if (last.sinceMs >= sinceMs) return all;
  const fromMs = before?.atMs ?? last.sinceMs;
  const part = after === undefined ? 0 : (sinceMs - fromMs) / (after.atMs - fromMs);
  return new Map(
    [...all].map(([name, value]) => {
      const start = low.get(name) ?? 0;
      const more = part === 0 ? 0 : Number(growth(start, high.get(name) ?? 0)) * part;
      return [name, growth(more === 0 ? start : Number(start) + more, value)];
    }),
  );
}

/** After a crash an account can go on from slightly smaller totals: time that was counted already is not taken back. */
const growth = (from: Value, to: Value): Value => (to > from ? subtractValues(to, from) : 0);

/** The sums of one row. */
class Group {
  readonly #name: string;
  readonly #sums = new Map<string, Value>();
  readonly #containers = new Set<string>();
  #idleShareSeconds = 0;
  readonly #unobserved = new Map<UnobservedReason, number>();
  /** Absent until a device has a price. */
  #cost: { readonly cost: number; readonly idleCost: number } | undefined;

  constructor(name: string) {
    this.#name = name;
  }

  add(entry: LedgerEntry, growth: Amounts, price: number | undefined): void {
    const { namespace, pod, container, uid = '' } = entry;
    for (const [name, amount] of growth) this.#sums.set(name, addValues(this.#sums.get(name) ?? 0, amount));
    this.#containers.add([namespace, pod, container, uid].join('\u0000'));
    const of = (name: string): number => Number(growth.get(name) ?? 0);
    const allocated = of('allocatedSeconds') - of('delegatedSeconds');
    const idleShare = allocated === 0 ? 0 : (of('idleSeconds') * of('shareSeconds')) / allocated;
    this.#idleShareSeconds += idleShare;
    if (of('unobservedSeconds') > 0) {
      const reason = unobservedReason(entry);
      this.#unobserved.set(reason, (this.#unobserved.get(reason) ?? 0) + of('unobservedSeconds'));
    }
    if (price === undefined) return;
    const { cost, idleCost } = this.#cost ?? { cost: 0, idleCost: 0 };
    this.#cost = { cost: cost + of('shareSeconds') * (price / HOUR_SECONDS), idleCost: idleCost + idleShare * (price / HOUR_SECONDS) };
  }

  row(): UsageRow {
    const sums = this.#sums;
    const sum = (name: string): number => Number(sums.get(name) ?? 0);
    const observed = sum('allocatedSeconds') - sum('delegatedSeconds') - sum('unobservedSeconds');
    const busy = [...sums].filter(([name]) => name.startsWith(BUSY)).sort(([a], [b]) => (a < b ? -1 : 1));
    return {
      ...{ name: this.#name, containers: this.#containers.size },
      ...(Object.fromEntries(ALWAYS.map((name) => [name, sum(name)])) as Pick<UsageRow, (typeof ALWAYS)[number]>),
      // Time without observation is neither idle nor busy.
      ...(observed > sum('allocatedSeconds') * LEAST_OBSERVED ? { idleRatio: Math.min(1, sum('idleSeconds') / observed) } : {}),
      idleShareSeconds: this.#idleShareSeconds,
      busySeconds: Object.fromEntries(busy.map(([name, value]) => [name.slice(BUSY.length), Number(value)])),
      ...Object.fromEntries(SOMETIMES.flatMap((name) => (sums.has(name) ? [[name, sums.get(name)]] : []))),
      ...(this.#unobserved.size > 0 && { unobservedBecause: Object.fromEntries(this.#unobserved) }),
      ...this.#cost,
    };
  }
}
