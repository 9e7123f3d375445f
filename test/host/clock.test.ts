import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { LONGEST_TIMER_MS, systemClock } from '../../src/host/clock.ts';

// Nobody has time for the real ones.
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

it('does not run when it was called off, however late', () => {
  const run = vi.fn();
  const cancel = systemClock.after(2 * LONGEST_TIMER_MS, run);
  vi.advanceTimersByTime(1.5 * LONGEST_TIMER_MS);
  cancel();
  vi.advanceTimersByTime(LONGEST_TIMER_MS);
  expect(run).not.toHaveBeenCalled();
});
