import { Worker } from 'node:worker_threads';
import { answerRead } from '../host/fs/isolated-channel.ts';
import { type Step, StepRecord } from '../host/fs/step-record.ts';
import type { Roots } from '../host/host.ts';
import { moduleBeside } from '../host/job-thread.ts';
import type { Device } from '../model/device.ts';
import type { FaultMark } from '../model/fault.ts';
import type { Observe } from '../model/observation.ts';
import type { Release } from '../model/release.ts';
import type { FromThread, FromWorker, ThreadExtras, ToWorker, WorkerStart } from './messages.ts';
import { CollectionReceiver } from './posted-collection.ts';

export interface ThreadSettings {
  readonly family: string;
  /** The data of a declared family; absent for a family in code. */
  readonly declared?: object;
  readonly options: Readonly<Record<string, unknown>>;
  readonly roots: Roots;
}

/** Knowledge of earlier threads: the known devices, and the places to avoid. */
export interface ThreadContext {
  readonly known: readonly Device[];
  /** What the agent has counted of the family's faults in the log. */
  readonly counted?: FaultMark | undefined;
  /** Another process reads the files. */
  readonly isIsolated: boolean;
  /** Places in which an earlier call still hangs. */
  readonly quarantined: readonly string[];
  /** A request to close the driver; absent without one. */
  readonly release?: Release | undefined;
}

export interface ThreadListener {
  received(message: FromThread): void;
  /** Reads a file in the other process. Resolves with the bytes or an errno name after a bounded time. */
  read(path: string, limit: number): Promise<Uint8Array | string>;
  failed(error: Error): void;
}

/** One thread that runs one probe, as the supervisor sees it. */
export interface ProbeThread {
  /** Resolves when the thread has ended. */
  readonly exited: Promise<void>;
  readonly hasExited: boolean;
  send(message: ToWorker): void;
  /** Whether the thread has begun a step since its start. */
  readonly hasBegun: boolean;
  /** The current step of the thread. */
  step(): Step | undefined;
  /** Asks the thread to end. A thread inside a hung system call ends only when that call returns. */
  terminate(): void;
}

/** Throws when the system refuses another thread. */
export type StartThread = (settings: ThreadSettings, context: ThreadContext, listener: ThreadListener) => ProbeThread;

export const startThread: StartThread = (settings, context, listener) => new WorkerThread(settings, context, listener);

/** Starts threads of a capture, which report what they read, or of a replay. `clock`: memory of a `ReadClock`. */
export const replayThreads =
  (clock: SharedArrayBuffer, observe?: Observe): StartThread =>
  (settings, context, listener) =>
    new WorkerThread(settings, context, listener, { isObserved: observe !== undefined, clock }, observe);

/** A worker thread, with the state that is needed to abandon it: its child processes and its current step. */
class WorkerThread implements ProbeThread {
  readonly #worker: Worker;
  readonly #guard = new StepRecord();
  readonly #children = new Set<number>();
  readonly #receiver = new CollectionReceiver();
  readonly #observe: Observe;
  readonly exited: Promise<void>;
  hasExited = false;

  constructor(
    settings: ThreadSettings,
    context: ThreadContext,
    listener: ThreadListener,
    extras: ThreadExtras = {},
    observe: Observe = () => {},
  ) {
    this.#observe = observe;
    const start: WorkerStart = { ...settings, ...context, ...extras, guard: this.#guard.shared };
    this.#worker = new Worker(moduleBeside(import.meta.url, 'probe-worker'), { workerData: start, name: `probe-${settings.family}` });
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

  send(message: ToWorker): void {
    this.#worker.postMessage(message);
  }

  get hasBegun(): boolean {
    return this.#guard.hasBegun;
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
        // The child ended by itself.
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
      case 'observed':
        for (const observation of message.observations) this.#observe(observation);
        break;
      case 'collected':
        listener.received({ ...message, collection: this.#receiver.decode(message.collection) });
        break;
      case 'read-again':
        listener.received({ type: 'read-again', run: message.run, again: this.#receiver.decodeReads(message.reads) });
        break;
      default:
        listener.received(message);
    }
  }
}
