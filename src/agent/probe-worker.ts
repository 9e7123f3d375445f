import { parentPort, workerData } from 'node:worker_threads';
import { systemClock } from '../host/clock.ts';
import { createHost } from '../host/host.ts';
import { ReadGuard } from '../host/read-guard.ts';
import { familyLoaders } from '../probes/families.ts';
import type { Probe } from '../probes/family.ts';
import { CollectionEncoder } from './collection-delta.ts';
import type { FromWorker, ToWorker, WorkerStart } from './worker-messages.ts';

/** The thread of one family: builds its probe once and reads when told to. */
async function run(start: WorkerStart): Promise<void> {
  const port = parentPort;
  const load = familyLoaders[start.family];
  if (port === null || load === undefined) throw new Error(`no such device family: ${start.family}`);
  const tell = (message: FromWorker): void => port.postMessage(message);

  const children = {
    started: (pid: number): void => tell({ type: 'child-started', pid }),
    ended: (pid: number): void => tell({ type: 'child-ended', pid }),
  };
  const guard = new ReadGuard(start.quarantined, start.guard);
  const family = await load();
  const probe = family.createProbe(createHost(start.roots, systemClock, children, guard), start.options as never);
  const encoder = new CollectionEncoder();
  const unwatch = probe.watch?.(() => tell({ type: 'wake' }));

  port.on('message', (message: ToWorker) => {
    if (message.type === 'collect') void collect(probe, encoder, message.run, tell);
    else void close(probe, unwatch).finally(() => port.close());
  });
}

async function collect(probe: Probe, encoder: CollectionEncoder, run: number, tell: (message: FromWorker) => void): Promise<void> {
  const started = performance.now();
  try {
    const collection = await probe.collect();
    tell({ type: 'collected', run, delta: encoder.encode(collection), durationMs: performance.now() - started });
  } catch (error) {
    const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
    tell({ type: 'failed', run, message, durationMs: performance.now() - started });
  }
}

async function close(probe: Probe, unwatch: (() => void) | undefined): Promise<void> {
  unwatch?.();
  await probe.close?.();
}

await run(workerData as WorkerStart);
