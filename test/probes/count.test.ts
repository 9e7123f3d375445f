import { describe, expect, it } from 'vitest';
import { parseDrmClient } from '../../src/probes/intelgpu/processes.ts';
import { countOf, parseCount as ofCard } from '../../src/probes/kit/text.ts';
import { decodeSmartLog, LOG_FIELDS, parseSmartJson, SMART_LOG_BYTES } from '../../src/probes/nvme/smart-log.ts';

const ONES = '18446744073709551615';
const BELOW = '18446744073709551614';

describe('a counter of 64 bits', () => {
  it.each([
    ['shared', countOf],
    ['of a graphics card', ofCard],
  ])('(%s) has every value but all ones', (_, parse) => {
    expect([ONES, '18446744073709551616', '-1', ''].map(parse)).toEqual([undefined, undefined, undefined, undefined]);
    expect([BELOW, '0'].map((text) => BigInt(parse(text) ?? -1))).toEqual([BigInt(BELOW), 0n]);
  });
});

describe('cycles of an engine of xe', () => {
  const client = (cycles: string, total: string) =>
    parseDrmClient(`drm-driver:\txe\ndrm-cycles-rcs:\t${cycles}\ndrm-total-cycles-rcs:\t${total}\n`)?.engines.get('render');

  it('that are all ones are no reading', () => {
    expect(client('7', '9')).toEqual({ busy: 7n, total: 9n, capacity: 1 });
    expect([client(ONES, '9'), client('7', ONES)]).toEqual([undefined, undefined]);
  });
});

describe('a counter of a SMART log', () => {
  it('whose bytes are all ones is absent, and shares and warnings of all ones are what they say', () => {
    const bytes = Buffer.alloc(SMART_LOG_BYTES);
    for (const { field, offset, bytes: width } of LOG_FIELDS) {
      if (['media_errors', 'warning_temp_time', 'percent_used'].includes(field)) bytes.fill(0xff, offset, offset + width);
      if (field === 'power_cycles') bytes.writeBigUInt64LE(BigInt(BELOW), offset);
    }
    const log = decodeSmartLog(bytes);
    expect([log?.media_errors, log?.warning_temp_time, log?.percent_used]).toEqual([undefined, undefined, 255n]);
    expect(log?.power_cycles).toBe(BigInt(BELOW));
  });

  it('that a program wrote as 64 bits of ones is absent, too', () => {
    expect(parseSmartJson(`{ "media_errors": ${ONES}, "power_cycles": ${BELOW} }`)).toEqual({ power_cycles: BigInt(BELOW) });
  });
});
