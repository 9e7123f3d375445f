import { describe, expect, it } from 'vitest';
import type { Reading } from '../../../src/model/metric.ts';
import { columnsOf, ReadingWriter } from '../../../src/probes/kit/reading-writer.ts';
import { seeded } from '../../support/seeded.ts';

const BIG = 2n ** 63n;

/** Readings of one read: those of before with some other values, times or series. */
function next(before: readonly Reading[], pick: (limit: number) => number): readonly Reading[] {
  const one = (at: number): Reading => ({
    metric: `m${pick(3)}`,
    ...(pick(2) === 0 && { labels: { port: `${at}` } }),
    ...(pick(4) === 0 && { wrapsAt: 2 ** 32 }),
    value: pick(3),
  });
  const moved = before.map((reading): Reading => {
    const { readMs: _, ...rest } = reading;
    const value = pick(3) > 0 ? reading.value : pick(3) === 0 ? BIG + BigInt(pick(2)) : pick(3);
    return { ...rest, ...(reading.labels && { labels: { ...reading.labels } }), value, ...(pick(4) === 0 && { readMs: pick(2) }) };
  });
  return pick(5) === 0 ? Array.from({ length: pick(90) }, (_, at) => moved[at] ?? one(at)) : moved;
}

describe('a column that lives as long as its device', () => {
  it.each(Array.from({ length: 20 }, (_, seed) => seed + 1))(
    'has what the last read gave, and leaves earlier readings as they were (seed %i)',
    (seed) => {
      const pick = seeded(seed);
      const writer = new ReadingWriter();
      const told: (readonly [readonly Reading[], Iterable<Reading>])[] = [];
      let list: readonly Reading[] = [];
      for (let turn = 0; turn < 60; turn += 1) {
        list = next(list, pick);
        told.push([list, writer.addAll(list).end()]);
      }
      for (const [given, readings] of told) expect([...readings]).toStrictEqual(given);
    },
  );

  it('keeps the objects of what did not change', () => {
    const read = (value: number | bigint, readMs?: number): Reading[] => [
      { metric: 'a', value: 1 },
      { metric: 'b', labels: { port: '1' }, value, ...(readMs !== undefined && { readMs }) },
    ];
    let before = columnsOf(read(2), undefined);
    const again = (list: Reading[]) => {
      const [was, now] = [before, columnsOf(list, before)];
      before = now;
      return { readings: now === was, series: now.series === was.series, times: now.times === was.times };
    };
    expect(again(read(2))).toEqual({ readings: true, series: true, times: true });
    expect(again(read(3))).toEqual({ readings: false, series: true, times: true });
    expect(again(read(3, 7))).toEqual({ readings: false, series: true, times: false });
    expect(again(read(4, 7))).toEqual({ readings: false, series: true, times: true });
    expect(again(read(BIG, 7))).toEqual({ readings: false, series: true, times: true });
    expect(again(read(BIG, 7))).toEqual({ readings: true, series: true, times: true });
    expect(again(read(4, 7).slice(1))).toEqual({ readings: false, series: false, times: false });
  });
});
