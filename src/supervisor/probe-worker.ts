import { parentPort, workerData } from 'node:worker_threads';
import { systemClock } from '../host/clock.ts';
import { IsolatedChannel } from '../host/fs/isolated-channel.ts';
import { StepRecord } from '../host/fs/step-record.ts';
import { createHost } from '../host/host.ts';
import { readTime } from '../host/recorded/read-clock.ts';
import type { Observation } from '../model/observation.ts';
import type { DeclaredFamily } from '../probes/declared/family.ts';
import { familyLoaders } from '../probes/families.ts';
import type { DeviceFamily, Probe } from '../probes/family.ts';
import { limitCollection, withoutExcluded } from './collection-limits.ts';
import type { FromWorker, ToWorker, WorkerStart } from './messages.ts';
import { CollectionSender } from './posted-collection.ts';
import { collectChecked, readAgainChecked } from './probe-look.ts';

/** Runs the thread of one family: creates its probe once and reads on request. */
async function run(start: WorkerStart): Promise<void> {
  const port = parentPort;
  if (port === null) throw new Error('the probe runs outside a thread');
  const send = (message: FromWorker): void => port.postMessage(message);
  const guard = new StepRecord(start.quarantined, start.guard);
  if (start.isIsolated) guard.isolatedReader = new IsolatedChannel((path, limit, memory) => send({ type: 'read', path, limit, memory }));
  const children = {
    started: (pid: number): void => send({ type: 'child-started', pid }),
    ended: (pid: number): void => send({ type: 'child-ended', pid }),
  };
  const family = await loadFamily(start);
  let observed: Observation[] = [];
  const observe = start.isObserved === true ? (observation: Observation): void => void observed.push(observation) : undefined;
  const clock = start.clock === undefined ? systemClock : readTime(start.clock);
  const host = createHost(start.roots, clock, { children, guard, known: start.known, counted: start.counted, observe });
  const probe = family.createProbe(host, start.options as never);
  if (start.release !== undefined) probe.release?.(start.release);
  const unwatch = probe.watch?.(() => send({ type: 'wake' }));

  port.on('message', (message: ToWorker) => {
    if (message.type === 'read-directly') guard.isolatedReader = undefined;
    else if (message.type === 'release') probe.release?.(message.release);
    else if (message.type === 'collect') void collect(message.run, message.ids);
    else void close(probe, unwatch).finally(() => port.close());
  });

  function tellObserved(): void {
    if (observed.length > 0) send({ type: 'observed', observations: observed });
    observed = [];
  }

  const sender = new CollectionSender();
  async function collect(run: number, ids: ReadonlySet<string> | undefined): Promise<void> {
    const startedMs = performance.now();
    try {
      const reads = ids && sender.encodeReads(readAgainChecked(probe, host, ids));
      if (reads !== undefined) {
        send({ type: 'read-again', run, reads });
        return;
      }
      const collection = limitCollection(withoutExcluded(await collectChecked(probe, host), start.options.exclude));
      tellObserved();
      send({ type: 'collected', run, collection: sender.encode(collection), durationMs: performance.now() - startedMs });
    } catch (error) {
      tellObserved();
      send({ type: 'failed', run, message: error instanceof Error ? (error.stack ?? error.message) : String(error) });
    }
  }
}

/** A declared family is built from its data. A family in code is loaded by its name. */
async function loadFamily({ family, declared }: WorkerStart): Promise<DeviceFamily> {
  if (declared !== undefined) return (await import('../probes/declared/family.ts')).familyOf(declared as DeclaredFamily);
  const load = familyLoaders[family];
  if (load === undefined) throw new Error(`no such device family: ${family}`);
  return await load();
}

async function close(probe: Probe, unwatch: (() => void) | undefined): Promise<void> {
  unwatch?.();
  await probe.close?.();
}

await run(workerData as WorkerStart);
