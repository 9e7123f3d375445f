import type { Clock } from '../host/clock.ts';

/**
 * Calls `tick` at once and then every `intervalMs`, without drift. The second call comes after a random part of the interval, so
 * that the nodes of a cluster do not read at the same time. `tick` only starts work. A part that still runs ignores the tick, so a slow
 * part never delays another. Returns a function that stops the calls.
 */
export function every(intervalMs: number, tick: () => void, clock: Clock, random: () => number = Math.random): () => void {
  let dueMs = clock.monotonic() + intervalMs * (0.5 + random() / 2);
  let cancel = (): void => {};
  const wait = (): void => {
    cancel = clock.after(Math.max(0, dueMs - clock.monotonic()), () => {
      // Ticks missed while the whole machine was suspended are skipped.
      dueMs = Math.max(dueMs, clock.monotonic() - intervalMs) + intervalMs;
      wait();
      tick();
    });
  };
  wait();
  tick();
  return () => cancel();
}
