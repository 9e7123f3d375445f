import { describe, expect, it } from 'vitest';
import { ratesOf } from '../../src/board/trend.ts';
import { type DeviceHistory, MOST_SAMPLES, MOST_SERIES, ReadingHistoryStore } from '../../src/incidents/history.ts';
import type { Reading } from '../../src/model/metric.ts';
import { Readings } from '../../src/model/readings.ts';
import { state, T0 } from './scene.ts';

const specs = new Map([['device_errors_total', { type: 'counter' as const }]]);
const history = (samples: number): ReadingHistoryStore =>
  new ReadingHistoryStore({ periodMs: (samples - 1) * 10_000, intervalMs: 10_000, specs });
const heat = (value: number, sensor = 'core'): Reading => ({ metric: 'device_temperature_celsius', labels: { sensor }, value });
const at = (n: number, readings: readonly Reading[]) =>
  state({ readings: Readings.of(readings), readAtMs: T0 + n * 10_000, monotonicMs: n * 10_000 });

describe('the history of readings', () => {
  it('gives columns with the type of each metric, also for a series that never changes', () => {
    const kept = history(5);
    for (const n of [0, 1, 2]) kept.take([at(n, [heat(40 + n), { metric: 'device_errors_total', value: 7n }])]);
    expect(kept.seriesOf('toy/a')).toEqual({
      times: [T0, T0 + 10_000, T0 + 20_000],
      series: [
        { metric: 'device_temperature_celsius', labels: { sensor: 'core' }, type: 'gauge', values: [40, 41, 42] },
        { metric: 'device_errors_total', labels: {}, type: 'counter', values: [7, 7, 7] },
      ],
    });
    expect(kept.seriesOf('toy/b')).toBeUndefined();
    expect(kept.seriesOf('toy/a', T0 + 15_000)?.times).toEqual([T0 + 20_000]);
  });

  it('says null where a read had no value, and never 0', () => {
    const kept = history(6);
    kept.take([at(0, [heat(40)])]);
    kept.take([at(1, [heat(40), heat(90, 'memory')])]);
    kept.take([at(2, [heat(90, 'memory')])]);
    kept.take([at(3, [heat(40), heat(Number.NaN, 'memory')])]);
    expect(kept.seriesOf('toy/a')?.series.map(({ values }) => values)).toEqual([
      [40, 40, null, 40],
      [null, 90, 90, null],
    ]);
  });

  it('takes one sample for several snapshots of one read, and the newest values of a read that came early', () => {
    const kept = history(6);
    kept.take([at(0, [heat(40)])]);
    kept.take([at(0, [heat(40)])]);
    kept.take([at(1, [heat(41)])]);
    kept.take([at(1.3, [heat(99)])]);
    kept.take([at(2, [])]);
    kept.take([at(2, [heat(42)])]);
    expect(kept.seriesOf('toy/a')).toMatchObject({
      times: [T0, T0 + 10_000, T0 + 20_000],
      series: [{ values: [40, 41, 42] }],
    });
  });

  it('forgets the oldest samples, series without a value, and devices that are no longer listed', () => {
    const kept = history(4);
    kept.take([at(0, [heat(1), heat(1, 'gone')])]);
    for (let n = 1; n <= 9; n += 1) kept.take([at(n, [heat(n)])]);
    expect(kept.seriesOf('toy/a')).toMatchObject({ series: [{ labels: { sensor: 'core' }, values: [6, 7, 8, 9] }] });
    expect(kept.seriesOf('toy/a')?.series).toHaveLength(1);
    kept.take([]);
    expect(kept.seriesOf('toy/a')).toBeUndefined();
    expect(kept.bytes).toBe(0);
  });

  it('has bounds for series and samples', () => {
    const wide = history(3);
    wide.take([
      at(
        0,
        Array.from({ length: MOST_SERIES + 100 }, (_, n) => heat(n, String(n))),
      ),
    ]);
    expect(wide.seriesOf('toy/a')?.series).toHaveLength(MOST_SERIES);
    const long = new ReadingHistoryStore({ periodMs: 86_400_000, intervalMs: 100, specs });
    for (let n = 0; n < 1_500; n += 1) long.take([state({ readings: Readings.of([heat(n)]), readAtMs: T0 + n * 86_400 })]);
    expect(long.seriesOf('toy/a')?.times).toHaveLength(MOST_SAMPLES);
    expect(long.bytes).toBe(2 * MOST_SAMPLES * 8);
  });

  it('keeps nothing when it is off', () => {
    const off = new ReadingHistoryStore({ periodMs: 0, intervalMs: 10_000, specs });
    off.take([at(0, [heat(1)])]);
    expect(off.seriesOf('toy/a')).toBeUndefined();
  });
});

describe('the rate of a counter', () => {
  const bytes = (value: number | bigint): Reading => ({ metric: 'device_errors_total', labels: { port: '1' }, value });

  it('is the growth between the last two reads', () => {
    const kept = history(6);
    const rate = () => kept.rateOf('toy/a', 'device_errors_total', { port: '1' });
    expect(rate()).toBeUndefined();
    kept.take([at(0, [bytes(2n ** 60n)])]);
    expect(rate()).toBeUndefined();
    kept.take([at(1, [bytes(2n ** 60n + 10_240n)])]);
    expect(rate()).toBe(1_024);
    kept.take([at(2, [bytes(2n ** 60n + 10_240n)])]);
    expect(rate()).toBe(0);
    kept.take([at(3, [bytes(5)])]);
    expect(rate(), 'after a reset').toBeUndefined();
    kept.take([at(4, [bytes(15)])]);
    expect(rate()).toBe(1);
    kept.take([at(5, [heat(40)])]);
    expect(rate(), 'without a value').toBeUndefined();
    kept.take([at(6, [bytes(25)])]);
    expect(rate(), 'after a gap').toBeUndefined();
  });

  it('is that of the source where it is read at its own interval, and never 0 in between', () => {
    // A read each 50 s, at refreshes of 10 s: 5,000 a second, then 1,000, then none.
    const kept = history(40);
    const reads = [0, 250_000, 500_000, 550_000, 600_000, 600_000];
    const rates: (number | undefined)[] = [];
    for (let n = 0; n < 30; n += 1) {
      const read = Math.floor(n / 5);
      const reading = bytes(reads[read] as number);
      // A kept value has the begin of its read, which is earlier than the end by which the device's read is dated.
      kept.take([at(n, [n % 5 === 0 ? reading : { ...reading, readMs: read * 50_000 - 7 }, heat(n)])]);
      const rate = kept.rateOf('toy/a', 'device_errors_total', { port: '1' });
      rates.push(rate && Number(rate.toPrecision(3)));
    }
    const told = rates.filter((_, n) => n % 5 === 0);
    expect(told).toEqual([undefined, 5_000, 5_000, 1_000, 1_000, 0]);
    for (const [n, rate] of rates.entries()) expect(rate, `sample ${n}`).toBe(told[Math.floor(n / 5)]);
    const { times, series } = kept.seriesOf('toy/a') as DeviceHistory;
    const [ofErrors, ofHeat] = series;
    expect(ofHeat?.reads).toBeUndefined();
    const drawn = ratesOf(times, ofErrors?.values ?? [], ofErrors?.reads).map((rate) => rate && Number(rate.toPrecision(3)));
    // The growth between two reads belongs to all the time between them, and what comes after the last read is not known.
    const expected = Array.from({ length: 30 }, (_, n) => (n === 0 || n > 25 ? null : (told[Math.ceil(n / 5)] ?? null)));
    expect(drawn).toEqual(expected);
  });

  it('is none after a single read, however often its value is seen, and costs no memory while the value stays', () => {
    const kept = history(40);
    for (let n = 0; n < 20; n += 1) {
      kept.take([at(n, [n === 0 ? bytes(7) : { ...bytes(7), readMs: 0 }])]);
      expect(kept.rateOf('toy/a', 'device_errors_total', { port: '1' })).toBeUndefined();
    }
    expect(kept.bytes, 'the times of the samples alone').toBe(40 * 8);
  });

  it('is that of the two reads of which the first was never seen on its own', () => {
    const kept = history(40);
    kept.take([at(0, [bytes(100)])]);
    // The read at 20 s was lost on the way: its value comes with the next refresh.
    kept.take([at(3, [{ ...bytes(2_100), readMs: 20_000 }])]);
    expect(kept.rateOf('toy/a', 'device_errors_total', { port: '1' })).toBe(100);
  });

  it('comes with the samples of one series', () => {
    const kept = history(6);
    for (const n of [0, 1, 2]) kept.take([at(n, [bytes(n * 10), heat(40)])]);
    expect(kept.samplesOf('toy/a', 'device_errors_total', { port: '1' }, T0 + 5_000)).toEqual({
      times: [T0 + 10_000, T0 + 20_000],
      values: [10, 20],
    });
    expect(kept.samplesOf('toy/b', 'device_errors_total', {}, 0)).toEqual({ times: [], values: [] });
    expect(kept.latestMs('toy/a')).toBe(T0 + 20_000);
  });
});
