import { setImmediate } from 'node:timers/promises';

/**
 * Work in steps of {@link STEP} series. They are counted and not timed: on a busy machine a page waits for each turn of the event loop, so
 * it needs the same few turns however long each of them takes.
 */
export type Steps<T> = Generator<undefined, T>;

/** So many series are added, sorted or encoded in about 10 to 15 ms. */
export const STEP = 12_000;

export function atOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}

/** Lets the event loop turn between steps, so that the other clients of the main thread do not wait for all of them. */
export async function inTurns<T>(steps: Steps<T>): Promise<T> {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
    await setImmediate();
  }
}
