import type { Reading } from '../../model/metric.ts';
import { recordReadings } from '../kit/record-rows.ts';
import { ALL_ONES } from '../kit/text.ts';
import { LOG_ROWS, LOG_TEMPERATURES, type LogRow, metrics } from './metrics.ts';

/** Bytes of the log. */
export const SMART_LOG_BYTES = 512;

type LogField = Pick<LogRow, 'field' | 'offset' | 'bytes' | 'most' | 'isAbsentAtZero'>;

export const LOG_FIELDS: readonly LogField[] = [{ field: 'critical_warning', offset: 0, bytes: 1 }, ...LOG_ROWS, ...LOG_TEMPERATURES];

/** Raw values of one log by their fields, in the units of the specification. A value that the drive does not have is absent. */
export type SmartLog = Readonly<Record<string, bigint | undefined>>;

/** Bits of `critical_warning`. */
export const WARNING_BITS = {
  spare: 0,
  temperature: 1,
  reliability: 2,
  'read-only': 3,
  'volatile-backup': 4,
  'persistent-memory': 5,
} as const;

export const hasWarning = (warnings: bigint, bit: number): boolean => ((warnings >> BigInt(bit)) & 1n) === 1n;

/** Readings of the log but its temperatures; none without a log. */
export function smartReadings(log: SmartLog = {}): readonly Reading[] {
  const { critical_warning: warnings } = log;
  const given = warnings === undefined ? [] : Object.entries(WARNING_BITS);
  return [
    ...recordReadings(LOG_ROWS, (field) => log[field]),
    ...given.map(([warning, bit]) => ({
      metric: metrics.criticalWarning.name,
      labels: { warning },
      value: Number(hasWarning(warnings as bigint, bit)),
    })),
  ];
}

/** Decodes the log as the drive sent it. Undefined when it is too short, or when all bytes are 00 or ff: no drive has such a log. */
export function decodeSmartLog(bytes: Buffer): SmartLog | undefined {
  if (bytes.length < SMART_LOG_BYTES) return undefined;
  const log = bytes.subarray(0, SMART_LOG_BYTES);
  if ([0x00, 0xff].includes(log[0] as number) && log.every((byte) => byte === log[0])) return undefined;
  return logOf(({ offset, bytes: width }) => {
    let value = 0n;
    for (let at = offset + width - 1; at >= offset; at -= 1) value = (value << 8n) | BigInt(log[at] as number);
    return value;
  });
}

/** Parses the output of `nvme smart-log -o json`: numbers, numbers with a fraction of zero, or texts, by version and build of nvme-cli. */
export function parseSmartJson(text: string): SmartLog | undefined {
  let document: unknown;
  try {
    document = JSON.parse(withExactNumbers(text));
  } catch {
    return undefined;
  }
  if (!isRecord(document)) return undefined;
  const log = logOf(({ field }) => integerOf(document[field]));
  return Object.keys(log).length === 0 ? undefined : log;
}

/** Width of the counters that grow without an end. Smaller fields are shares, warnings and temperatures. */
const COUNTER_BYTES = 4;

/** All bits of the field, or of its lower half where a program wrote 64 bits of it. */
const hasAllOnes = (value: bigint, bytes: number): boolean => value === ALL_ONES || value === (1n << BigInt(8 * bytes)) - 1n;

function logOf(read: (field: LogField) => bigint | undefined): SmartLog {
  const log: Record<string, bigint> = {};
  for (const row of LOG_FIELDS) {
    const { field, bytes, most = (1n << BigInt(8 * bytes)) - 1n, isAbsentAtZero } = row;
    const value = read(row);
    if (value === undefined || value > most || (bytes >= COUNTER_BYTES && hasAllOnes(value, bytes))) continue;
    if (value !== 0n || isAbsentAtZero !== true) log[field] = value;
  }
  return log;
}

/** Puts quotes around the numbers, because JSON.parse rounds those beyond 2^53 and those with many decimals. */
const withExactNumbers = (text: string): string => text.replace(/:\s*(-?\d[^\s,}\]]*)/g, ':"$1"');

/** A whole number, perhaps with a fraction of zero. Newer versions write `critical_warning` as an object. */
function integerOf(value: unknown): bigint | undefined {
  if (typeof value === 'string') {
    const digits = /^(\d{1,39})(?:\.0+)?$/.exec(value.trim())?.[1];
    return digits === undefined ? undefined : BigInt(digits);
  }
  return isRecord(value) && !isRecord(value.value) ? integerOf(value.value) : undefined;
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
