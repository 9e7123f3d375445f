import { describe, expect, it } from 'vitest';
import { joinReadings } from '../../src/model/joined-readings.ts';
import type { Reading } from '../../src/model/metric.ts';
import { Readings } from '../../src/model/readings.ts';

const port = { port: '1' };
const list = (...values: (number | bigint)[]): Reading[] =>
  values.map((value, place) => (place === 0 ? { metric: 'bare', value } : { metric: `m${place}`, labels: port, value }));

describe('readings', () => {
  it('give back what they were made of, one by one and all together', () => {
    const given = list(1, 2.5, 2n ** 63n);
    const readings = Readings.of(given);
    expect([...readings]).toEqual(given);
    expect(readings.map(({ value }) => value)).toEqual([1, 2.5, 2n ** 63n]);
    expect(readings.filter(({ labels }) => labels === port)).toEqual(given.slice(1));
    expect(readings.find(({ metric }) => metric === 'm2')).toEqual(given[2]);
    expect(readings.find(({ metric }) => metric === 'none')).toBeUndefined();
    expect([readings.length, readings.at(0), readings.at(3)]).toEqual([3, given[0], undefined]);
  });

  it('share their series with those before, as long as these are the same in the same order', () => {
    const before = Readings.of(list(1, 2, 3));
    expect(Readings.of(list(4, 5, 6), before).series).toBe(before.series);
    expect(Readings.of(list(4, 5), before).series).toHaveLength(2);
    const relabelled = list(4, 5, 6).map((reading) => ({ ...reading, ...(reading.labels && { labels: { port: '2' } }) }));
    expect(Readings.of(relabelled, before).series).not.toBe(before.series);
    expect(Readings.of(list(4, 5, 6).toReversed(), before).series.map(({ metric }) => metric)).toEqual(['m2', 'm1', 'bare']);
  });

  it('joined from parts take over what did not change, and change nothing that was handed out', () => {
    const [a, b, none] = [Readings.of(list(1, 2)), Readings.of(list(3, 2n ** 60n)), Readings.NONE];
    const first = joinReadings([a, none, b]);
    expect(first.whole.values).toEqual([1, 2, 3, 2n ** 60n]);
    expect(joinReadings([a, none, b], first)).toBe(first);
    const moved = joinReadings([a, none, new Readings(b.series, [9, 8])], first);
    expect(moved.whole.values).toEqual([1, 2, 9, 8]);
    expect(moved.whole.series).toBe(first.whole.series);
    expect(first.whole.values).toEqual([1, 2, 3, 2n ** 60n]);
    const longer = joinReadings([a, Readings.of(list(7)), b], moved);
    expect([...longer.whole]).toEqual([...a, ...list(7), ...b]);
  });
});
