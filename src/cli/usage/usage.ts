import { existsSync } from 'node:fs';
import { ledgerDirectory, openLedger } from '../../accounting/ledger.ts';
import { parseQuery, type UsageQuery } from '../../accounting/query.ts';
import { energyOf, enginesOf, HOUR_SECONDS, reportOf, type UsageRow } from '../../accounting/report.ts';
import { unobservedTexts, wasteSentence } from '../../accounting/waste.ts';
import { UserError } from '../../errors.ts';
import { systemClock } from '../../host/clock.ts';
import { visible } from '../../model/one-line.ts';
import { askFor, printAge, REFUSAL_TEXTS } from '../agent-api.ts';
import type { CommandContext, Ending } from '../context.ts';
import { withProgress } from '../progress.ts';
import { agentSettings } from '../settings.ts';
import { textTable } from '../text-table.ts';

/** The report in the format of the API. */
export interface ApiReport {
  /** When the agent took the snapshot with what goes on. */
  readonly takenAt?: string;
  readonly since: string;
  readonly until: string;
  readonly by: string;
  readonly currency?: string;
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
  else await output.write(format === 'csv' ? usageCsv(report) : `${aboutWaste(report)}${usageTable(report)}`);
  if (format === 'table') printAge(report.takenAt);
  return { status: 0 };
}

interface UsageAnswer {
  readonly report: ApiReport | undefined;
  readonly source: 'agent' | 'ledger';
}

async function reportFor(context: CommandContext, query: UsageQuery): Promise<UsageAnswer> {
  const { configuration, families, logger, options } = context;
  const path = `/api/usage?since=${query.since}ms&by=${encodeURIComponent(query.by)}${query.family === undefined ? '' : `&family=${query.family}`}`;
  const { answer, refusal } = await askFor(context)(path);
  if (answer?.status === 200 && isReport(answer.body)) return { report: answer.body, source: 'agent' };
  if (refusal !== undefined) logger.warn('the running agent cannot be asked; this is its ledger', REFUSAL_TEXTS[refusal]);
  const { state, usage, prices } = agentSettings(configuration, families);
  const directory = ledgerDirectory(state.file);
  if (directory === undefined || !existsSync(directory)) return { report: undefined, source: 'ledger' };
  if (refusal === undefined && options.read !== true)
    logger.warn('no agent answers; this is its ledger, and what runs since its latest entry is not in it');
  const report = await reportOf(
    openLedger(directory, usage, systemClock),
    [],
    { ...query, prices, currency: usage.currency },
    systemClock.now(),
  );
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

/** The part of a report that is printed. */
interface Printed {
  readonly by: string;
  readonly currency?: string;
  readonly rows: readonly UsageRow[];
  readonly total: UsageRow;
}

const KWH_JOULES = 3_600_000;

/** What people want to know first, above the table: the waste, and why much of the time is not known. */
function aboutWaste(report: Printed): string {
  const sentence = wasteSentence(report);
  if (sentence === undefined) return '';
  const because = unobservedTexts(report.total).map((text) => `Not observed: ${text}.\n`);
  return `${visible(sentence)}\n${because.join('')}\n`;
}

/** One line per group, most idle device hours first, and the total. Hours and kWh have two digits. */
export function usageTable({ by, rows, total, currency = '' }: Printed): string {
  const hasCost = total.cost !== undefined;
  const head = ['CONTAINERS', 'DEVICE HOURS', 'IDLE HOURS', 'IDLE', 'BUSIEST ENGINE', 'UNOBSERVED HOURS', 'ENERGY KWH'];
  const tail = hasCost ? ['COST', 'IDLE COST'].map((name) => `${name} ${currency}`.trimEnd()) : [];
  const line = (row: UsageRow, name: string): string[] => [
    name,
    String(row.containers),
    hours(row.shareSeconds),
    hours(row.idleShareSeconds),
    row.idleRatio === undefined ? '' : `${Math.round(row.idleRatio * 100)}%`,
    busiest(row),
    hours(row.unobservedSeconds),
    energy(row),
    ...(hasCost ? [money(row.cost), money(row.idleRatio === undefined ? undefined : row.idleCost)] : []),
  ];
  return textTable([
    [by.startsWith('label:') ? by : by.toUpperCase(), ...head, ...tail],
    ...rows.map((row) => line(row, row.name)),
    line(total, 'TOTAL'),
  ]);
}

/** The engine that worked most, with its hours. The other engines worked at the same time or less. */
function busiest(row: UsageRow): string {
  const [first] = enginesOf(row);
  return first === undefined ? '' : `${first[0]} ${hours(first[1])}`;
}

function energy(row: UsageRow): string {
  const energy = energyOf(row);
  return energy === undefined ? '' : `${energy.isEstimate ? '~' : ''}${(energy.joules / KWH_JOULES).toFixed(2)}`;
}

const money = (cost: number | undefined): string => (cost === undefined ? '' : cost.toFixed(2));
const hours = (seconds: number | undefined): string => (seconds === undefined ? '' : (seconds / HOUR_SECONDS).toFixed(2));

const COLUMNS = [
  ...(['containers', 'allocatedSeconds', 'shareSeconds', 'idleSeconds', 'idleRatio', 'idleShareSeconds', 'unobservedSeconds'] as const),
  ...(['energyJoules', 'energyEstimatedJoules', 'memoryByteSeconds', 'receivedBytes', 'transmittedBytes'] as const),
] satisfies readonly (keyof UsageRow)[];

/**
 * Comma-separated values (RFC 4180) with the names and units of the API, without the total. An unknown amount is empty. A text that a
 * spreadsheet would run as a formula begins with an apostrophe, which spreadsheets take for text.
 */
export function usageCsv({ by, rows }: Printed): string {
  const engines = [...new Set(rows.flatMap(({ busySeconds }) => Object.keys(busySeconds)))].sort();
  // Columns of cost exist where a price is configured, as in the table.
  const columns = rows.some(({ cost }) => cost !== undefined) ? [...COLUMNS, ...(['cost', 'idleCost'] as const)] : COLUMNS;
  const head = [by, ...columns, ...engines.map((engine) => `busySeconds.${engine}`)];
  const lines = rows.map((row) => [row.name, ...columns.map((name) => row[name]), ...engines.map((engine) => row.busySeconds[engine])]);
  return [head, ...lines].map((line) => `${line.map(cell).join(',')}\r\n`).join('');
}

function cell(value: string | number | bigint | undefined): string {
  const text = typeof value === 'string' ? visible(value.replace(/^\s*[=+\-@＝＋－＠]/, "'$&")) : String(value ?? '');
  return /[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
