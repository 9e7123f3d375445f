/** Source of time and timers. Tests replace it. */
export interface Clock {
  /** Wall clock, milliseconds since 1970. */
  now(): number;
  /** Monotonic milliseconds, for durations. All threads of the agent have the same. */
  monotonic(): number;
  /** Runs once after a delay; returns a function that cancels it. The timer does not keep the process alive. */
  after(delayMs: number, run: () => void): () => void;
  /** The clock of the threads of a capture or a replay: nothing is read between two reads of all. */
  readonly isStill?: true;
}

/** A clock that a later process of the same boot can continue. */
export interface UptimeClock extends Clock {
  /** Milliseconds on CLOCK_MONOTONIC, which begins at the boot of the machine. */
  sinceBoot(): number;
}

/** Longest delay of a Node timer, about 25 days. A timer with a longer delay fires at once. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1;

/**
 * Runs at each multiple of a period, see {@link untilNext}; returns a function that stops it, which `run` itself may call. `periodMs` is asked
 * again before each run. Never runs on a clock that does not advance.
 */
export function atEach(clock: Clock, periodMs: () => number, run: () => void): () => void {
  if (clock.isStill === true) return () => {};
  let cancel: (() => void) | undefined;
  const next = (): void => {
    cancel = clock.after(untilNext(clock, periodMs()), () => {
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
 * Delay until the next multiple of a period. Tasks with the same period run together and wake the thread only once. A wake-up costs about
 * 0.3 ms, mostly more than the tasks. A multiple closer than a tenth of the period is skipped, because a timer may fire slightly early.
 */
export function untilNext(clock: Pick<Clock, 'monotonic'>, periodMs: number): number {
  const restMs = periodMs - (clock.monotonic() % periodMs);
  return restMs < periodMs / 10 ? restMs + periodMs : restMs;
}

const sinceBoot = (): number => Number(process.hrtime.bigint()) / 1e6;
/** `performance.now()` begins anew in each thread. */
const THREAD_BEGAN_MS = sinceBoot() - performance.now();

export const systemClock: UptimeClock = {
  sinceBoot,
  now: () => Date.now(),
  monotonic: () => THREAD_BEGAN_MS + performance.now(),
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

/** Resolves after a delay. */
export const pause = (clock: Pick<Clock, 'after'>, delayMs: number): Promise<void> =>
  new Promise((resolve) => void clock.after(delayMs, resolve));

/** Whether a promise settles within `limitMs`, fulfilled or rejected. */
export async function endsWithin(promise: Promise<unknown>, limitMs: number, clock: Clock): Promise<boolean> {
  let cancel = (): void => {};
  const limit = new Promise<false>((resolve) => {
    cancel = clock.after(limitMs, () => resolve(false));
  });
  const ended = promise.then(
    () => true,
    () => true,
  );
  const isInTime = await Promise.race([ended, limit]);
  cancel();
  return isInTime;
}
