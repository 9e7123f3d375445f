import { accountKey, entriesOf, type LedgerEntry, ledgerDirectory, openLedger, toRecord } from '../accounting/ledger.ts';
import type { UsageQuery } from '../accounting/query.ts';
import { type LedgerReport, type Prices, reportOf } from '../accounting/report.ts';
import type { Clock } from '../host/clock.ts';
import type { LineLog } from '../host/fs/line-log.ts';
import { createChangeLog } from '../log/changes.ts';
import type { Logger } from '../log/logger.ts';
import { defined } from '../model/defined.ts';
import type { Snapshot } from '../model/snapshot.ts';
import type { AgentSettings } from './settings.ts';
import { StateLease } from './state.ts';
import type { Store } from './store.ts';

const HOUR_MS = 3_600_000;
type LedgerSettings = Pick<AgentSettings, 'usage'> &
  Partial<Pick<AgentSettings, 'prices'>> & { readonly state: Pick<AgentSettings['state'], 'file'> };

/**
 * Writes the accounts of containers to the ledger: each at its end, and each running one once an hour, so that a report knows when in a
 * long account its hours were. A snapshot never waits for the disk.
 */
export class UsageLedger {
  readonly #store: Pick<Store, 'snapshot'>;
  readonly #clock: Clock;
  readonly #log: LineLog | undefined;
  readonly #tell: (problems: 'damaged' | 'write', detail: string | undefined) => void;
  readonly #lease: StateLease;
  #damagedLines: number | undefined;
  #hour: number;
  #priced: { readonly prices: Prices; readonly currency: string };
  /** Ended accounts of the latest snapshot that have their last entry. */
  #ended: ReadonlySet<string> = new Set();
  #writing: Promise<void> = Promise.resolve();
  #reporting: Promise<unknown> = Promise.resolve();

  constructor(
    { usage, state, prices = {} }: LedgerSettings,
    store: Pick<Store, 'snapshot'>,
    logger: Logger,
    clock: Clock,
    lease = new StateLease(),
  ) {
    this.#lease = lease;
    this.#store = store;
    this.#clock = clock;
    this.#hour = hourOf(clock.now());
    this.#priced = { prices, currency: usage.currency };
    const changes = createChangeLog(logger);
    const path = ledgerDirectory(state.file);
    this.#log = path === undefined ? undefined : openLedger(path, usage, clock);
    this.#tell = (what, detail) =>
      changes.update(what, detail === undefined ? [] : [{ key: what, fields: { path: path ?? '' }, detail, ...TROUBLES[what] }]);
  }

  /** Lines that the latest report skipped. */
  get damagedLines(): number | undefined {
    return this.#damagedLines;
  }

  /** Reports have other prices from now on. */
  configure({ prices, usage }: Pick<AgentSettings, 'prices' | 'usage'>): void {
    this.#priced = { prices, currency: usage.currency };
  }

  /**
   * Writes the accounts of a snapshot. Call it only after the state file has these accounts. Otherwise, after a kill, the next run would not know such an
   * account and would begin it again, and the ledger would have it twice. Never throws and never waits.
   */
  update(snapshot: Snapshot): void {
    // What ends now is in the next snapshots, too, and a newer agent that has the disk writes its end.
    if (!this.#lease.isHeld) return;
    const hour = hourOf(snapshot.takenAtMs);
    const isDue = hour !== this.#hour;
    this.#hour = hour;
    const entries = entriesIn(snapshot);
    const known = this.#ended;
    this.#ended = new Set(entries.filter(isEnded).map((entry) => accountKey(entry)));
    this.#write(entries.filter((entry) => (isEnded(entry) ? !known.has(accountKey(entry)) : isDue)));
  }

  /** Makes a report, one at a time. */
  report(query: UsageQuery): Promise<LedgerReport> {
    const make = async (): Promise<LedgerReport> => {
      const snapshot = this.#store.snapshot();
      const report = await reportOf(this.#log, entriesIn(snapshot), { ...query, ...this.#priced }, this.#clock.now());
      const { damagedLines } = report.ledger;
      this.#damagedLines = damagedLines;
      this.#tell('damaged', damagedLines === 0 ? undefined : `${damagedLines} lines`);
      return { ...report, ...defined({ takenAtMs: snapshot?.takenAtMs }) };
    };
    const report = this.#reporting.then(make, make);
    this.#reporting = report;
    return report;
  }

  /** Resolves when what was taken so far is on disk, or when the disk does not answer. */
  async written(): Promise<void> {
    await this.#writing;
  }

  /** Writes all accounts as they are now. Resolves when they are on disk, or when the disk does not answer. */
  async close(): Promise<void> {
    if (this.#lease.isHeld) this.#write(entriesIn(this.#store.snapshot()).filter((entry) => !this.#ended.has(accountKey(entry))));
    await this.#writing;
  }

  #write(entries: readonly LedgerEntry[]): void {
    if (entries.length === 0) return;
    this.#writing = this.#writing.then(async () => this.#tell('write', await this.#log?.append(entries.map(toRecord))));
  }
}

const TROUBLES = {
  write: {
    message: 'the ledger of usage cannot be written; what containers used would be lost at a restart',
    ended: 'the ledger of usage could not be written; it is written again',
    remedy: 'Make room on the file system of --state.file, and check that the agent may write there.',
  },
  damaged: {
    message: 'the ledger of usage has damaged lines; they were skipped',
    ended: 'the ledger of usage has no damaged lines any more',
    remedy: 'None: a kill cuts a line off. Check the disk if there are many.',
  },
};

const hourOf = (timeMs: number): number => Math.floor(timeMs / HOUR_MS);
const isEnded = ({ endedAtMs }: LedgerEntry): boolean => endedAtMs !== undefined;
const entriesIn = (snapshot: Snapshot | undefined): readonly LedgerEntry[] =>
  snapshot?.usage === undefined ? [] : entriesOf(snapshot.usage, snapshot.takenAtMs);
