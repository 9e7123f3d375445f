import { setImmediate } from 'node:timers/promises';
import { accountKey, entriesOf, type LedgerEntry, PodLabels, toRecord } from '../accounting/ledger/entry.ts';
import { type LedgerReport, ledgerDirectory, openLedger, reportOf } from '../accounting/ledger/ledger.ts';
import type { Prices, UsageQuery } from '../accounting/ledger/report.ts';
import type { Clock } from '../host/clock.ts';
import type { LineLog } from '../host/fs/line-log.ts';
import { createChangeLog } from '../log/changes.ts';
import type { Logger } from '../log/logger.ts';
import type { Snapshot } from '../model/snapshot.ts';
import type { AgentSettings } from './settings.ts';
import { StateLease } from './state.ts';
import type { Store } from './store.ts';

const HOUR_MS = 3_600_000;
/** So many entries are written as text before other work goes on. */
const CHUNK = 250;
/** More accounts than end on a node in an hour. */
const MOST_HELD = 10_000;
const CACHE_MS = 5_000;
const MAX_CACHED = 16;
type Told = Pick<AgentSettings, 'usage'> &
  Partial<Pick<AgentSettings, 'prices'>> & { readonly state: Pick<AgentSettings['state'], 'file'> };

/**
 * Writes the accounts of containers and devices to the ledger: each running one once an hour, and each at its end. A snapshot never waits
 * for the disk.
 */
export class UsageLedger {
  readonly #store: Pick<Store, 'snapshot'>;
  readonly #clock: Clock;
  readonly #log: LineLog;
  readonly #directory: string | undefined;
  readonly #tell: (error: string | undefined) => void;
  readonly #labels = new PodLabels();
  readonly #lease: StateLease;
  /** What a newer agent writes, unless it ends before this one. */
  #held: readonly object[] = [];
  #hour: number;
  #prices: Prices;
  /** Ended accounts of the latest snapshot that have their last entry. */
  #ended: ReadonlySet<string> = new Set();
  #writing: Promise<void> = Promise.resolve();
  #reporting: Promise<unknown> = Promise.resolve();
  readonly #cache = new Map<string, { readonly untilMs: number; readonly report: Promise<LedgerReport> }>();

  constructor({ usage, state, prices = {} }: Told, store: Pick<Store, 'snapshot'>, logger: Logger, clock: Clock, lease = new StateLease()) {
    this.#lease = lease;
    this.#store = store;
    this.#clock = clock;
    this.#directory = ledgerDirectory(state.file);
    this.#log = openLedger(this.#directory, usage, clock);
    this.#hour = hourOf(clock.now());
    this.#prices = prices;
    const changes = createChangeLog(logger);
    this.#tell = (error) => changes.update('usage ledger', error === undefined ? [] : [this.#trouble(error)]);
  }

  /** Reports have other prices from now on. */
  configure({ prices }: Pick<AgentSettings, 'prices'>): void {
    this.#prices = prices;
    this.#cache.clear();
  }

  /** Must be called after each snapshot, because the kubelet forgets labels of pods. */
  look(snapshot: Snapshot): void {
    if (snapshot.usage !== undefined) this.#labels.update(snapshot);
  }

  /**
   * Writes the accounts of a snapshot. Call it only after the state file has these accounts. Otherwise, after a kill, the next run would not know such an
   * account and would begin it again, and the ledger would have it twice. Never throws and never waits.
   */
  update(snapshot: Snapshot): void {
    const { usage, takenAtMs } = snapshot;
    if (usage === undefined) return;
    const hour = hourOf(takenAtMs);
    const isDue = hour !== this.#hour;
    this.#hour = hour;
    const hasEnded = [...usage.containers, ...usage.devices].some(({ endedAtMs }) => endedAtMs !== undefined);
    const entries = isDue || hasEnded ? this.#entries(snapshot) : [];
    const ended = new Set(entries.filter(isEnded).map(accountKey));
    const known = this.#ended;
    this.#ended = ended;
    this.#write(entries.filter((entry) => (isEnded(entry) ? !known.has(accountKey(entry)) : isDue)));
  }

  /** Makes a report, one at a time. Equal questions within some seconds get the same answer. */
  report(query: UsageQuery): Promise<LedgerReport> {
    const key = `${query.since} ${query.by} ${query.family}`;
    const nowMs = this.#clock.monotonic();
    for (const [known, { untilMs }] of this.#cache) if (untilMs <= nowMs) this.#cache.delete(known);
    const cached = this.#cache.get(key);
    if (cached !== undefined) return cached.report;
    const make = async (): Promise<LedgerReport> => {
      const snapshot = this.#store.snapshot();
      const live = snapshot === undefined ? [] : this.#entries(snapshot);
      const report = await reportOf(this.#log, live, { ...query, prices: this.#prices }, this.#clock.now());
      return snapshot === undefined ? report : { ...report, takenAtMs: snapshot.takenAtMs };
    };
    const report = this.#reporting.then(make, make);
    this.#reporting = report;
    if (this.#cache.size < MAX_CACHED) this.#cache.set(key, { untilMs: nowMs + CACHE_MS, report });
    return report;
  }

  /** Resolves when what was taken so far is on disk, or when the disk does not answer. */
  async written(): Promise<void> {
    await this.#writing;
  }

  /** Writes all accounts as they are now. Resolves when they are on disk, or when the disk does not answer. */
  async close(): Promise<void> {
    const snapshot = this.#store.snapshot();
    if (snapshot !== undefined) this.#write(this.#entries(snapshot).filter((entry) => !this.#ended.has(accountKey(entry))));
    await this.#writing;
  }

  #entries(snapshot: Snapshot): readonly LedgerEntry[] {
    return entriesOf(snapshot, (account) => this.#labels.of(account));
  }

  #write(entries: readonly LedgerEntry[]): void {
    if (entries.length === 0 && (this.#held.length === 0 || !this.#lease.isHeld)) return;
    this.#writing = this.#writing.then(() => this.#append(entries));
  }

  async #append(entries: readonly LedgerEntry[]): Promise<void> {
    const records: object[] = [];
    for (let from = 0; from < entries.length; from += CHUNK) {
      records.push(...entries.slice(from, from + CHUNK).map(toRecord));
      await setImmediate();
    }
    const due = [...this.#held, ...records];
    this.#held = this.#lease.isHeld ? [] : due.slice(-MOST_HELD);
    if (this.#lease.isHeld) this.#tell(await this.#log.append(due));
  }

  #trouble(detail: string): Parameters<ReturnType<typeof createChangeLog>['begin']>[0] {
    return {
      key: 'write',
      message: 'the ledger of usage cannot be written; what containers used would be lost at a restart',
      ended: 'the ledger of usage could not be written; it is written again',
      fields: { path: this.#directory ?? '' },
      detail,
      remedy: 'Make room on the file system of --state.file, and check that the agent may write there.',
    };
  }
}

const hourOf = (timeMs: number): number => Math.floor(timeMs / HOUR_MS);
const isEnded = ({ endedAtMs }: LedgerEntry): boolean => endedAtMs !== undefined;
