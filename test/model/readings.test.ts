import { describe, expect, it } from 'vitest';
import { areSameLabels } from '../../src/model/metric.ts';
import { chooser, joinedReadings, ofMetric, Readings, type Series, seriesValue } from '../../src/model/readings.ts';
import { seeded } from '../support/seeded.ts';

const METRICS = ['a', 'b', 'c', 'd'];

/** Readings of series that stay or change, with values that stay or change, as a receiver makes them. */
function* reads(seed: number): Generator<Readings> {
  const pick = seeded(seed);
  let series: readonly Series[] = [];
  let readings = Readings.NONE;
  for (let turn = 0; turn < 60; turn += 1) {
    if (turn === 0 || pick(6) === 0) {
      series = Array.from({ length: pick(9) }, () => ({
        metric: METRICS[pick(4)] as string,
        ...(pick(2) === 0 && { labels: { port: `${pick(3)}` } }),
      }));
      readings = new Readings(
        series,
        series.map(() => pick(3)),
      );
    } else if (pick(3) > 0) {
      const values = Array.from(readings.values, (value) => (pick(2) === 0 ? value : pick(2) === 0 ? pick(3) : 2n ** 60n));
      readings = new Readings(series, values, pick(3) === 0 ? series.map(() => (pick(2) === 0 ? pick(9) : undefined)) : undefined);
    }
    yield pick(5) === 0 ? Readings.of([...readings]) : readings;
  }
}

describe('readings that are found by their list of series', () => {
  it.each(Array.from({ length: 20 }, (_, seed) => seed + 1))('are those that a search finds (seed %i)', (seed) => {
    const choose = chooser((metric) => metric < 'c');
    let side = Readings.NONE;
    for (const readings of reads(seed)) {
      const list = [...readings];
      expect([...Readings.of(list)]).toEqual(list);
      for (const metric of METRICS) {
        expect(ofMetric(readings, metric)).toEqual(list.filter((one) => one.metric === metric));
        for (const labels of [undefined, { port: '1' }])
          expect(seriesValue(readings, { metric, ...(labels && { labels }) }) ?? Number.NaN).toBe(
            Number(list.find((one) => one.metric === metric && areSameLabels(one.labels, labels))?.value),
          );
      }
      expect([...choose(readings)]).toEqual(list.filter(({ metric }) => metric < 'c'));
      const joined = joinedReadings(readings, side);
      expect([...joined]).toEqual([...list, ...side]);
      for (const metric of METRICS) expect(ofMetric(joined, metric)).toEqual([...joined].filter((one) => one.metric === metric));
      side = choose(readings);
    }
  });

  it('have the same list of series for other values of the same series, also where they are chosen and joined', () => {
    const series = [{ metric: 'a' }, { metric: 'b' }, { metric: 'd' }];
    const read = (value: number) =>
      new Readings(
        series,
        series.map(() => value),
      );
    const [first, second] = [read(1), read(2)];
    const choose = chooser((metric) => metric < 'c');
    expect(choose(second).series).toBe(choose(first).series);
    expect(joinedReadings(second, first).series).toBe(joinedReadings(first, second).series);
    expect(choose(first)).toBe(choose(first));
    expect(joinedReadings(first, Readings.NONE)).toBe(first);
  });
});
