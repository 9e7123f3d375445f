import { existsSync } from 'node:fs';
import { ledgerDirectory, openLedger, reportOf } from '../../accounting/ledger/ledger.ts';
import { parseQuery, type UsageQuery, type UsageRow } from '../../accounting/ledger/report.ts';
import { UserError } from '../../errors.ts';
import { systemClock } from '../../host/clock.ts';
import { askFor, printAge, REFUSAL_TEXTS } from '../agent-api.ts';
import type { CommandContext, Ending } from '../context.ts';
import { withProgress } from '../progress.ts';
import { agentSettings } from '../settings.ts';
import { usageCsv, usageTable } from './table.ts';

/** The report in the format of the API. */
export interface ApiReport {
  /** When the agent took the snapshot with what goes on. */
  readonly takenAt?: string;
  readonly since: string;
  readonly until: string;
  readonly by: string;
  readonly rows: readonly UsageRow[];
  readonly total: UsageRow;
  readonly leftOut: number;
  readonly ledger?: { readonly damagedLines?: number; readonly newerFiles?: number; readonly error?: string };
}

/** Prints what containers used: asks the running agent, and reads the ledger when none runs. */
export async function runUsage(context: CommandContext): Promise<Ending> {
  const { options, output, logger } = context;
  const { query, problem } = parseQuery(options);
  if (query === undefined) throw new UserError('usage-invalid', { problem: `--${problem}`, command: 'device-agent usage' });
  const { report, source } = await withProgress('adding up the usage', reportFor(context, query));
  if (report === undefined) {
    logger.error('no agent answers, and there is no ledger to read', {
      remedy: 'Start the agent, or give the --state.file of the agent of this node.',
    });
    return { status: 1 };
  }
  warn(context, report);
  const format = options.output;
  if (format === 'json') await output.write(`${JSON.stringify({ source, ...report }, exact, 2)}\n`);
  else await output.write(format === 'csv' ? usageCsv(report) : usageTable(report));
  if (format === 'table') printAge(report.takenAt);
  return { status: 0 };
}

interface Found {
  readonly report: ApiReport | undefined;
  readonly source: 'agent' | 'ledger';
}

async function reportFor(context: CommandContext, query: UsageQuery): Promise<Found> {
  const { configuration, families, logger, options } = context;
  const path = `/api/usage?since=${query.since}ms&by=${encodeURIComponent(query.by)}`;
  const { answer, refusal } = await askFor(context)(path);
  if (answer?.status === 200 && isReport(answer.body)) return { report: answer.body, source: 'agent' };
  if (refusal !== undefined) logger.warn('the running agent cannot be asked; this is its ledger', REFUSAL_TEXTS[refusal]);
  const { state, usage } = agentSettings(configuration, families);
  const directory = ledgerDirectory(state.file);
  if (directory === undefined || !existsSync(directory)) return { report: undefined, source: 'ledger' };
  if (refusal === undefined && options.read !== true)
    logger.warn('no agent answers; this is its ledger, and what runs since its latest entry is not in it');
  const report = await reportOf(openLedger(directory, usage, systemClock), [], query, systemClock.now());
  const { usageView } = await import('../../server/api/usage.ts');
  return { report: usageView(report) as ApiReport, source: 'ledger' };
}

/** Warns of what the report lacks. */
function warn({ logger }: CommandContext, { ledger = {}, leftOut }: ApiReport): void {
  const { damagedLines = 0, newerFiles = 0, error } = ledger;
  if (error !== undefined) logger.warn('the ledger cannot be read in full', { detail: error });
  if (damagedLines > 0) logger.warn('the ledger has damaged lines; they were skipped', { lines: damagedLines });
  if (newerFiles > 0) logger.warn('a newer version of the agent wrote a part of the ledger; it was not read', { files: newerFiles });
  if (leftOut > 0) logger.warn('the report is too large; a part is left out', { leftOut });
}

/** As the API: an integer that a JSON parser would round is a string of digits. */
const exact = (_name: string, value: unknown): unknown => (typeof value === 'bigint' ? value.toString() : value);

/** False when another program answered. */
export function isReport(body: unknown): body is ApiReport {
  const { since, until, rows, total } = (body ?? {}) as Partial<ApiReport>;
  return typeof since === 'string' && typeof until === 'string' && Array.isArray(rows) && rows.every(isRow) && isRow(total);
}

function isRow(value: unknown): value is UsageRow {
  const row = (value ?? {}) as Partial<UsageRow>;
  const amounts = [row.containers, row.allocatedSeconds, row.shareSeconds, row.idleSeconds, row.idleShareSeconds, row.unobservedSeconds];
  return typeof row.name === 'string' && amounts.every(Number.isFinite) && typeof row.busySeconds === 'object' && row.busySeconds !== null;
}
