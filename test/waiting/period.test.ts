import { describe, expect, it } from 'vitest';
import { periodOf } from '../../src/waiting/detector.ts';
import { seededRandom } from '../support/seeded.ts';

const values = (count: number, of: (at: number) => number): number[] => Array.from({ length: count }, (_, at) => of(at));
const pulse = (period: number) => (at: number) => (at % period < period / 4 ? 100 : 10);

describe('the period of values', () => {
  it('is the length of equal phases, also between two values', () => {
    expect(periodOf(values(200, pulse(12)))).toBeCloseTo(12, 0);
    expect(periodOf(values(400, (at) => 50 + 40 * Math.sin((2 * Math.PI * at) / 7.4)))).toBeCloseTo(7.4, 0);
  });

  it('is the shortest one, not a multiple', () => {
    expect(periodOf(values(600, pulse(5)))).toBeCloseTo(5, 0);
  });

  it('survives noise', () => {
    const random = seededRandom(3);
    expect(periodOf(values(300, (at) => pulse(15)(at) + 60 * random()))).toBeCloseTo(15, 0);
  });

  it('is absent in noise, trends, single bursts, equal values and nothing', () => {
    for (let seed = 1; seed <= 50; seed += 1) {
      const random = seededRandom(seed);
      expect(periodOf(values(600, () => random()))).toBeUndefined();
      expect(periodOf(values(60, () => random()))).toBeUndefined();
    }
    expect(periodOf(values(600, (at) => at))).toBeUndefined();
    expect(periodOf(values(600, (at) => (at === 300 ? 1e9 : 1)))).toBeUndefined();
    expect(periodOf(values(600, () => 7))).toBeUndefined();
    expect(periodOf(values(600, () => 0))).toBeUndefined();
    expect(periodOf([])).toBeUndefined();
  });

  it('is absent while fewer than four periods were seen', () => {
    expect(periodOf(values(110, pulse(30)))).toBeUndefined();
    expect(periodOf(values(130, pulse(30)))).toBeCloseTo(30, 0);
  });
});
