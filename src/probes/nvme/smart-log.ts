import { ALL_ONES } from '../kit/text.ts';

/** Bytes of the log. NVM Express Base Specification, SMART / Health Information (Log Identifier 02h). */
export const SMART_LOG_BYTES = 512;

/** Place of one unsigned little-endian integer in the log. The names are those of nvme-cli's JSON. */
interface LogField {
  readonly offset: number;
  readonly bytes: number;
  /** A larger value is no value. */
  readonly most?: bigint;
  /** Zero means that the drive does not measure it. */
  readonly isAbsentAtZero?: true;
}

/** Temperatures in kelvin. A temperature of 0 K is not measured, and no drive works at 200 °C. */
const KELVIN = { bytes: 2, isAbsentAtZero: true, most: 473n } as const;

export const LOG_FIELDS = {
  critical_warning: { offset: 0, bytes: 1 },
  temperature: { offset: 1, ...KELVIN },
  avail_spare: { offset: 3, bytes: 1, most: 100n },
  spare_thresh: { offset: 4, bytes: 1, most: 100n },
  percent_used: { offset: 5, bytes: 1 },
  data_units_read: { offset: 32, bytes: 16 },
  data_units_written: { offset: 48, bytes: 16 },
  host_read_commands: { offset: 64, bytes: 16 },
  host_write_commands: { offset: 80, bytes: 16 },
  controller_busy_time: { offset: 96, bytes: 16 },
  power_cycles: { offset: 112, bytes: 16 },
  power_on_hours: { offset: 128, bytes: 16 },
  unsafe_shutdowns: { offset: 144, bytes: 16 },
  media_errors: { offset: 160, bytes: 16 },
  num_err_log_entries: { offset: 176, bytes: 16 },
  warning_temp_time: { offset: 192, bytes: 4 },
  critical_comp_time: { offset: 196, bytes: 4 },
  temperature_sensor_1: { offset: 200, ...KELVIN },
  temperature_sensor_2: { offset: 202, ...KELVIN },
  temperature_sensor_3: { offset: 204, ...KELVIN },
  temperature_sensor_4: { offset: 206, ...KELVIN },
  temperature_sensor_5: { offset: 208, ...KELVIN },
  temperature_sensor_6: { offset: 210, ...KELVIN },
  temperature_sensor_7: { offset: 212, ...KELVIN },
  temperature_sensor_8: { offset: 214, ...KELVIN },
  thm_temp1_trans_count: { offset: 216, bytes: 4 },
  thm_temp2_trans_count: { offset: 220, bytes: 4 },
  thm_temp1_total_time: { offset: 224, bytes: 4 },
  thm_temp2_total_time: { offset: 228, bytes: 4 },
} as const satisfies Readonly<Record<string, LogField>>;

export type LogFieldName = keyof typeof LOG_FIELDS;
/** Raw values of one log, in the units of the specification. A value that the drive does not have is absent. */
export type SmartLog = Readonly<Partial<Record<LogFieldName, bigint>>>;

const FIELDS = Object.entries(LOG_FIELDS) as readonly (readonly [LogFieldName, LogField])[];

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
  const log = logOf((_field, name) => integerOf(document[name]));
  return Object.keys(log).length === 0 ? undefined : log;
}

/** Width of the counters that grow without an end. Smaller fields are shares, warnings and temperatures. */
const COUNTER_BYTES = 4;

/** All bits of the field, or of its lower half where a program wrote 64 bits of it. */
const hasAllOnes = (value: bigint, bytes: number): boolean => value === ALL_ONES || value === (1n << BigInt(8 * bytes)) - 1n;

function logOf(read: (field: LogField, name: LogFieldName) => bigint | undefined): SmartLog {
  const log: Partial<Record<LogFieldName, bigint>> = {};
  for (const [name, field] of FIELDS) {
    const value = read(field, name);
    if (value === undefined || value > (field.most ?? (1n << BigInt(8 * field.bytes)) - 1n)) continue;
    if (field.bytes >= COUNTER_BYTES && hasAllOnes(value, field.bytes)) continue;
    if (value !== 0n || field.isAbsentAtZero !== true) log[name] = value;
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
