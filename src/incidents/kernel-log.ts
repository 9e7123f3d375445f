import { Worker } from 'node:worker_threads';
import type { Clock } from '../host/clock.ts';
import { threadLimits } from '../host/thread-limits.ts';
import { seconds } from '../model/duration.ts';
import type { DeviceMarks } from './kernel-lines.ts';
import type { KernelSearch } from './kernel-worker.ts';
import type { KernelPart } from './record.ts';

/** The log can only be read from its begin, so all of it is read. A usual log takes some milliseconds. */
const DEADLINE_MS = seconds(5);

interface Waiting {
  readonly marks: DeviceMarks;
  resolve(part: KernelPart): void;
}

/** `path`: undefined when the log is not read. */
type KernelPaths = Pick<KernelSearch, 'procfs'> & { readonly path: string | undefined };

/** Searches the kernel log in a thread of its own, which ends after the search. Devices that fail together share one search. */
export class KernelLog {
  readonly #paths: KernelPaths;
  readonly #clock: Clock;
  #waiting: Waiting[] = [];
  #worker: Worker | undefined;
  #isClosed = false;
  /** The running search passed its deadline. It keeps its place, so that no second thread hangs too. */
  #isLate = false;

  constructor(paths: KernelPaths, clock: Clock) {
    this.#paths = paths;
    this.#clock = clock;
  }

  /** The last lines about a device. Never rejects: a part without lines says why. */
  linesOf(marks: DeviceMarks): Promise<KernelPart> {
    if (this.#paths.path === undefined) return Promise.resolve(unread('path.kmsg is empty, so the kernel log is not read'));
    return new Promise((resolve) => {
      this.#waiting.push({ marks, resolve });
      // The other devices of this snapshot come in the same turn.
      queueMicrotask(() => this.#start());
    });
  }

  close(): void {
    this.#isClosed = true;
    void this.#worker?.terminate();
    this.#answer(this.#waiting.splice(0), unread('the agent ended before it read the kernel log'));
  }

  #start(): void {
    if (this.#worker !== undefined && this.#isLate) {
      this.#answer(this.#waiting.splice(0), unread(`an earlier read of ${this.#paths.path} has not returned`));
    }
    if (this.#worker !== undefined || this.#waiting.length === 0) return;
    const asked = this.#waiting.splice(0);
    if (this.#isClosed) {
      this.#answer(asked, unread('the agent ended before it read the kernel log'));
      return;
    }
    const { path = '', procfs } = this.#paths;
    const workerData: KernelSearch = { path, procfs, devices: asked.map(({ marks }) => marks) };
    // Compiled and bundled builds have .js files. A runtime that strips types runs the .ts sources.
    const entry = import.meta.url.endsWith('.ts') ? './kernel-worker.ts' : './kernel-worker.js';
    let why = `reading ${this.#paths.path} failed`;
    try {
      const worker = new Worker(new URL(entry, import.meta.url), {
        name: 'kernel-log',
        workerData,
        resourceLimits: threadLimits(64),
      });
      this.#worker = worker;
      worker.unref();
      const cancel = this.#clock.after(DEADLINE_MS, () => {
        why = `${this.#paths.path} was not read within ${DEADLINE_MS / 1_000} s`;
        void worker.terminate();
        this.#isLate = true;
        this.#answer(asked.splice(0), unread(why));
        this.#start();
      });
      worker.on('message', (parts: readonly KernelPart[]) => {
        for (const [at, { resolve }] of asked.splice(0).entries()) resolve(parts[at] ?? unread(why));
      });
      worker.on('error', ({ message }) => {
        why = `reading ${this.#paths.path} failed: ${message}`;
      });
      worker.on('exit', () => {
        cancel();
        this.#isLate = false;
        this.#worker = undefined;
        this.#answer(asked.splice(0), unread(why));
        this.#start();
      });
    } catch (error) {
      // The system refuses another thread.
      this.#answer(asked.splice(0), unread(error instanceof Error ? `${why}: ${error.message}` : why));
    }
  }

  #answer(asked: readonly Waiting[], part: KernelPart): void {
    for (const { resolve } of asked) resolve(part);
  }
}

const unread = (problem: string): KernelPart => ({ lines: [], problem });
