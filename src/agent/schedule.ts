import type { Clock } from '../host/clock.ts';

/**
 * Calls `tick` at once and then every `intervalMs`, without drift. The second call comes after a random part of the interval, so
 * that the nodes of a cluster do not read in step. `tick` only starts work: what is still under way skips it by itself, so a slow
 * part never holds up another.
 */
export function every(intervalMs: number, tick: () => void, clock: Clock, random: () => number = Math.random): () => void {
  let dueMs = clock.monotonic() + intervalMs * (0.5 + random() / 2);
  let cancel = (): void => {};
  const wait = (): void => {
    cancel = clock.after(Math.max(0, dueMs - clock.monotonic()), () => {
      // After a pause of the whole machine the missed ticks are not made up for.
      dueMs = Math.max(dueMs, clock.monotonic() - intervalMs) + intervalMs;
      wait();
      tick();
    });
  };
  wait();
  tick();
  return () => cancel();
}
