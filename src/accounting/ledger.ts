import { dirname, join } from 'node:path';
import type { Clock } from '../host/clock.ts';
import { createLineLog, type LineLog } from '../host/fs/line-log.ts';
import { schemaCheck, shape, TIME } from '../host/fs/saved-schema.ts';
import type { ContainerUsage, Usage } from '../model/usage.ts';
import type { UsageOptions } from './options.ts';
import { CONTAINER_USAGE, restoredUsage } from './saved-accounts.ts';

/**
 * One line of the ledger: an account as it was at one time, by the wall clock. All amounts are totals since the begin of the account, so that a line
 * that is there twice, or missing, changes no difference between two other lines.
 */
export type LedgerEntry = ContainerUsage & { readonly atMs: number };

/** Version of the entries. An agent of an older version neither reads nor deletes files of a newer one. */
const VERSION = 1;
export const DAY_MS = 86_400_000;
const MIB = 1_048_576;
/** Directory of the ledger beside the state file; undefined when the agent keeps nothing on disk. */
export const ledgerDirectory = (stateFile: string): string | undefined =>
  stateFile === '' ? undefined : join(dirname(stateFile), 'usage');

/** Nothing is on disk before the first append, so that a command can read the ledger of an agent. */
export function openLedger(directory: string, options: Pick<UsageOptions, 'keep-days' | 'keep-mib'>, clock: Clock): LineLog {
  const { 'keep-days': days, 'keep-mib': mib } = options;
  return createLineLog({ directory, name: 'usage', version: VERSION, keepMs: days * DAY_MS, maxBytes: mib * MIB, clock });
}

/** Entries of all accounts at a time. Those of ended accounts have the time of their end. The ledger has sums of counters, not each of them. */
export const entriesOf = ({ containers }: Usage, nowMs: number): readonly LedgerEntry[] =>
  containers.map(({ counters: _, ...one }) => ({ atMs: one.endedAtMs ?? nowMs, ...one }));

/** What identifies the account of an entry. A UID can become known later, so that it is no part of it. */
export const accountKey = ({ namespace, pod, container, resource, device, sinceMs }: LedgerEntry): string =>
  [namespace, pod, container, resource, device, sinceMs].join('\u0000');

/** Plain JSON. An integer that JSON would round becomes its digits; other numbers keep three of their decimals, so that lines are short. */
export const toRecord = (entry: LedgerEntry): object => JSON.parse(JSON.stringify(entry, short)) as object;

function short(_key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString();
  return typeof value === 'number' ? Math.round(value * 1_000) / 1_000 : value;
}

const LINE = { allOf: [shape({ atMs: TIME }), CONTAINER_USAGE] };

/** Resolves to a function that gives the entry of a record of the ledger; undefined for a record that is none. */
export async function entryReader(): Promise<(line: Readonly<Record<string, unknown>>) => LedgerEntry | undefined> {
  const problemOf = await schemaCheck(LINE);
  return (line) => (problemOf(line) === undefined ? restoredUsage(line as unknown as LedgerEntry) : undefined);
}
