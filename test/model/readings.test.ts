import { describe, expect, it } from 'vitest';
import { areSameLabels, type Reading } from '../../src/model/metric.ts';
import { chooser, joinedReadings, ofMetric, ofSeries, type Series, seriesOf, seriesValue } from '../../src/model/readings.ts';
import { seeded } from '../support/seeded.ts';

const METRICS = ['a', 'b', 'c', 'd'];

/** Readings of series that stay or change, with values that stay or change, as a receiver makes them. */
function* reads(seed: number): Generator<readonly Reading[]> {
  const pick = seeded(seed);
  let series: readonly Series[] = [];
  let readings: readonly Reading[] = [];
  for (let turn = 0; turn < 60; turn += 1) {
    if (turn === 0 || pick(6) === 0) {
      series = Array.from({ length: pick(9) }, () => ({
        metric: METRICS[pick(4)] as string,
        ...(pick(2) === 0 && { labels: { port: `${pick(3)}` } }),
      }));
      readings = ofSeries(
        series,
        series.map((one) => ({ ...one, value: pick(3) })),
      );
    } else if (pick(3) > 0)
      readings = ofSeries(
        series,
        readings.map((one) => (pick(2) === 0 ? one : { ...one, value: pick(3) })),
      );
    yield pick(5) === 0 ? [...readings] : readings;
  }
}

describe('readings that are found by their list of series', () => {
  it.each(Array.from({ length: 20 }, (_, seed) => seed + 1))('are those that a search finds (seed %i)', (seed) => {
    const choose = chooser((metric) => metric < 'c');
    let side: readonly Reading[] = [];
    for (const readings of reads(seed)) {
      expect(seriesOf(readings).map(({ metric }) => metric)).toEqual(readings.map(({ metric }) => metric));
      for (const metric of METRICS) {
        expect(ofMetric(readings, metric)).toEqual(readings.filter((one) => one.metric === metric));
        for (const labels of [undefined, { port: '1' }])
          expect(seriesValue(readings, { metric, ...(labels && { labels }) })).toBe(
            readings.find((one) => one.metric === metric && areSameLabels(one.labels, labels))?.value,
          );
      }
      expect(choose(readings)).toEqual(readings.filter(({ metric }) => metric < 'c'));
      const joined = joinedReadings(readings, side);
      expect(joined).toEqual([...readings, ...side]);
      for (const metric of METRICS) expect(ofMetric(joined, metric)).toEqual(joined.filter((one) => one.metric === metric));
      side = choose(readings);
    }
  });

  it('have the same list of series for other values of the same series, also where they are chosen and joined', () => {
    const series = [{ metric: 'a' }, { metric: 'b' }, { metric: 'd' }];
    const read = (value: number) =>
      ofSeries(
        series,
        series.map((one) => ({ ...one, value })),
      );
    const [first, second] = [read(1), read(2)];
    const choose = chooser((metric) => metric < 'c');
    expect(seriesOf(choose(second))).toBe(seriesOf(choose(first)));
    expect(seriesOf(joinedReadings(second, first))).toBe(seriesOf(joinedReadings(first, second)));
    expect(choose(first)).toBe(choose(first));
    expect(joinedReadings(first, [])).toBe(first);
  });
});
