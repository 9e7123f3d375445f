import { parentPort, workerData } from 'node:worker_threads';
import { systemClock } from '../host/clock.ts';
import { createHost } from '../host/host.ts';
import { ReadGuard } from '../host/read-guard.ts';
import type { Collection } from '../model/collection.ts';
import { familyLoaders } from '../probes/families.ts';
import type { Probe } from '../probes/family.ts';
import { Bell } from './bell.ts';
import { CollectionEncoder } from './collection-delta.ts';
import { SharedBoard } from './shared-board.ts';
import { CLOSE, type FromWorker, type ToWorker, type WorkerStart } from './worker-messages.ts';

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
  const reader = new Reader(probe, new SharedBoard(start.board), tell);
  const unwatch = probe.watch?.(() => tell({ type: 'wake' }));
  const bell = new Bell(start.bell);
  const end = (): void => void close(probe, unwatch).finally(() => port.close());

  port.on('message', (message: ToWorker) => {
    if (message.type === 'close') return end();
    // A probe that reads without a promise and watches nothing needs no event loop.
    const isDone = reader.collect(message.run, () => probe.watch === undefined && bell.attend());
    if (!isDone || probe.watch !== undefined) return;
    for (let rung = bell.wait(); rung !== CLOSE; rung = bell.wait()) reader.collect(rung);
    end();
  });
}

/** Has the probe read, and tells what it read or how it failed. */
class Reader {
  readonly #probe: Probe;
  readonly #board: SharedBoard;
  readonly #tell: (message: FromWorker) => void;
  readonly #encoder = new CollectionEncoder();

  constructor(probe: Probe, board: SharedBoard, tell: (message: FromWorker) => void) {
    this.#probe = probe;
    this.#board = board;
    this.#tell = tell;
  }

  /** True when it has been told; false when that will come later. `beforeTold` is called only in the first case. */
  collect(run: number, beforeTold: () => void = () => {}): boolean {
    const startedMs = performance.now();
    try {
      const collection = this.#probe.collect();
      if (collection instanceof Promise) {
        void this.#later(run, startedMs, collection);
        return false;
      }
      beforeTold();
      this.#told(run, startedMs, collection);
    } catch (error) {
      this.#failed(run, startedMs, error);
      return false;
    }
    return true;
  }

  async #later(run: number, startedMs: number, collection: Promise<Collection>): Promise<void> {
    try {
      this.#told(run, startedMs, await collection);
    } catch (error) {
      this.#failed(run, startedMs, error);
    }
  }

  #told(run: number, startedMs: number, collection: Collection): void {
    const delta = this.#encoder.encode(collection);
    const durationMs = performance.now() - startedMs;
    if (this.#board.write(delta, durationMs)) this.#tell(run);
    else this.#tell({ type: 'collected', run, delta, durationMs });
  }

  #failed(run: number, startedMs: number, error: unknown): void {
    const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
    this.#tell({ type: 'failed', run, message, durationMs: performance.now() - startedMs });
  }
}

async function close(probe: Probe, unwatch: (() => void) | undefined): Promise<void> {
  unwatch?.();
  await probe.close?.();
}

await run(workerData as WorkerStart);
