import { describe, expect, it } from 'vitest';
import { OwnCounters, restoredCounter } from '../../src/accounting/own-counters.ts';
import type { Labels, Reading, Value } from '../../src/model/metric.ts';
import { Readings } from '../../src/model/readings.ts';

const BYTES = 'device_received_bytes_total';
const isCounter = (metric: string): boolean => metric === BYTES;
const reading = (value: Value, labels: Labels = { port: '1' }, more: Partial<Reading> = {}): Reading => ({
  metric: BYTES,
  labels,
  value,
  ...more,
});

/** Totals after each value, as read at the time that has the value's place. */
function totals(counters: OwnCounters, values: readonly Value[], more: Partial<Reading> = {}): unknown[] {
  return values.map((value, at) => {
    counters.take(Readings.of([reading(value, undefined, more), { metric: 'device_temperature_celsius', value: 40 }]), at, isCounter);
    return counters.readings()[0]?.value;
  });
}

/** The counters as the page has them. */
const told = (counters: OwnCounters): readonly object[] => counters.readings().map(({ last: _, ...counter }) => counter);

describe('the counters of a container', () => {
  it('start at the first read that began when the container was there', () => {
    const counters = new OwnCounters(2);
    expect(counters.awaitedFromMs).toBe(2);
    expect(totals(counters, [1_000, 1_700, 1_900, 2_000])).toEqual([undefined, undefined, 0, 100]);
    expect(counters.awaitedFromMs).toBeUndefined();
    counters.take(Readings.of([reading(2_050)]), undefined, isCounter);
    expect(told(counters), 'a base stays a base').toEqual([reading(150)]);
  });

  it('start at the first read of the source that began when the container was there', () => {
    const counters = new OwnCounters(20);
    const take = (value: Value, atMs: number, readMs?: number): Value | undefined => {
      counters.take(Readings.of([reading(value, undefined, readMs === undefined ? {} : { readMs })]), atMs, isCounter);
      return counters.readings()[0]?.value;
    };
    expect(take(1_000, 21, 0), 'what others did').toBeUndefined();
    expect(take(9_000, 30)).toBe(0);
    expect(take(9_000, 31, 29)).toBe(0);
    expect(take(9_500, 60)).toBe(500);
    counters.share();
    counters.hold(70);
    expect(take(9_500, 75, 60), 'others held it too').toBe(500);
    expect(take(20_000, 90)).toBe(500);
    expect(take(20_007, 120)).toBe(507);
  });

  it('keep counting when the readings were absent for a while', () => {
    const counters = new OwnCounters(0);
    totals(counters, [10]);
    counters.take(Readings.of([]), 1, isCounter);
    expect(totals(counters, [25])).toEqual([15]);
  });

  it('count each series for itself, from when it can be read', () => {
    const counters = new OwnCounters(0);
    counters.take(Readings.of([reading(100)]), 1, isCounter);
    counters.take(Readings.of([reading(107), reading(50, { port: '2' })]), 2, isCounter);
    counters.take(Readings.of([reading(107), reading(53, { port: '2' })]), 3, isCounter);
    expect(told(counters)).toEqual([reading(7), reading(3, { port: '2' })]);
  });

  it('keep their totals while others hold the device, and need another base after it', () => {
    const counters = new OwnCounters(0);
    totals(counters, [10, 15]);
    counters.share();
    expect(counters.awaitedFromMs, 'no read helps').toBeUndefined();
    counters.take(Readings.of([reading(90)]), 5, isCounter);
    expect(counters.readings()).toEqual([reading(5)]);
    counters.hold(7);
    counters.hold(9);
    expect(counters.awaitedFromMs).toBe(7);
    counters.take(Readings.of([reading(95)]), 6, isCounter);
    counters.take(Readings.of([reading(96)]), 7, isCounter);
    counters.take(Readings.of([reading(99)]), 8, isCounter);
    expect(told(counters)).toEqual([reading(8)]);
  });

  it('have another base of the same readings after others held the device', () => {
    const counters = new OwnCounters(0);
    const same = Readings.of([reading(90)]);
    counters.take(same, 1, isCounter);
    counters.share();
    counters.hold(1);
    counters.take(same, 1, isCounter);
    counters.take(Readings.of([reading(97)]), 5, isCounter);
    expect(told(counters)).toEqual([reading(7)]);
  });

  it('go on over a reset of the hardware', () => {
    expect(totals(new OwnCounters(0), [100, 160, 10, 30])).toEqual([0, 60, 70, 90]);
  });

  it('go on over the wrap of a counter of known width, which loses no count', () => {
    const last = 2 ** 32 - 1;
    const wraps = { wrapsAt: 2 ** 32 };
    expect(totals(new OwnCounters(0), [last - 4, last, 0, 1], wraps)).toEqual([0, 4, 5, 6]);
    expect(totals(new OwnCounters(0), [last, 7], { wrapsAt: 2 ** 32 })).toEqual([0, 8]);
    expect(totals(new OwnCounters(0), [70, 3], wraps), 'a reset, because no counter moves so far in a read').toEqual([0, 3]);
    expect(totals(new OwnCounters(0), [last, 7]), 'a reset, because nobody says how wide it is').toEqual([0, 7]);
  });

  it('lose no digit beyond 2^53', () => {
    const start = 2n ** 60n;
    expect(totals(new OwnCounters(0), [start, start + 3n, start + 2n ** 55n + 1n])).toEqual([0, 3, 2n ** 55n + 1n]);
    const safe = Number.MAX_SAFE_INTEGER;
    expect(totals(new OwnCounters(0), [safe, BigInt(safe) + 10n])).toEqual([0, 10]);
  });

  it('go on in the next run of the agent', () => {
    const counters = new OwnCounters(0);
    totals(counters, [2n ** 60n, 2n ** 60n + 5n]);
    const saved = JSON.parse(
      JSON.stringify(counters.readings(), (_, value) => (typeof value === 'bigint' ? String(value) : value)),
    ).flatMap(restoredCounter);
    const next = OwnCounters.restored(saved);
    next.hold(0);
    expect(next.awaitedFromMs).toBeUndefined();
    expect(totals(next, [2n ** 60n + 9n])).toEqual([9]);
  });
});
