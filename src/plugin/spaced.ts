import type { Clock } from '../host/clock.ts';

/**
 * Returns a function that runs `refresh`: one at a time, and each at least `spacingMs` after the begin of the one before. Calls that wait share
 * the next run, so each call gets a read that began after it, and any number of calls costs no more than one run in each spacing.
 */
export function spaced(refresh: () => Promise<unknown>, spacingMs: number, clock: Clock): () => Promise<void> {
  let next: Promise<void> | undefined;
  let last: Promise<unknown> = Promise.resolve();
  let beganMs = Number.NEGATIVE_INFINITY;
  const run = async (): Promise<void> => {
    await last;
    const waitMs = beganMs + spacingMs - clock.monotonic();
    if (waitMs > 0) await new Promise<void>((resolve) => void clock.after(waitMs, resolve));
    next = undefined;
    beganMs = clock.monotonic();
    last = refresh().catch(() => undefined);
    await last;
  };
  return () => {
    next ??= run();
    return next;
  };
}
