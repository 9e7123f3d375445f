import type { IsolatedReader } from './step-record.ts';

const HEADER = 8;
/** Largest size that a tree requests in one read. */
const CAPACITY = 65_536;
const [STATE, LENGTH] = [0, 1];
const [WAITING, DATA, ERROR] = [1, 2, 3];
/** The owner answers within seconds. After this time the owner has ended, or the machine was suspended. */
const LONGEST_WAIT_MS = 30_000;

/** Sends a request to the owner of the thread. The owner answers with {@link answerRead} in the memory of the request. */
export type AskRead = (path: string, limit: number, memory: SharedArrayBuffer) => void;

/** Lets the owner of a probe's thread read files. The thread waits for each answer synchronously. */
export class IsolatedChannel implements IsolatedReader {
  readonly #ask: AskRead;
  readonly #longestWaitMs: number;
  #memory = new SharedArrayBuffer(HEADER + CAPACITY);

  constructor(ask: AskRead, longestWaitMs = LONGEST_WAIT_MS) {
    this.#ask = ask;
    this.#longestWaitMs = longestWaitMs;
  }

  read(path: string, limit: number): Buffer | string {
    const words = new Int32Array(this.#memory, 0, 2);
    Atomics.store(words, STATE, WAITING);
    this.#ask(path, Math.min(limit, CAPACITY), this.#memory);
    if (Atomics.wait(words, STATE, WAITING, this.#longestWaitMs) === 'timed-out') {
      // A late answer must not be taken for the answer to the next read.
      this.#memory = new SharedArrayBuffer(HEADER + CAPACITY);
      return 'EHUNG';
    }
    const answer = Buffer.from(Buffer.from(this.#memory, HEADER, Atomics.load(words, LENGTH)));
    return Atomics.load(words, STATE) === ERROR ? answer.toString('utf8') : answer;
  }
}

/** Called by the owner. `answer`: bytes, or an errno name. */
export function answerRead(memory: SharedArrayBuffer, answer: Uint8Array | string): void {
  const words = new Int32Array(memory, 0, 2);
  const bytes = (typeof answer === 'string' ? Buffer.from(answer) : answer).subarray(0, CAPACITY);
  Buffer.from(memory, HEADER, CAPACITY).set(bytes);
  Atomics.store(words, LENGTH, bytes.length);
  Atomics.store(words, STATE, typeof answer === 'string' ? ERROR : DATA);
  Atomics.notify(words, STATE);
}
