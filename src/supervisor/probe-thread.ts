import { Worker } from 'node:worker_threads';
import { answerRead } from '../host/fs/isolated-channel.ts';
import { ReadGuard, type Step } from '../host/fs/read-guard.ts';
import type { Roots } from '../host/host.ts';
import type { Device } from '../model/device.ts';
import type { FromThread, FromWorker, ToWorker, WorkerStart } from './messages.ts';
import { CollectionReceiver } from './posted-collection.ts';

export interface ThreadSettings {
  readonly family: string;
  readonly options: Readonly<Record<string, unknown>>;
  readonly roots: Roots;
}

/** What a thread is told of the past: which devices there are, and what to stay away from. */
export interface ThreadCare {
  readonly known: readonly Device[];
  /** Files are read by another process. */
  readonly isIsolated: boolean;
  /** Places of which an earlier call still hangs. */
  readonly quarantined: readonly string[];
}

export interface ThreadListener {
  said(message: FromThread): void;
  /** A file to be read elsewhere; the promise gives bytes or an errno name, and never takes long. */
  read(path: string, limit: number): Promise<Uint8Array | string>;
  failed(error: Error): void;
}

/** One thread with one probe in it, as its supervisor sees it. */
export interface ProbeThread {
  /** Resolves when the thread has ended. */
  readonly exited: Promise<void>;
  readonly hasExited: boolean;
  tell(message: ToWorker): void;
  /** The step that it is in right now. */
  step(): Step | undefined;
  /** Asks it to end. A thread inside a hung system call ends only when that call returns. */
  terminate(): void;
}

/** Throws where the system has no room for another thread. */
export type StartThread = (settings: ThreadSettings, care: ThreadCare, listener: ThreadListener) => ProbeThread;

export const startThread: StartThread = (settings, care, listener) => new WorkerThread(settings, care, listener);

/** A worker thread, and everything needed to give it up: its children, and the step it is in. */
class WorkerThread implements ProbeThread {
  readonly #worker: Worker;
  readonly #guard = new ReadGuard();
  readonly #children = new Set<number>();
  readonly #receiver = new CollectionReceiver();
  readonly exited: Promise<void>;
  hasExited = false;

  constructor(settings: ThreadSettings, care: ThreadCare, listener: ThreadListener) {
    const start: WorkerStart = { ...settings, ...care, guard: this.#guard.shared };
    // Compiled and bundled builds have .js files; a runtime that strips types runs the sources.
    const entry = import.meta.url.endsWith('.ts') ? './probe-worker.ts' : './probe-worker.js';
    this.#worker = new Worker(new URL(entry, import.meta.url), { workerData: start, name: `probe-${settings.family}` });
    this.#worker.on('error', (error) => listener.failed(error));
    this.#worker.on('message', (message: FromWorker) => this.#received(message, listener));
    this.exited = new Promise((resolve) => {
      this.#worker.once('exit', () => {
        this.hasExited = true;
        this.#killChildren();
        resolve();
      });
    });
  }

  tell(message: ToWorker): void {
    this.#worker.postMessage(message);
  }

  step(): Step | undefined {
    return this.#guard.current();
  }

  terminate(): void {
    this.#killChildren();
    void this.#worker.terminate();
  }

  #killChildren(): void {
    for (const pid of this.#children) {
      try {
        process.kill(-pid, 'SIGKILL');
      } catch {
        // It ended by itself.
      }
    }
    this.#children.clear();
  }

  #received(message: FromWorker, listener: ThreadListener): void {
    switch (message.type) {
      case 'read':
        void listener.read(message.path, message.limit).then((answer) => answerRead(message.memory, answer));
        break;
      case 'child-started':
        this.#children.add(message.pid);
        break;
      case 'child-ended':
        this.#children.delete(message.pid);
        break;
      case 'collected':
        listener.said({ ...message, collection: this.#receiver.decode(message.collection) });
        break;
      default:
        listener.said(message);
    }
  }
}
