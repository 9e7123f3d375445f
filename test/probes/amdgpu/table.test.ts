import { describe, expect, it } from 'vitest';
import type { MetricSpec } from '../../../src/model/metric.ts';
import { metrics } from '../../../src/probes/amdgpu/metrics.ts';
import { decodeGpuMetrics, decodeXcpMetrics, type Sample } from '../../../src/probes/amdgpu/table.ts';
import { GPU_METRICS, type Layout, XCP_METRICS } from '../../../src/probes/amdgpu/table-layouts.ts';

/** A table of a version: all ones but for the given integers, `[offset, bytes, value]`. */
function tableOf(version: string, size: number, ...integers: readonly (readonly [number, 2 | 4 | 8, number | bigint])[]): Buffer {
  const bytes = Buffer.alloc(size, 0xff);
  const [format, content] = version.split('.').map(Number);
  bytes.writeUInt16LE(size, 0);
  bytes.writeUInt8(format as number, 2);
  bytes.writeUInt8(content as number, 3);
  for (const [offset, width, value] of integers) {
    if (width === 8) bytes.writeBigUInt64LE(BigInt(value), offset);
    else bytes.writeUIntLE(Number(value), offset, width);
  }
  return bytes;
}

/** Bytes of an integer, by the number of its type. */
const WIDTHS: Readonly<Record<number, number>> = { 2: 2, 4: 4, 6: 8 };

/** Name of a metric in the declaration. */
const nameOf = (metric: MetricSpec): string => Object.entries(metrics).find(([, each]) => each === metric)?.[0] ?? '';

const valuesOf = (samples: readonly Sample[] = []): Readonly<Record<string, number | bigint>> =>
  Object.fromEntries(samples.map(({ metric, name, index, value }) => [`${nameOf(metric)} ${name}${index ?? ''}`.trim(), value]));

const gpu = (...table: Parameters<typeof tableOf>) => valuesOf(decodeGpuMetrics(tableOf(...table)).table?.samples);

describe('the layouts', () => {
  const all: readonly (readonly [string, Layout])[] = [
    ...Object.entries(GPU_METRICS).map(([version, layout]) => [`gpu_metrics ${version}`, layout] as const),
    ...Object.entries(XCP_METRICS).map(([version, layout]) => [`xcp_metrics ${version}`, layout] as const),
  ];

  it.each(all)('of %s have aligned fields inside the table that do not overlap', (_name, { size, fields, partitions }) => {
    const judge = (end: number, list: Layout['fields'], isNatural: boolean): void => {
      const taken = new Set<number>([0, 1, 2, 3]);
      if (!isNatural) taken.clear();
      for (const { type, offset, count = 1, metric, name } of list) {
        const width = WIDTHS[type] as number;
        expect(offset % width, `${metric.name} ${name} is aligned`).toBe(0);
        for (let at = offset; at < offset + width * count; at += 1) {
          expect(taken.has(at), `${metric.name} ${name} at ${at} overlaps`).toBe(false);
          taken.add(at);
          expect(at, `${metric.name} ${name} lies inside`).toBeLessThan(end);
        }
      }
    };
    judge(size, fields, true);
    if (partitions === undefined) return;
    expect(partitions.offset % 8).toBe(0);
    expect(partitions.offset + partitions.count * partitions.size).toBeLessThanOrEqual(size);
    judge(partitions.size, partitions.fields, false);
  });

  it.each(all)('of %s give no value for a table of all ones', (name, { size }) => {
    const [kind, version = ''] = name.split(' ');
    const { table } = (kind === 'gpu_metrics' ? decodeGpuMetrics : decodeXcpMetrics)(tableOf(version, size));
    expect(table?.samples).toEqual([]);
  });
});

describe('gpu_metrics', () => {
  it('of version 1.3 has °C, watts, percent and MHz', () => {
    expect(gpu('1.3', 120, [6, 2, 73], [16, 2, 100], [22, 2, 178], [54, 2, 3_018], [106, 2, 894])).toEqual({
      'temperature junction': 73,
      'utilization gpu': 1,
      'power gpu': 178,
      'clock graphics': 3_018_000_000,
      'voltage vddgfx': 0.894,
    });
  });

  it('of versions 1.4 and 1.5 has the energy and the links at different places', () => {
    expect(gpu('1.4', 288, [24, 8, 1_000_000], [104, 8, 7], [280, 2, 1_300])).toEqual({
      energy: 15.259,
      'receivedBytes xgmi0': 7_168,
      'clock memory': 1_300_000_000,
    });
    expect(gpu('1.5', 360, [88, 8, 1_000_000], [176, 8, 7], [172, 4, 3], [352, 2, 1_300])).toEqual({
      energy: 15.259,
      'receivedBytes xgmi0': 7_168,
      'pcieEvents nak_received': 3,
      'clock memory': 1_300_000_000,
    });
  });

  it('of version 1.6 and later counts residencies, and gives statistics for the announced partitions only', () => {
    const { table } = decodeGpuMetrics(
      tableOf('1.6', 1_664, [32, 4, 900], [36, 4, 1], [40, 4, 2], [52, 4, 5], [306, 2, 2], [312, 4, 70], [480, 4, 30], [648, 4, 99]),
    );
    expect(valuesOf(table?.samples)).toEqual({
      firmwareSamples: 900,
      'throttleResidency prochot': 1,
      'throttleResidency power': 2,
      'throttleResidency hbm_thermal': 5,
    });
    expect(table?.partitions.map(valuesOf)).toEqual([{ 'utilization gpu0': 0.7 }, { 'utilization gpu0': 0.3 }]);
    expect(decodeGpuMetrics(tableOf('1.6', 1_664, [306, 2, 9])).table?.partitions, 'more than there is room for').toEqual([]);
  });

  it('keeps all digits of counters beyond 2^53', () => {
    expect(gpu('1.7', 2_208, [144, 8, 2n ** 60n - 1n])['receivedBytes xgmi1']).toBe((2n ** 60n - 1n) * 1_024n);
  });

  it('has no value for zeros that mean "not measured"', () => {
    expect(gpu('1.3', 120, [8, 2, 0], [10, 2, 0], [24, 8, 0], [88, 2, 0], [104, 2, 0], [72, 2, 0])).toEqual({ 'fanSpeed 0': 0 });
  });

  it.each([
    ['an empty file', Buffer.alloc(0), 'metrics-garbage'],
    ['half a table', tableOf('1.3', 120).subarray(0, 60), 'metrics-garbage'],
    ['a size of another version', tableOf('1.2', 120), 'metrics-garbage'],
    ['a version that does not exist', tableOf('1.42', 120), 'metrics-version'],
    ['version 1.0, which is not aligned', tableOf('1.0', 80), 'metrics-version'],
    ['a name of the prototype of objects', tableOf('9.9', 80), 'metrics-version'],
    ['a file of all ones', Buffer.alloc(120, 0xff), 'metrics-garbage'],
  ])('is refused as %s', (_name, bytes, code) => {
    const { table, problem } = decodeGpuMetrics(bytes);
    expect([table, problem?.code]).toEqual([undefined, code]);
  });
});

/** A table that describes itself, from attributes `[code bits, bytes of the values]`. */
function described(
  count: number,
  ...attributes: readonly (readonly [id: number, type: number, instances: number, values: Buffer])[]
): Buffer {
  const parts = attributes.map(([id, type, instances, values]) => {
    const code = Buffer.alloc(8);
    code.writeUInt32LE((type << 20) | (id << 10) | instances, 0);
    return Buffer.concat([code, values]);
  });
  const body = Buffer.concat(parts);
  const header = Buffer.alloc(8);
  header.writeUInt16LE(8 + body.length, 0);
  header.writeUInt8(1, 2);
  header.writeUInt8(9, 3);
  header.writeUInt32LE(count, 4);
  return Buffer.concat([header, body]);
}

const u16 = (...values: readonly number[]): Buffer => Buffer.from(values.flatMap((value) => [value & 0xff, value >> 8]));

describe('a table that describes itself', () => {
  it('skips attributes that are not known and keeps the ones behind them', () => {
    const { table } = decodeGpuMetrics(described(3, [0, 2, 1, u16(67)], [900, 2, 3, u16(1, 2, 3)], [33, 2, 2, u16(2_100, 2_050)]));
    expect(valuesOf(table?.samples)).toEqual({
      'temperature junction': 67,
      'clock graphics0': 2_100_000_000,
      'clock graphics1': 2_050_000_000,
    });
  });

  it('is refused when it ends within an attribute, announces too many, or has an unknown type', () => {
    for (const bytes of [described(2, [0, 2, 1, u16(67)]), described(5_000, [0, 2, 1, u16(67)]), described(1, [0, 9, 1, u16(67)])])
      expect(decodeGpuMetrics(bytes).problem?.code).toBe('metrics-garbage');
  });
});
