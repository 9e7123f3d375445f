import { describe, expect, it } from 'vitest';
import { addSample, growthWithin, judgeRate, type RateSeries } from '../../src/health/engine/rate.ts';
import { seededRandom } from '../support/seeded.ts';
import { found, gone, OneDevice, policyFor, START, spec } from './one-device.ts';

const WINDOW = 60_000;
const series = (samples: readonly (readonly [atMs: number, value: number])[], ceiling?: number): RateSeries => {
  const limit = ceiling === undefined ? {} : { ceiling };
  const end = samples.reduce<RateSeries | undefined>((sum, [atMs, value]) => addSample(sum, { atMs, value, ...limit }, WINDOW), undefined);
  return end as RateSeries;
};
const judge = (samples: readonly (readonly [number, number])[], nowMs: number, growth = 10, ceiling?: number) =>
  judgeRate(series(samples, ceiling), { growth, windowMs: WINDOW }, nowMs).status;

describe('growth of a counter', () => {
  it.each([
    ['a first reading, however large, says nothing', [[0, 1e6]], 0, 'unknown'],
    [
      'no growth',
      [
        [0, 1e6],
        [10_000, 1e6],
      ],
      10_000,
      false,
    ],
    [
      'growth up to the limit',
      [
        [0, 5],
        [10_000, 15],
      ],
      10_000,
      false,
    ],
    [
      'growth that is read in the same millisecond',
      [
        [0, 5],
        [10_000, 5],
        [10_000, 16],
      ],
      10_000,
      true,
    ],
    [
      'growth above the limit',
      [
        [0, 5],
        [10_000, 16],
      ],
      10_000,
      true,
    ],
    [
      'growth above the limit in several steps',
      [
        [0, 0],
        [20_000, 4],
        [40_000, 8],
        [60_000, 12],
      ],
      60_000,
      true,
    ],
    [
      'growth that has left the window',
      [
        [0, 0],
        [10_000, 50],
        [80_000, 50],
      ],
      80_000,
      false,
    ],
    [
      'growth before a reset stays grown',
      [
        [0, 0],
        [10_000, 50],
        [20_000, 5],
      ],
      20_000,
      true,
    ],
    [
      'growth before and after a reset adds up',
      [
        [0, 100],
        [10_000, 106],
        [20_000, 5],
      ],
      20_000,
      true,
    ],
    [
      'growth after a reset counts from 0',
      [
        [0, 1000],
        [10_000, 11],
      ],
      10_000,
      true,
    ],
    [
      'little growth before and after a reset',
      [
        [0, 100],
        [10_000, 105],
        [20_000, 5],
      ],
      20_000,
      false,
    ],
    [
      'a reset without growth',
      [
        [0, 1000],
        [10_000, 0],
      ],
      10_000,
      false,
    ],
    [
      'a gap of ten windows counts with its share',
      [
        [0, 0],
        [600_000, 100],
      ],
      600_000,
      false,
    ],
    [
      'a gap of ten windows with much growth',
      [
        [0, 0],
        [600_000, 101],
      ],
      600_000,
      true,
    ],
    [
      'the same reading judged again',
      [
        [0, 0],
        [0, 0],
      ],
      5_000,
      'unknown',
    ],
    [
      'a clock set back a little',
      [
        [10_000, 0],
        [9_000, 11],
      ],
      9_000,
      true,
    ],
    [
      'a clock set back by more than the window begins anew',
      [
        [100_000, 0],
        [10_000, 99],
      ],
      10_000,
      'unknown',
    ],
  ] as const)('%s', (_, samples, now, expected) => {
    expect(judge(samples, now)).toBe(expected);
  });

  it.each([
    [
      'stuck since ever',
      [
        [0, 15],
        [10_000, 15],
      ],
      10_000,
      'unknown',
    ],
    [
      'got stuck with too much growth',
      [
        [0, 3],
        [10_000, 15],
      ],
      10_000,
      true,
    ],
    [
      'got stuck with little growth',
      [
        [0, 14],
        [10_000, 15],
      ],
      10_000,
      'unknown',
    ],
    [
      'got stuck long ago',
      [
        [0, 3],
        [10_000, 15],
        [90_000, 15],
      ],
      90_000,
      'unknown',
    ],
    [
      'was cleared',
      [
        [0, 15],
        [10_000, 0],
        [20_000, 0],
      ],
      20_000,
      false,
    ],
  ] as const)('at the ceiling: %s', (_, samples, now, expected) => {
    expect(judge(samples, now, 10, 15)).toBe(expected);
  });

  it('falls to the limit when enough growth has left the window', () => {
    const steps = series([
      [0, 0],
      [10_000, 0],
      [20_000, 20],
    ]);
    expect(judgeRate(steps, { growth: 10, windowMs: WINDOW }, 74_999).status).toBe(true);
    expect(judgeRate(steps, { growth: 10, windowMs: WINDOW }, 75_000).status).toBe(false);
    expect(judgeRate(steps, { growth: 0, windowMs: WINDOW }, 79_999).status).toBe(true);
    expect(judgeRate(steps, { growth: 0, windowMs: WINDOW }, 80_000).status).toBe(false);
  });

  it('is the sum of all increments, after any number of resets', () => {
    const random = seededRandom(11);
    let sum: RateSeries | undefined;
    let value = 0;
    const added: (readonly [number, number])[] = [];
    for (let atMs = 0; atMs < 600_000; atMs += 5_000) {
      const isReset = random() < 0.1;
      const growth = Math.floor(random() * 9);
      const next = isReset ? growth : value + growth;
      // A reset is not detected when the counter soon reaches its earlier value.
      if (atMs > 0) added.push([atMs, isReset && next >= value ? next - value : growth]);
      value = next;
      sum = addSample(sum, { atMs, value }, WINDOW);
      if (atMs === 0) continue;
      const expected = added.filter(([at]) => at > atMs - WINDOW).reduce((total, [, part]) => total + part, 0);
      expect(growthWithin(sum as RateSeries, WINDOW, atMs)).toBeCloseTo(expected, 6);
    }
  });

  it('takes two points for a counter that is constant for days, and few for one that always grows', () => {
    const resting = Array.from({ length: 20_000 }, (_, index) => [index * 10_000, 7] as const);
    expect(series(resting).points).toHaveLength(2);
    const busy = Array.from({ length: 20_000 }, (_, index) => [index * 10, index] as const);
    const kept = series(busy);
    expect(kept.points.length).toBeLessThanOrEqual(64);
    expect(growthWithin(kept, WINDOW, 199_990)).toBeCloseTo(6_000, 6);
  });

  it('agrees with a plain count over all samples', () => {
    const random = seededRandom(7);
    let sum: RateSeries | undefined;
    const all: (readonly [number, number])[] = [];
    let value = 0;
    for (let atMs = 0; atMs < 600_000; atMs += 5_000) {
      value += random() < 0.7 ? 0 : Math.floor(random() * 9);
      all.push([atMs, value]);
      sum = addSample(sum, { atMs, value }, WINDOW);
      if (atMs === 0) continue;
      const start = all.findLast(([at]) => at <= atMs - WINDOW) ?? (all[0] as readonly [number, number]);
      expect(growthWithin(sum as RateSeries, WINDOW, atMs)).toBeCloseTo(value - start[1], 6);
    }
  });
});

describe('a condition judged by growth', () => {
  const policy = policyFor([spec('Errors', { class: 'rate', threshold: { growth: 10, windowMs: 60_000 } })]);
  const errors = (count: number, rest = {}) => found('Errors', { count, message: `errors is ${count}`, ...rest });

  it('reports the growth of the counter and the limit', () => {
    const one = new OneDevice(policy);
    one.read(0, errors(100));
    expect(one.read(10, errors(125)).conditions[0]?.message).toBe('errors is 125 (grew by 25 within 1 min, limit 10)');
  });

  it('reports whole counts, also when a step of the counter crosses the begin of the window', () => {
    const one = new OneDevice(policy);
    one.read(0, errors(0));
    one.read(50, errors(1));
    expect(one.read(100, errors(13)).conditions[0]?.message).toBe('errors is 13 (grew by 13 within 1 min, limit 10)');
  });

  it('ends with the first reading that finds it at the limit again, and not by time alone', () => {
    const one = new OneDevice(policy);
    one.read(0, errors(0));
    one.read(10, errors(0));
    one.read(20, errors(20));
    one.read(60, errors(20));
    expect(one.nextCheck).toBe(120);
    expect(one.read(74.999, errors(20)).state).toBe('unhealthy');
    expect(one.wait(76).state).toBe('unhealthy');
    expect(one.read(77, errors(20)).state).toBe('healthy');
  });

  it('is kept while its counter is at the ceiling, and cleared once the counter moves again', () => {
    const one = new OneDevice(policy);
    one.read(0, errors(0, { ceiling: 15 }));
    expect(one.read(10, errors(15, { ceiling: 15 })).state).toBe('unhealthy');
    for (let at = 20; at <= 300; at += 10) expect(one.read(at, errors(15, { ceiling: 15 })).state).toBe('unhealthy');
    expect(one.read(310, errors(0, { ceiling: 15 })).state, 'reset, and at 0 since').toBe('healthy');
  });

  it('continues from its history when a reading lacks the counter', () => {
    const one = new OneDevice(policy);
    one.read(0, errors(0));
    one.read(10, errors(11));
    expect(one.read(20).state).toBe('unhealthy');
    expect(one.read(30, errors(11)).state).toBe('unhealthy');
    expect(one.read(80).conditions, 'what is not told is not known').toMatchObject([{ unverifiedSinceMs: START + 80_000 }]);
    expect(one.read(90, errors(11)).state).toBe('healthy');
    expect(one.read(120).state).toBe('healthy');
    expect(one.read(130, errors(30)).state).toBe('unhealthy');
  });

  it('forgets counters that are no longer reported', () => {
    const one = new OneDevice(policy);
    one.read(0, errors(0));
    one.read(119);
    expect(Object.keys(one.engine.state().devices['test/one']?.rates ?? {})).toEqual(['Errors']);
    one.read(120);
    expect(one.engine.state().devices['test/one']?.rates).toEqual({});
  });

  it('counts each instance separately', () => {
    const one = new OneDevice(policy);
    one.read(0, errors(0, { instance: '1' }), errors(500, { instance: '2' }));
    expect(one.read(10, errors(9, { instance: '1' }), errors(520, { instance: '2' })).conditions).toMatchObject([{ instance: '2' }]);
  });
});

describe('a source that is read at its own interval', () => {
  const errors = spec('Errors', { class: 'rate', reasons: ['Because'], threshold: { growth: 20, windowMs: 60_000 } });
  /** A read each 300 s, at refreshes of 10 s, as it was seen. */
  function judged(counts: readonly number[]): readonly string[] {
    const one = new OneDevice(policyFor([errors]));
    return counts.flatMap((count, read) =>
      Array.from({ length: 30 }, (_, n) => {
        const readMs = n === 0 ? {} : { readMs: read * 300_000 - 9 };
        return one.read(read * 300 + n * 10, found('Errors', { count, ...readMs })).state;
      }),
    );
  }

  it('grows over the time between its reads, and not in the moment of the second one', () => {
    // 50 in five minutes are 10 a minute, and 150 are 30.
    expect(new Set(judged([0, 50, 100]).slice(30))).toEqual(new Set(['healthy']));
    expect(new Set(judged([0, 150, 300]).slice(30))).toEqual(new Set(['unhealthy']));
  });

  it('says nothing after one read, and its growth is not over because time passes without a read', () => {
    const states = judged([7, 157]);
    expect(states.slice(0, 30).every((state) => state === states[0])).toBe(true);
    expect(states.slice(0, 30)).not.toContain('unhealthy');
    expect(new Set(states.slice(30))).toEqual(new Set(['unhealthy']));
  });

  it('clears a condition by two quiet reads of its own, and not by looks in between', () => {
    const quiet = spec('Hot', { recoveryMs: 120_000 });
    const one = new OneDevice(policyFor([quiet]));
    expect(one.read(0, found('Hot')).state).toBe('unhealthy');
    expect(one.read(300, gone('Hot')).state).toBe('unhealthy');
    for (let at = 310; at < 600; at += 10) expect(one.read(at, { ...gone('Hot'), readMs: 300_000 }).state, `at ${at} s`).toBe('unhealthy');
    expect(one.read(600, gone('Hot')).state).toBe('healthy');
  });
});
