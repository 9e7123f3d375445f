import { setFlagsFromString } from 'node:v8';
import type { Worker } from 'node:worker_threads';

/**
 * What V8 would take because there is memory, the agent does without: young generations of up to 48 MiB per thread, which it fills
 * in seconds, and old space of a multiple of what is in use. There is little garbage, so collecting it sooner costs a few percent
 * of CPU. See docs/performance.md.
 */
const FLAGS = [
  // From now on: for what the main thread's heap may become.
  '--semi-space-growth-factor=1',
  '--heap-growing-percent=10',
  // Everywhere: what outlives a collection in the midst of a refresh, as all that the refresh has made so far does, V8 would make in
  // old space the next time, where it and all that it holds stays until a full collection.
  '--no-allocation-site-pretenuring',
  // For heaps made later, that is all other threads. The image has these on its command line, where they hold for the first too.
  '--max-semi-space-size=1',
  '--initial-old-space-size=8',
];

/** Keeps the heaps of all threads small. Comes before anything that fills them. */
export function boundHeaps(): void {
  setFlags();
  // V8 puts the growth of all young generations back to twofold whenever it makes a heap, which it has when the thread is online.
  process.on('worker', (worker: Worker) => worker.once('online', setFlags));
}

function setFlags(): void {
  for (const flag of FLAGS) setFlagsFromString(flag);
}
