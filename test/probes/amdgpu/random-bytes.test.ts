import { describe, expect, it } from 'vitest';
import type { MetricSpec } from '../../../src/model/metric.ts';
import { identityOf, parseProperties } from '../../../src/probes/amdgpu/discover.ts';
import { parseDrmClient } from '../../../src/probes/amdgpu/processes.ts';
import { parseAcaCount, parseBadPages, parseErrorCount, parseEventState } from '../../../src/probes/amdgpu/ras.ts';
import { decodeGpuMetrics, decodeXcpMetrics, type Sample } from '../../../src/probes/amdgpu/table.ts';
import { ATTRIBUTES, GPU_METRICS, XCP_METRICS } from '../../../src/probes/amdgpu/table-layouts.ts';
import { parseCount, parsePercent } from '../../../src/probes/kit/text.ts';
import { type Choose, mutatedText, seeded } from '../../support/seeded.ts';

const MUTATIONS = 10_000;

const fields = [...Object.values(GPU_METRICS), ...Object.values(XCP_METRICS)].flatMap((layout) => [
  ...layout.fields,
  ...(layout.partitions?.fields ?? []),
]);

/** Scales that a metric may have in any table. */
const scales = new Map<MetricSpec, ReadonlySet<number>>();
const described = Object.values(ATTRIBUTES).map(([metric, , scale = 1]) => ({ metric, scale }));
for (const { metric, scale } of [...fields, ...described]) scales.set(metric, new Set([...(scales.get(metric) ?? []), scale]));

/** All integers that stand anywhere in the bytes. */
function integersIn(bytes: Buffer): ReadonlySet<number | bigint> {
  const found = new Set<number | bigint>();
  for (let at = 0; at < bytes.length; at += 1) {
    found.add(bytes.readUInt8(at));
    if (at + 2 <= bytes.length) found.add(bytes.readUInt16LE(at));
    if (at + 4 <= bytes.length) found.add(bytes.readUInt32LE(at)).add(bytes.readInt32LE(at));
    if (at + 2 <= bytes.length) found.add(bytes.readInt16LE(at)).add(bytes.readInt8(at));
    if (at + 8 > bytes.length) continue;
    const wide = bytes.readBigUInt64LE(at);
    found.add(wide <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(wide) : wide);
    found.add(BigInt.asIntN(64, wide));
  }
  return found;
}

/** Whether one of the integers, with one of the scales of its metric, is the value. */
function isHeld({ metric, value }: Sample, integers: ReadonlySet<number | bigint>): boolean {
  return [...(scales.get(metric) ?? [])].some((scale) => {
    if (integers.has(value) && scale === 1) return true;
    if (typeof value === 'bigint')
      return value % BigInt(scale) === 0n && (integers.has(value / BigInt(scale)) || integers.has(Number(value / BigInt(scale))));
    const raw = Math.round(value / scale);
    // A fraction of an integer beyond 2^53 is rounded, as any number is.
    return (
      integers.has(raw) || (raw > Number.MAX_SAFE_INTEGER && [...integers].some((integer) => Math.abs(Number(integer) / raw - 1) < 1e-9))
    );
  });
}

function mutated(bytes: Buffer, random: Choose): Buffer {
  const copy = Buffer.from(bytes);
  // The header stays in most cases, because another version is refused at once.
  const first = random(4) === 0 ? 0 : 4;
  for (let n = random(12); n >= 0; n -= 1)
    copy[first + random(Math.max(copy.length - first, 1))] = [0, 0xff, random(256)][random(3)] as number;
  return random(20) === 0 ? copy.subarray(0, random(copy.length + 1)) : copy;
}

describe('random bytes', () => {
  it(`in binary tables give no value that the bytes do not hold (${MUTATIONS} mutations)`, () => {
    const random = seeded(22);
    const seeds = [
      ...Object.entries(GPU_METRICS).map(([version, { size }]) => ({ version, size, decode: decodeGpuMetrics })),
      ...Object.entries(XCP_METRICS).map(([version, { size }]) => ({ version, size, decode: decodeXcpMetrics })),
      { version: '1.9', size: 200, decode: decodeGpuMetrics },
    ].map(({ version, size, decode }) => {
      const bytes = Buffer.from(Array.from({ length: size }, () => random(256)));
      const [format, content] = version.split('.').map(Number);
      bytes.writeUInt16LE(size, 0);
      bytes.writeUInt8(format as number, 2);
      bytes.writeUInt8(content as number, 3);
      if (version === '1.9') describeItself(bytes);
      return { bytes, decode };
    });
    let decoded = 0;
    let judged = 0;
    for (let n = 0; n < MUTATIONS; n += 1) {
      const { bytes, decode } = seeds[random(seeds.length)] as (typeof seeds)[number];
      const broken = mutated(bytes, random);
      const { table, problem } = decode(broken);
      expect((table === undefined) !== (problem === undefined)).toBe(true);
      if (table === undefined) continue;
      decoded += 1;
      // All integers of a table are many, so only some of the tables are compared, and fewer of the large ones.
      if (n % (broken.length > 500 ? 100 : 8) !== 0) continue;
      const integers = integersIn(broken);
      for (const sample of [...table.samples, ...table.partitions.flat()]) {
        judged += 1;
        if (!isHeld(sample, integers)) expect.fail(`mutation ${n}: ${JSON.stringify({ ...sample, value: String(sample.value) })}`);
      }
    }
    expect(decoded).toBeGreaterThan(MUTATIONS / 2);
    expect(judged).toBeGreaterThan(MUTATIONS / 2);
  });

  const TEXTS: Readonly<Record<string, readonly [string, (text: string) => unknown]>> = {
    'error counts': ['ue: 12\nce: 345\nde: 6\n', parseErrorCount],
    'error counts of ACA': ['ue: 12\nce: 345\nde: 12\n', parseAcaCount],
    events: ['current seqno: 3\nFatal Error: count:71, last_seqno:2\nPoison Creation: count:83, last_seqno:2\n', parseEventState],
    'KFD properties': [
      'simd_count 152\nlocation_id 1280\ndomain 1\ndrm_render_minor 128\nunique_id 16404946649897475633\nnum_xcc 1\n',
      propertiesOf,
    ],
    count: ['668274688\n', parseCount],
  };

  it.each(Object.entries(TEXTS))(`in %s give no number that the text does not hold (${MUTATIONS} mutations)`, (_name, [text, parse]) => {
    const random = seeded(7);
    for (let n = 0; n < MUTATIONS; n += 1) {
      const broken = mutatedText(text, random);
      for (const number of numbersOf(parse(broken))) expect(broken, `mutation ${n}`).toContain(String(number));
    }
  });

  it(`in percentages, lists of bad pages and fdinfo give no impossible value (${MUTATIONS} mutations of each)`, () => {
    const random = seeded(3);
    const pages = '0x00000001 : 0x00001000 : R\n0x00000002 : 0x00001000 : P\n0x00000003 : 0x00001000 : F\n';
    const client =
      'drm-driver:\tamdgpu\ndrm-pdev:\t0000:08:00.0\ndrm-client-id:\t217\ndrm-memory-vram:\t2068 KiB\ndrm-engine-gfx:\t107322799 ns\n';
    for (let n = 0; n < MUTATIONS; n += 1) {
      const share = parsePercent(mutatedText('37\n', random));
      if (share !== undefined) expect(share >= 0 && share <= 1).toBe(true);
      const list = mutatedText(pages, random);
      const bad = parseBadPages(Buffer.from(list));
      if (bad !== undefined) expect(bad.retired + bad.pending + bad.failed).toBeLessThanOrEqual(list.split('\n').length);
      const broken = mutatedText(client, random);
      const parsed = parseDrmClient(broken);
      if (parsed?.memoryBytes !== undefined) {
        const held = [1, 1_024, 1_048_576, 1_073_741_824].some((unit) => broken.includes(String((parsed.memoryBytes as number) / unit)));
        expect(held, broken).toBe(true);
      }
      for (const { busy } of parsed?.engines.values() ?? []) expect(broken).toMatch(new RegExp(`0*${busy}`));
    }
  });
});

/** Fills a table with attributes of known and unknown ids. */
function describeItself(bytes: Buffer): void {
  let at = 8;
  let count = 0;
  for (const [id, type, width] of [
    [0, 2, 2],
    [7, 6, 8],
    [33, 2, 2],
    [400, 4, 4],
    [29, 6, 8],
    [4, 3, 2],
    [3, 5, 4],
  ] as const) {
    bytes.writeUInt32LE((type << 20) | (id << 10) | 2, at);
    bytes.writeUInt32LE(0, at + 4);
    at += 8 + 2 * width;
    count += 1;
  }
  bytes.writeUInt32LE(count, 4);
}

/** Numbers of a topology node that the text must hold as they are. */
function propertiesOf(text: string): unknown {
  const { renderMinor, dies } = identityOf(parseProperties(text)) ?? {};
  return { renderMinor, dies };
}

function numbersOf(value: unknown): readonly (number | bigint)[] {
  if (typeof value === 'number' || typeof value === 'bigint') return [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap(numbersOf);
}
