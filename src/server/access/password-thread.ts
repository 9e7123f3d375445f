import { Worker } from 'node:worker_threads';
import type { Clock } from '../../host/clock.ts';
import { threadLimits } from '../../host/thread-limits.ts';
import { seconds } from '../../model/duration.ts';
import type { Compared, Comparison } from './password-worker.ts';

/** A thread takes some MiB, and a scraper's password is known after its first scrape. */
const IDLE_MS = seconds(30);

interface Waiting {
  resolve(isRight: boolean): void;
  reject(error: Error): void;
}

/** Compares passwords with bcrypt hashes in a thread, because one comparison takes a tenth of a second of CPU and more. */
export class PasswordThread {
  readonly #clock: Clock;
  readonly #waiting = new Map<number, Waiting>();
  #worker: Worker | undefined;
  #count = 0;
  #cancelEnd: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  compare(password: string, hash: string): Promise<boolean> {
    this.#cancelEnd?.();
    this.#worker ??= this.#start();
    this.#count += 1;
    const comparison: Comparison = { id: this.#count, password, hash };
    return new Promise((resolve, reject) => {
      this.#waiting.set(comparison.id, { resolve, reject });
      this.#worker?.postMessage(comparison);
    });
  }

  close(): void {
    this.#cancelEnd?.();
    void this.#worker?.terminate();
    this.#worker = undefined;
  }

  #start(): Worker {
    // Compiled and bundled builds have .js files. A runtime that strips types runs the .ts sources.
    const entry = import.meta.url.endsWith('.ts') ? './password-worker.ts' : './password-worker.js';
    const worker = new Worker(new URL(entry, import.meta.url), { name: 'passwords', resourceLimits: threadLimits(32) });
    worker.unref();
    worker.on('message', ({ id, isRight }: Compared) => {
      this.#waiting.get(id)?.resolve(isRight);
      this.#waiting.delete(id);
      if (this.#waiting.size === 0) this.#cancelEnd = this.#clock.after(IDLE_MS, () => this.close());
    });
    // After an error the thread has ended too. The next comparison starts another one.
    worker.on('error', () => undefined);
    worker.on('exit', () => {
      if (this.#worker !== worker) return;
      this.#worker = undefined;
      for (const { reject } of this.#waiting.values()) reject(new Error('the thread that compares passwords has ended'));
      this.#waiting.clear();
    });
    return worker;
  }
}
