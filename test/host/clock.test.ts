import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { LONGEST_TIMER_MS, systemClock, untilNext } from '../../src/host/clock.ts';

// Real timers would take too long.
beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it.each([0, 1, LONGEST_TIMER_MS, LONGEST_TIMER_MS + 1, 2.5 * LONGEST_TIMER_MS])('runs once, after %i ms and not before', (delayMs) => {
  const run = vi.fn();
  systemClock.after(delayMs, run);
  if (delayMs > 0) vi.advanceTimersByTime(delayMs - 1);
  expect(run).toHaveBeenCalledTimes(0);
  vi.advanceTimersByTime(1);
  expect(run).toHaveBeenCalledTimes(1);
  vi.advanceTimersByTime(3 * LONGEST_TIMER_MS);
  expect(run).toHaveBeenCalledTimes(1);
});

it('does not run after it was cancelled, even late', () => {
  const run = vi.fn();
  const cancel = systemClock.after(2 * LONGEST_TIMER_MS, run);
  vi.advanceTimersByTime(1.5 * LONGEST_TIMER_MS);
  cancel();
  vi.advanceTimersByTime(LONGEST_TIMER_MS);
  expect(run).not.toHaveBeenCalled();
});

it.each([
  [0, 1_000],
  [1, 999],
  [900, 100],
  // A timer that fires slightly early is not set for the same multiple again.
  [999.8, 1_000.2],
  [12_345, 655],
])('the next second after %d ms is %d ms away', (nowMs, delayMs) => {
  expect(untilNext({ monotonic: () => nowMs }, 1_000)).toBeCloseTo(delayMs, 6);
});
