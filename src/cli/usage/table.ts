import type { UsageRow } from '../../accounting/ledger/report.ts';
import { visible } from '../../model/one-line.ts';
import { textTable } from '../text-table.ts';

/** The part of a report that is printed. */
interface Printed {
  readonly by: string;
  readonly rows: readonly UsageRow[];
  readonly total: UsageRow;
}

const HOUR_SECONDS = 3_600;
const KWH_JOULES = 3_600_000;

/** One line per group, most idle device hours first, and the total. Hours and kWh have two digits. */
export function usageTable({ by, rows, total }: Printed): string {
  const isByDevice = by === 'device';
  const head = ['CONTAINERS', 'DEVICE HOURS', 'IDLE HOURS', 'IDLE', 'BUSIEST ENGINE', 'UNOBSERVED HOURS', 'ENERGY KWH'];
  const tail = isByDevice ? ['FREE HOURS', 'UNHEALTHY HOURS'] : [];
  const line = (row: UsageRow, name: string): string[] => [
    name,
    String(row.containers),
    hours(row.shareSeconds),
    hours(row.idleShareSeconds),
    row.idleRatio === undefined ? '' : `${Math.round(row.idleRatio * 100)}%`,
    busiest(row),
    hours(row.unobservedSeconds),
    energy(row),
    ...(isByDevice ? [hours(row.unallocatedSeconds), hours(row.unhealthySeconds)] : []),
  ];
  return textTable([
    [by.startsWith('label:') ? by : by.toUpperCase(), ...head, ...tail],
    ...rows.map((row) => line(row, row.name)),
    line(total, 'TOTAL'),
  ]);
}

/** The engine that worked most, with its hours. The other engines worked at the same time or less. */
function busiest({ busySeconds }: UsageRow): string {
  const [first] = Object.entries(busySeconds).sort(([, a], [, b]) => b - a);
  return first === undefined ? '' : `${first[0]} ${hours(first[1])}`;
}

/** One estimated part makes the sum an estimate. */
function energy({ energyJoules, energyEstimatedJoules }: UsageRow): string {
  if (energyJoules === undefined && energyEstimatedJoules === undefined) return '';
  const kwh = ((energyJoules ?? 0) + (energyEstimatedJoules ?? 0)) / KWH_JOULES;
  return `${energyEstimatedJoules === undefined ? '' : '~'}${kwh.toFixed(2)}`;
}

const hours = (seconds: number | undefined): string => (seconds === undefined ? '' : (seconds / HOUR_SECONDS).toFixed(2));

const COLUMNS = [
  ...(['containers', 'allocatedSeconds', 'shareSeconds', 'idleSeconds', 'idleRatio', 'idleShareSeconds', 'unobservedSeconds'] as const),
  ...(['energyJoules', 'energyEstimatedJoules', 'memoryByteSeconds', 'receivedBytes', 'transmittedBytes'] as const),
  ...(['unallocatedSeconds', 'unhealthySeconds'] as const),
] satisfies readonly (keyof UsageRow)[];

/**
 * Comma-separated values (RFC 4180) with the names and units of the API, without the total. An unknown amount is empty. A text that a
 * spreadsheet would run as a formula begins with an apostrophe, which spreadsheets take for text.
 */
export function usageCsv({ by, rows }: Printed): string {
  const engines = [...new Set(rows.flatMap(({ busySeconds }) => Object.keys(busySeconds)))].sort();
  const head = [by, ...COLUMNS, ...engines.map((engine) => `busySeconds.${engine}`)];
  const lines = rows.map((row) => [row.name, ...COLUMNS.map((name) => row[name]), ...engines.map((engine) => row.busySeconds[engine])]);
  return [head, ...lines].map((line) => `${line.map(cell).join(',')}\r\n`).join('');
}

function cell(value: string | number | bigint | undefined): string {
  const text = typeof value === 'string' ? visible(value.replace(/^\s*[=+\-@＝＋－＠]/, "'$&")) : String(value ?? '');
  return /[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
