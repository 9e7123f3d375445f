import { describe, expect, it } from 'vitest';
import { isDue, Pacer } from '../../../src/probes/kit/pace.ts';

/** How often a source with this interval was read, by collections at these times. */
function reads(everyMs: number, times: readonly number[]): readonly number[] {
  const pacer = new Pacer();
  let atMs: number | undefined;
  return times.filter((nowMs) => {
    const isRead = isDue(atMs, everyMs, pacer.next(nowMs));
    if (isRead) atMs = nowMs;
    return isRead;
  });
}

/** Times of a timer that fires some milliseconds early and late by turns. */
const timer = (periodMs: number, count: number, jitterMs = 0.8): readonly number[] =>
  Array.from({ length: count }, (_, n) => n * periodMs + (n % 2 === 0 ? jitterMs : -jitterMs));

describe('an interval', () => {
  it('of three refreshes is three, also when the timer fires early', () => {
    expect(reads(30_000, timer(10_000, 10)).map((atMs) => Math.round(atMs / 10_000))).toEqual([0, 3, 6, 9]);
  });

  it('of one refresh is each of them, from the third on', () => {
    expect(reads(1_000, timer(1_000, 9)).map((atMs) => Math.round(atMs / 1_000))).toEqual([0, 2, 3, 4, 5, 6, 7, 8]);
  });

  it('between two refreshes is the nearer one', () => {
    expect(reads(14_000, timer(10_000, 6)).map((atMs) => Math.round(atMs / 10_000))).toEqual([0, 2, 3, 4, 5]);
    expect(reads(16_000, timer(10_000, 7)).map((atMs) => Math.round(atMs / 10_000))).toEqual([0, 2, 4, 6]);
  });

  it('is not shortened by a collection out of turn', () => {
    expect(reads(30_000, [0, 10_000, 20_000, 20_100, 29_000, 30_000])).toEqual([0, 30_000]);
  });

  it('of no time is each collection, also two at the same time', () => {
    expect(reads(0, [5, 5, 6])).toEqual([5, 5, 6]);
    expect(reads(1, [5, 5, 5, 5])).toEqual([5]);
  });
});
