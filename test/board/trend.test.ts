import { describe, expect, it } from 'vitest';
import { linePath } from '../../src/board/spark.ts';
import { ratesOf, TREND_POINTS, TREND_STEP_MS, trendOf } from '../../src/board/trend.ts';

describe('a trend', () => {
  it('has the mean of each span, and null where nothing was read', () => {
    const end = 10_000_000;
    const trend = trendOf([end - TREND_STEP_MS * 2, end - 20_000, end - 10_000, end - 1e9], [5, 10, 20, 99], end);
    expect(trend).toHaveLength(TREND_POINTS);
    expect(trend.slice(-3)).toEqual([5, null, 15]);
    expect(trend.filter((value) => value !== null)).toHaveLength(2);
  });

  it('has no rate over a reset, a gap, and a clock that stood still', () => {
    expect(ratesOf([0, 1_000, 2_000, 3_000, 4_000, 4_000], [0, 10, 5, null, 9, 12])).toEqual([null, 10, null, null, null, null]);
  });

  it('is the same over the whole time between two reads of the source, and unknown after the last one and around a gap', () => {
    const times = [0, 1_000, 2_000, 3_000, 4_000, 5_000, 6_000, 7_000, 8_000];
    const values = [0, 0, 0, 90, 90, null, 120, 120, 126];
    const reads = [0, 0, 0, 3_000, 3_000, 3_000, 6_000, 6_000, 8_000];
    expect(ratesOf(times, values, reads)).toEqual([null, 30, 30, 30, null, null, null, 3, 3]);
  });

  it('is drawn with gaps', () => {
    expect(linePath([0, 10, null, 10], 4, 12, 0, 10)).toBe('M0 11h1L1 1M3 1h1');
  });
});
