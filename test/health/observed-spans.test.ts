import { describe, expect, it } from 'vitest';
import { observedAfter } from '../../src/health/journal/observed-spans.ts';
import { NEVER_OBSERVED, type ObservedSpans } from '../../src/model/observed-spans.ts';

const PAUSE = 60_000;
const at = (before: ObservedSpans, nowMs: number, isFirst = false, keys = ['a']): ObservedSpans =>
  observedAfter(before, { keys, nowMs, pauseMs: PAUSE, isFirst });
const run = (before: ObservedSpans, times: readonly number[]): ObservedSpans =>
  times.reduce((last, time, n) => at(last, time, n === 0), before);

describe('the time in which the agent judged', () => {
  it('is one span for each run, however short the pause between them is', () => {
    const first = run(NEVER_OBSERVED, [0, 10_000, 20_000]);
    expect(first.spans).toEqual([{ fromMs: 0, untilMs: 20_000 }]);
    expect(run(first, [21_000, 31_000]).spans).toEqual([
      { fromMs: 0, untilMs: 20_000 },
      { fromMs: 21_000, untilMs: 31_000 },
    ]);
  });

  it('ends where the machine slept', () => {
    expect(at(run(NEVER_OBSERVED, [0, 10_000]), 10_000 + PAUSE).spans).toHaveLength(2);
  });

  it('keeps the first judgement of each device, and forgets devices that are no longer judged', () => {
    const both = at(run(NEVER_OBSERVED, [0]), 10_000, false, ['a', 'b']);
    expect(both.since).toEqual({ a: 0, b: 10_000 });
    expect(at(both, 20_000, false, ['b']).since).toEqual({ b: 10_000 });
  });

  it('has no time after the present when the clock was set back', () => {
    const { spans, since } = at(run(NEVER_OBSERVED, [100_000, 150_000]), 120_000);
    expect(spans).toEqual([{ fromMs: 100_000, untilMs: 120_000 }]);
    expect(since).toEqual({ a: 100_000 });
    expect(at(run(NEVER_OBSERVED, [100_000, 150_000]), 50_000)).toEqual({
      spans: [{ fromMs: 50_000, untilMs: 50_000 }],
      since: { a: 50_000 },
    });
  });

  it('stays small over many restarts', () => {
    let watched = NEVER_OBSERVED;
    for (let n = 0; n < 10_000; n += 1) watched = at(watched, n * 1_000, true);
    expect(watched.spans).toHaveLength(100);
    expect(at(watched, 10_000_000 + 3_600_000).spans).toHaveLength(1);
  });
});
