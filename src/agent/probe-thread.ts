import { Worker } from 'node:worker_threads';
import type { Roots } from '../host/host.ts';
import { ReadGuard } from '../host/read-guard.ts';
import { Bell } from './bell.ts';
import { CollectionDecoder, type CollectionDelta } from './collection-delta.ts';
import { SharedBoard } from './shared-board.ts';
import { CLOSE, type FromThread, type FromWorker, type ToWorker, type WorkerStart } from './worker-messages.ts';

export interface ThreadSettings {
  readonly family: string;
  readonly options: Readonly<Record<string, unknown>>;
  readonly roots: Roots;
}

/** One thread with one probe in it, and everything needed to give it up: its children, and the path it reads. */
export class ProbeThread {
  readonly #worker: Worker;
  readonly #guard = new ReadGuard();
  readonly #bell = new Bell();
  readonly #board = new SharedBoard();
  readonly #children = new Set<number>();
  readonly #decoder = new CollectionDecoder(this.#board);
  readonly exited: Promise<void>;
  hasExited = false;

  constructor(
    settings: ThreadSettings,
    quarantined: readonly string[],
    onMessage: (message: FromThread) => void,
    onError: (error: Error) => void,
  ) {
    const start: WorkerStart = {
      ...settings,
      guard: this.#guard.shared,
      bell: this.#bell.shared,
      board: this.#board.shared,
      quarantined,
    };
    // Compiled and bundled builds have .js files; a runtime that strips types runs the sources.
    const entry = import.meta.url.endsWith('.ts') ? './probe-worker.ts' : './probe-worker.js';
    this.#worker = new Worker(new URL(entry, import.meta.url), {
      workerData: start,
      name: `probe-${settings.family}`,
    });
    this.#worker.on('error', onError);
    this.#worker.on('message', (message: FromWorker) => {
      if (typeof message === 'number') onMessage(this.#collected(message, undefined));
      else if (message.type === 'collected') onMessage(this.#collected(message.run, message.delta));
      else if (message.type === 'child-started') this.#children.add(message.pid);
      else if (message.type === 'child-ended') this.#children.delete(message.pid);
      else onMessage(message);
    });
    this.exited = new Promise((resolve) => {
      this.#worker.once('exit', () => {
        this.hasExited = true;
        this.killChildren();
        resolve();
      });
    });
  }

  tell(message: ToWorker): void {
    const isHeard = this.#bell.ring(message.type === 'collect' ? message.run : CLOSE);
    if (!isHeard) this.#worker.postMessage(message);
  }

  /** Path that it is reading right now. */
  underRead(): string | undefined {
    return this.#guard.underRead();
  }

  #collected(run: number, delta: CollectionDelta | undefined): FromThread {
    return { type: 'collected', run, collection: this.#decoder.decode(delta), durationMs: this.#board.durationMs };
  }

  /** Asks it to end. A thread inside a hung system call ends only when that call returns. */
  terminate(): void {
    this.killChildren();
    void this.#worker.terminate();
  }

  killChildren(): void {
    for (const pid of this.#children) {
      try {
        process.kill(-pid, 'SIGKILL');
      } catch {
        // It ended by itself.
      }
    }
    this.#children.clear();
  }
}
