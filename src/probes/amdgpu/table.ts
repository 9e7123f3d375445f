import type { Value } from '../../model/metric.ts';
import { isCount, scaled } from '../kit/text.ts';
import { metrics } from './metrics.ts';
import { ATTRIBUTES, type Field, GPU_METRICS, type Layout, PARTITION_COUNT_AT, WIDTHS, XCP_METRICS } from './table-layouts.ts';

/** One value of a table, in the unit of its metric. */
export interface Sample extends Pick<Field, 'metric' | 'name'> {
  /** Position in an array; absent for a single value. */
  readonly index?: number;
  readonly value: Value;
}

/** Content of a binary table without the values that the chip does not have. */
export interface Table {
  /** `1.3`: format and content revision of the header. */
  readonly version: string;
  readonly samples: readonly Sample[];
  /** Samples of each partition in use, in the order of their numbers; empty for tables without them. */
  readonly partitions: readonly (readonly Sample[])[];
}

/** A table that cannot be decoded. `message` has no address and does not change while the cause stays. */
export interface TableProblem {
  readonly code: 'metrics-version' | 'metrics-garbage';
  readonly message: string;
}

export type TableResult =
  | { readonly table: Table; readonly problem?: undefined }
  | { readonly table?: undefined; readonly problem: TableProblem };

const HEADER = 4;

/** Largest table that is read. The largest known version has 3,872 bytes, and newer ones are allowed to outgrow a page. */
export const TABLE_LIMIT = 16_384;

/** Decodes `gpu_metrics`. The size in the header counts, because some tools pad the file. */
export function decodeGpuMetrics(bytes: Buffer): TableResult {
  return decode(bytes, GPU_METRICS, '1.9');
}

/** Decodes `xcp_metrics`, the table of one partition. */
export function decodeXcpMetrics(bytes: Buffer): TableResult {
  return decode(bytes, XCP_METRICS, '1.1');
}

function decode(bytes: Buffer, layouts: Readonly<Record<string, Layout>>, selfDescribing: string): TableResult {
  if (bytes.length < HEADER) return garbage(`${bytes.length} bytes, a header has ${HEADER}`);
  if (bytes.readUInt32LE(0) === 0xffff_ffff) return garbage('every bit of the header is one: the firmware does not answer');
  const size = bytes.readUInt16LE(0);
  const version = `${bytes.readUInt8(2)}.${bytes.readUInt8(3)}`;
  if (version === selfDescribing) {
    if (size < 2 * HEADER || size > bytes.length) return garbage(`version ${version}: the header gives another size than the file has`);
    return described(bytes.subarray(0, size), version);
  }
  const layout = Object.hasOwn(layouts, version) ? layouts[version] : undefined;
  if (layout === undefined) return { problem: { code: 'metrics-version', message: `version ${version} is not known` } };
  if (size !== layout.size || bytes.length < size) {
    return garbage(
      `version ${version} has ${layout.size} bytes; the header tells ${size}, the file has ${bytes.length < size ? 'fewer' : 'them'}`,
    );
  }
  const samples = fieldsAt(bytes, 0, layout.fields);
  return { table: { version, samples: samples.filter(isReal), partitions: partitionsOf(bytes, version, layout) } };
}

const garbage = (message: string): TableResult => ({ problem: { code: 'metrics-garbage', message } });

function partitionsOf(bytes: Buffer, version: string, { partitions }: Layout): readonly (readonly Sample[])[] {
  const countAt = PARTITION_COUNT_AT[version];
  if (partitions === undefined || countAt === undefined) return [];
  const told = bytes.readUInt16LE(countAt);
  const count = told > partitions.count ? 0 : told;
  return Array.from({ length: count }, (_, n) => fieldsAt(bytes, partitions.offset + n * partitions.size, partitions.fields));
}

function fieldsAt(bytes: Buffer, start: number, fields: readonly Field[]): Sample[] {
  const samples: Sample[] = [];
  for (const { metric, name, type, offset, scale, count } of fields) {
    const width = WIDTHS[type] as number;
    for (let index = 0; index < (count ?? 1); index += 1) {
      const raw = integerAt(bytes, start + offset + index * width, type);
      if (raw === undefined) continue;
      const value = scaled(raw, scale);
      samples.push(count === undefined ? { metric, name, value } : { metric, name, index, value });
    }
  }
  return samples;
}

/** Zero of these fields means that the chip does not measure them: energy of RDNA 3 and 4, power on Strix Point, sensors that are not wired. */
function isReal({ metric, name, value }: Sample): boolean {
  if (value !== 0) return true;
  const { energy, power, voltage, temperature } = metrics;
  return metric === temperature ? !/^(?:vr_|hbm|memory)/.test(name) : metric !== energy && metric !== power && metric !== voltage;
}

/** Largest number of attributes that a table may announce. The newest known tables have about 80. */
const MOST_ATTRIBUTES = 1_024;

/**
 * Decodes a table that describes itself: a count, then attributes. Each has a code (unit in bits 24 to 31, type in 20 to 23, id in 10 to
 * 19, number of values in 0 to 9) and then its values. Unknown attributes are skipped; their code tells their length.
 */
function described(bytes: Buffer, version: string): TableResult {
  const count = bytes.readUInt32LE(HEADER);
  if (count > MOST_ATTRIBUTES) return garbage(`version ${version} announces more than ${MOST_ATTRIBUTES} attributes`);
  const samples: Sample[] = [];
  let at = 2 * HEADER;
  for (let n = 0; n < count; n += 1) {
    if (at + 8 > bytes.length) return garbage(`version ${version} ends within its attributes`);
    const code = bytes.readUInt32LE(at);
    const type = (code >>> 20) & 0xf;
    const width = WIDTHS[type];
    const instances = code & 0x3ff;
    at += 8;
    if (width === undefined) return garbage(`version ${version} has an attribute of an unknown type`);
    if (at + width * instances > bytes.length) return garbage(`version ${version} ends within its attributes`);
    const known = ATTRIBUTES[(code >>> 10) & 0x3ff];
    for (let index = 0; known !== undefined && index < instances; index += 1) {
      const raw = integerAt(bytes, at + index * width, type);
      if (raw === undefined) continue;
      const [metric, name, scale = 1] = known;
      // What a port has is an array even when it has one value.
      const isSingle = instances === 1 && metric.labels[0] !== 'port';
      samples.push({ metric, name, ...(!isSingle && { index }), value: scaled(raw, scale) });
    }
    at += width * instances;
  }
  return { table: { version, samples: samples.filter(isReal), partitions: [] } };
}

/** Integer of a numbered type; undefined for all ones, which means that the chip does not have the value. */
function integerAt(bytes: Buffer, at: number, type: number): Value | undefined {
  const width = WIDTHS[type] as number;
  const isSigned = type % 2 === 1;
  if (width === 8) {
    const value = isSigned ? bytes.readBigInt64LE(at) : bytes.readBigUInt64LE(at);
    return value === -1n || !isCount(value) ? undefined : Number.isSafeInteger(Number(value)) ? Number(value) : value;
  }
  const value = isSigned ? bytes.readIntLE(at, width) : bytes.readUIntLE(at, width);
  return value === -1 || (!isSigned && value === 2 ** (8 * width) - 1) ? undefined : value;
}
