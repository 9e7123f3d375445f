import { dirname, join } from 'node:path';
import type { Clock } from '../../host/clock.ts';
import { createLineLog, type LineLog, type LineLogRead } from '../../host/fs/line-log.ts';
import type { UsageOptions } from '../options.ts';
import { entryReader, type LedgerEntry } from './entry.ts';
import { type Prices, type UsageQuery, type UsageReport, UsageReporter } from './report.ts';

/** Version of the entries. An agent of an older version neither reads nor deletes files of a newer one. */
const VERSION = 1;
const DAY_MS = 86_400_000;
const MIB = 1_048_576;
/** Each running account has a line in each hour, and each segment ends after a day: so the line before the span is read too. */
const BEFORE_MS = DAY_MS + 7_200_000;

/** Directory of the ledger beside the state file; undefined when the agent keeps nothing on disk. */
export const ledgerDirectory = (stateFile: string): string | undefined =>
  stateFile === '' ? undefined : join(dirname(stateFile), 'usage');

/** Nothing is on disk before the first append, so that a command can read the ledger of an agent. */
export function openLedger(directory: string | undefined, options: Pick<UsageOptions, 'keep-days' | 'keep-mib'>, clock: Clock): LineLog {
  if (directory === undefined) return createMemoryLog();
  const { 'keep-days': days, 'keep-mib': mib } = options;
  return createLineLog({ directory, name: 'usage', version: VERSION, keepMs: days * DAY_MS, maxBytes: mib * MIB, clock });
}

export interface LedgerReport extends UsageReport {
  /** Wall clock of the snapshot with the accounts that go on; absent while there is none. */
  readonly takenAtMs?: number;
  readonly ledger: LineLogRead;
}

/** Makes a report of the ledger, and of accounts that run now. Never rejects. */
export async function reportOf(
  ledger: LineLog,
  live: Iterable<LedgerEntry>,
  query: UsageQuery & { readonly prices?: Prices },
  nowMs: number,
): Promise<LedgerReport> {
  const sinceMs = nowMs - query.since;
  const reporter = new UsageReporter({ ...query, sinceMs, untilMs: nowMs });
  let foreign = 0;
  const entryOf = await entryReader();
  const read = await ledger.read(sinceMs - BEFORE_MS, (record) => {
    const entry = entryOf(record);
    if (entry === undefined) foreign += 1;
    else reporter.add(entry);
  });
  for (const entry of live) reporter.add(entry);
  return { ...reporter.report(), ledger: { ...read, damagedLines: read.damagedLines + foreign } };
}

/** Some MiB of entries. */
const MAX_RECORDS = 5_000;

/** A log without a disk, for an agent that keeps nothing on disk. It has the latest records. */
function createMemoryLog(mostRecords = MAX_RECORDS): LineLog {
  let records: readonly object[] = [];
  let dropped = 0;
  return {
    async append(added) {
      const all = [...records, ...added];
      dropped += Math.max(0, all.length - mostRecords);
      records = all.slice(-mostRecords);
      return undefined;
    },
    async read(_fromMs, take) {
      for (const record of records) take(record as Readonly<Record<string, unknown>>);
      return { damagedLines: 0, newerFiles: 0 };
    },
    get dropped() {
      return dropped;
    },
    waiting: 0,
  };
}
