import { describe, expect, it } from 'vitest';
import { roomFor, writeValue } from '../../src/metrics/number-text.ts';
import type { Value } from '../../src/model/metric.ts';
import { seeded } from '../support/seeded.ts';

function written(value: Value): string {
  const target = Buffer.alloc(roomFor(value) + 3, '.');
  // What has no room gets lost.
  const end = writeValue(target.subarray(0, 1 + roomFor(value)), 1, value);
  expect(target.subarray(end).toString(), `after ${value}`).toBe('.'.repeat(target.length - end));
  return target.subarray(1, end).toString();
}

describe('the text of a value', () => {
  it('is that of String where digits begin and end, and where numbers stop being exact', () => {
    const powers = Array.from({ length: 22 }, (_, n) => 10 ** n);
    const twos = Array.from({ length: 64 }, (_, n) => 2 ** n);
    for (const near of [...powers, ...twos]) {
      for (const value of [near - 2, near - 1, near, near + 1, near + 2]) {
        for (const one of [value, -value]) expect(written(one)).toBe(String(one));
      }
    }
    for (let high = 1; high < 9e8; high = Math.ceil(high * 1.7)) {
      for (const value of [high * 1e7 - 1, high * 1e7, high * 1e7 + 1]) expect(written(value)).toBe(String(value));
    }
    const others = [
      0,
      -0,
      0.1,
      -0.5,
      1 / 3,
      1e-7,
      5e-324,
      1.7976931348623157e308,
      -1.2345678901234568e-300,
      -0.0000012345678901234567,
      -123456789012345680000,
      2n ** 64n - 1n,
      -7n,
      10n ** 30n,
    ];
    for (const value of others) expect(written(value)).toBe(String(value));
  });

  it('is that of String for any integer and fraction', () => {
    const pick = seeded(11);
    for (let turn = 0; turn < 20_000; turn += 1) {
      const integer = (pick(2 ** 24) * 2 ** 29 + pick(2 ** 24) * 32 + pick(32)) % 2 ** (1 + pick(53));
      expect(written(integer)).toBe(String(integer));
      const fraction = integer / 8 ** (1 + pick(20));
      expect(written(fraction)).toBe(String(fraction));
    }
  });
});
