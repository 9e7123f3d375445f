import { type ResourceLimits, Worker } from 'node:worker_threads';
import type { Clock } from './clock.ts';

/** Size of V8's space for new objects. One garbage collection moves at most this much. Node allows 16 MiB above the limit until the thread ends. */
const YOUNG_MIB = 8;
/** A thread that was told to end does so within milliseconds, unless it hangs in the kernel. */
const ENDING_MS = 1_000;

/**
 * The module with a name in the folder of another module. `from`: the `import.meta.url` of that one. Compiled and bundled builds have .js files.
 * A runtime that strips types runs the .ts sources.
 */
export const moduleBeside = (from: string, name: string): URL => new URL(`./${name}${from.endsWith('.ts') ? '.ts' : '.js'}`, from);

export interface JobThreadSettings {
  readonly name: string;
  /** A module that answers each message with one message. */
  readonly entry: URL;
  readonly clock: Clock;
  /**
   * MiB of long-lived objects. A thread that takes more memory ends, and the process goes on. Since Node 24 the space for new objects is larger by
   * default: one garbage collection can exceed the 16 MiB, and V8 then ends the whole process. So both have a limit.
   */
  readonly memoryMib: number;
  /** The thread is ended when one job takes longer. Default: never. */
  readonly deadlineMs?: number;
  /** The thread ends when it has nothing to do for so long. */
  readonly idleMs: number;
}

/**
 * `late`: the job did not end in time. `stuck`: the thread of an earlier job is still in the kernel. `memory`: the job took too much.
 * `failed`: its program threw, or no thread could start. `closed`: the owner closed the thread.
 */
export type JobFailure = 'late' | 'stuck' | 'memory' | 'failed' | 'closed';
export type JobAnswer<A> = { readonly answer: A } | { readonly failure: JobFailure; readonly reason: string };

/**
 * Does jobs in a thread, one after the other. The thread starts with the first job and ends when it is idle. No second thread starts while one that
 * was told to end is still there, so that a job that hangs in the kernel costs one thread.
 */
export class JobThread<Job, A> {
  readonly #settings: JobThreadSettings;
  #worker: Worker | undefined;
  /** A thread that was told to end and has not. */
  #ending: Worker | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #cancelIdle = (): void => {};
  /** Ends the job that runs. */
  #take: (answer: JobAnswer<A>) => void = () => {};

  constructor(settings: JobThreadSettings) {
    this.#settings = settings;
  }

  /** Never rejects. */
  ask(job: Job): Promise<JobAnswer<A>> {
    const answer = this.#last.then(() => this.#run(job));
    this.#last = answer;
    return answer;
  }

  /** Ends the thread and the job that runs. A later job starts another thread. */
  close(): void {
    this.#cancelIdle();
    this.#end();
    this.#take({ failure: 'closed', reason: 'its thread was ended' });
  }

  async #run(job: Job): Promise<JobAnswer<A>> {
    this.#cancelIdle();
    await this.#ended();
    if (this.#ending !== undefined) return { failure: 'stuck', reason: 'an earlier one has not returned' };
    const { clock, deadlineMs, idleMs } = this.#settings;
    return new Promise((resolve) => {
      const cancel =
        deadlineMs === undefined
          ? () => {}
          : clock.after(deadlineMs, () => {
              this.#end();
              this.#take({ failure: 'late', reason: `it has not ended after ${deadlineMs} ms` });
            });
      this.#take = (answer) => {
        this.#take = () => {};
        cancel();
        if (this.#worker !== undefined) this.#cancelIdle = clock.after(idleMs, () => this.close());
        resolve(answer);
      };
      try {
        this.#worker ??= this.#start();
        this.#worker.postMessage(job);
      } catch (error) {
        // The system refuses another thread.
        this.#take({ failure: 'failed', reason: (error as Error).message });
      }
    });
  }

  #start(): Worker {
    const { entry, name, memoryMib } = this.#settings;
    const resourceLimits: ResourceLimits = { maxOldGenerationSizeMb: memoryMib, maxYoungGenerationSizeMb: YOUNG_MIB };
    const worker = new Worker(entry, { name, resourceLimits });
    worker.unref();
    // What an ended thread still says belongs to no job.
    worker.on('message', (answer: A) => {
      if (this.#worker === worker) this.#take({ answer });
    });
    worker.on('error', ({ code, message }: NodeJS.ErrnoException) => {
      if (this.#worker !== worker) return;
      this.#end();
      const isMemory = code === 'ERR_WORKER_OUT_OF_MEMORY';
      this.#take(isMemory ? { failure: 'memory', reason: 'it takes too much memory' } : { failure: 'failed', reason: message });
    });
    worker.on('exit', () => {
      if (this.#ending === worker) this.#ending = undefined;
      if (this.#worker !== worker) return;
      this.#worker = undefined;
      this.#take({ failure: 'failed', reason: 'its thread ended by itself' });
    });
    return worker;
  }

  #end(): void {
    const worker = this.#worker;
    this.#worker = undefined;
    if (worker === undefined) return;
    this.#ending = worker;
    void worker.terminate();
  }

  /** Resolves when the thread that was told to end has ended, or after {@link ENDING_MS}. */
  #ended(): Promise<void> {
    const worker = this.#ending;
    if (worker === undefined) return Promise.resolve();
    return new Promise((resolve) => {
      const cancel = this.#settings.clock.after(ENDING_MS, resolve);
      worker.once('exit', () => {
        cancel();
        resolve();
      });
    });
  }
}
