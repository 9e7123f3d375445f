import { setImmediate } from 'node:timers/promises';

/** Work in steps. Other work can be done between two of them. */
export type Steps<T> = Generator<undefined, T>;

/** How long steps run before the event loop turns. On a busy machine a page waits for each turn, so it needs few of them. */
const SLICE_MS = 15;

export function atOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}

/** Lets the event loop turn between steps, so that the other clients of the main thread do not wait for all of them. */
export async function inSlices<T>(steps: Steps<T>): Promise<T> {
  let begunMs = performance.now();
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
    if (performance.now() - begunMs < SLICE_MS) continue;
    await setImmediate();
    begunMs = performance.now();
  }
}
