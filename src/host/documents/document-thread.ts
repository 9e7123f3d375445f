import { Worker } from 'node:worker_threads';
import type { Clock } from '../clock.ts';
import { threadLimits } from '../thread-limits.ts';
import { type Answer, answerOf, type DocumentKinds } from './kind.ts';

/** A document that the thread shall parse. */
export interface DocumentJob {
  readonly kind: string;
  readonly bytes: Uint8Array;
  readonly wanted: readonly string[];
}

/** A document within its bounds takes some tens of milliseconds of CPU. On a busy node, the thread may have to wait for it. */
const DEADLINE_MS = 5_000;
/** The idle thread takes about 6 MiB. */
const IDLE_MS = 2_000;
/** The bounds keep a document below 32 MiB above its size. */
const MOST_HEAP_MIB = 64;
/** A JSON document of this size is parsed in a millisecond, and a thread needs forty to start. YAML always gets the thread. */
const SMALL_BYTES = 65_536;
const BRACE = 0x7b;

/**
 * Parses documents of other programs in a thread, one after the other. The thread starts with the first document that needs it, ends when it
 * has nothing to do, and is ended when a document takes too long or too much memory.
 */
export class DocumentThread {
  readonly #entry: URL;
  readonly #kinds: DocumentKinds;
  readonly #clock: Clock;
  #worker: Worker | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #cancelEnd = (): void => {};
  /** Ends the job that runs. */
  #take: (answer: Answer<unknown>, next: 'wait' | 'end') => void = () => {};

  /** `entry`: a module that calls `serveDocuments` with the same kinds. */
  constructor(entry: URL, kinds: DocumentKinds, clock: Clock) {
    this.#entry = entry;
    this.#kinds = kinds;
    this.#clock = clock;
  }

  /** Never rejects. */
  parse(job: DocumentJob): Promise<Answer<unknown>> {
    const kind = this.#kinds[job.kind];
    if (kind !== undefined && job.bytes.length <= SMALL_BYTES && job.bytes[0] === BRACE)
      return answerOf(kind, Buffer.from(job.bytes).toString('utf8'), job.wanted);
    const answer = this.#last.then(() => this.#ask(job));
    this.#last = answer;
    return answer;
  }

  close(): void {
    this.#cancelEnd();
    const worker = this.#worker;
    this.#worker = undefined;
    void worker?.terminate();
    this.#take({ code: 'too-slow', reason: 'its parser was ended' }, 'end');
  }

  #ask(job: DocumentJob): Promise<Answer<unknown>> {
    this.#cancelEnd();
    const worker = this.#worker ?? this.#start();
    return new Promise((resolve) => {
      const cancel = this.#clock.after(DEADLINE_MS, () =>
        this.#take({ code: 'too-slow', reason: `its parser has not ended after ${DEADLINE_MS} ms` }, 'end'),
      );
      this.#take = (answer, next) => {
        this.#take = () => {};
        cancel();
        worker.unref();
        if (next === 'end') this.close();
        else this.#cancelEnd = this.#clock.after(IDLE_MS, () => this.close());
        resolve(answer);
      };
      worker.ref();
      worker.postMessage(job);
    });
  }

  #start(): Worker {
    const worker = new Worker(this.#entry, { name: 'documents', resourceLimits: threadLimits(MOST_HEAP_MIB) });
    this.#worker = worker;
    // What an ended thread still says belongs to no job.
    const take = (answer: Answer<unknown>, next: 'wait' | 'end'): void => {
      if (this.#worker === worker) this.#take(answer, next);
    };
    worker.on('message', (answer: Answer<unknown>) => take(answer, 'wait'));
    worker.on('error', (error: NodeJS.ErrnoException) => {
      const isMemory = error.code === 'ERR_WORKER_OUT_OF_MEMORY';
      take({ code: 'too-complex', reason: isMemory ? 'its parser takes too much memory' : `its parser failed: ${error.message}` }, 'end');
    });
    worker.on('exit', () => take({ code: 'too-slow', reason: 'its parser was ended' }, 'end'));
    return worker;
  }
}
