import { Worker } from 'node:worker_threads';
import { expect, it } from 'vitest';

const CLOCK = new URL('../../dist/host/clock.js', import.meta.url).href;

it('has the same monotonic time in each thread', async () => {
  const { systemClock } = (await import(CLOCK)) as typeof import('../../src/host/clock.ts');
  const source = `import { systemClock } from ${JSON.stringify(CLOCK)};
    import { parentPort } from 'node:worker_threads';
    parentPort.postMessage(systemClock.monotonic());`;
  const before = systemClock.monotonic();
  const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(source)}`));
  const there = await new Promise<number>((resolve, reject) => {
    worker.once('message', resolve);
    worker.once('error', reject);
  });
  expect(there).toBeGreaterThanOrEqual(before);
  expect(there).toBeLessThanOrEqual(systemClock.monotonic());
});
