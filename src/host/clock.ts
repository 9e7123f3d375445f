/** Source of time and timers; tests replace it. */
export interface Clock {
  /** Wall clock, milliseconds since 1970. */
  now(): number;
  /** Monotonic milliseconds, for durations. */
  monotonic(): number;
  /** Runs once after a delay; returns the way to call it off. The timer does not keep the process alive. */
  after(delayMs: number, run: () => void): () => void;
}

/** A timer of Node for longer than this, some 25 days, goes off at once. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Runs at each {@link untilNext} of a period from now on; returns the way to stop, which may be called from within. */
export function atEach(clock: Clock, periodMs: number, run: () => void): () => void {
  let cancel: (() => void) | undefined;
  const next = (): void => {
    cancel = clock.after(untilNext(clock, periodMs), () => {
      run();
      if (cancel !== undefined) next();
    });
  };
  next();
  return () => {
    cancel?.();
    cancel = undefined;
  };
}

/**
 * Delay until a multiple of a period, and never a moment before it: what is done at the same period goes off together, and wakes the thread
 * once. Waking one costs some 0.3 ms, mostly more than what is done then.
 */
export function untilNext(clock: Pick<Clock, 'monotonic'>, periodMs: number): number {
  const restMs = periodMs - (clock.monotonic() % periodMs);
  return restMs < periodMs / 10 ? restMs + periodMs : restMs;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(delayMs, run) {
    let timer: NodeJS.Timeout;
    const wait = (restMs: number): void => {
      const laterMs = restMs - LONGEST_TIMER_MS;
      timer = laterMs > 0 ? setTimeout(wait, LONGEST_TIMER_MS, laterMs) : setTimeout(run, restMs);
      timer.unref();
    };
    wait(delayMs);
    return () => clearTimeout(timer);
  },
};
