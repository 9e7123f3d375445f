import { parentPort, workerData } from 'node:worker_threads';
import { systemClock } from '../host/clock.ts';
import { createHost, type Host } from '../host/host.ts';
import { ReadGuard } from '../host/read-guard.ts';
import type { Tree } from '../host/tree.ts';
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
  const host = createHost(start.roots, systemClock, children, guard);
  const probe = family.createProbe(host, start.options as never);
  const reader = new Reader(probe, host, new SharedBoard(start.board), tell);
  const unwatch = probe.watch?.(() => tell({ type: 'wake' }));
  const bell = new Bell(start.bell);
  const end = (): void => void close(probe, unwatch).finally(() => port.close());

  port.on('message', (message: ToWorker) => {
    if (message.type === 'close') return end();
    // A probe that reads without a promise and watches nothing needs no event loop.
    const isDone = reader.collect(message.run, () => probe.watch === undefined && bell.attend());
    if (!isDone || probe.watch !== undefined) return;
    for (let rung = bell.wait(); rung !== CLOSE; rung = bell.wait()) {
      // A read with a promise goes on only where there is an event loop.
      if (!reader.collect(rung)) return bell.leave();
    }
    end();
  });
}

/** Has the probe read, and tells what it read or how it failed. */
class Reader {
  readonly #probe: Probe;
  readonly #trees: readonly Tree[];
  readonly #board: SharedBoard;
  readonly #tell: (message: FromWorker) => void;
  readonly #encoder: CollectionEncoder;
  #shortages = 0;

  constructor(probe: Probe, { sys, proc, dev }: Host, board: SharedBoard, tell: (message: FromWorker) => void) {
    this.#probe = probe;
    this.#trees = [sys, proc, dev];
    this.#board = board;
    this.#encoder = new CollectionEncoder(board);
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
    const delta = this.#encoder.encode(this.#hadShortage() ? withShortage(collection) : collection);
    this.#board.durationMs = performance.now() - startedMs;
    this.#tell(delta === undefined ? run : { type: 'collected', run, delta });
  }

  /** Since the last read. */
  #hadShortage(): boolean {
    const before = this.#shortages;
    this.#shortages = 0;
    for (const { shortages } of this.#trees) this.#shortages += shortages;
    return this.#shortages !== before;
  }

  #failed(run: number, startedMs: number, error: unknown): void {
    const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
    this.#tell({ type: 'failed', run, message, durationMs: performance.now() - startedMs });
  }
}

function withShortage(collection: Collection): Collection {
  const problem = { code: 'descriptors-exhausted', message: 'files cannot be opened: no descriptors are left' };
  return { ...collection, problems: [...collection.problems, problem] };
}

async function close(probe: Probe, unwatch: (() => void) | undefined): Promise<void> {
  unwatch?.();
  await probe.close?.();
}

await run(workerData as WorkerStart);
