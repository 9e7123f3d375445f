import { setImmediate } from 'node:timers/promises';

/** Work in steps of {@link STEP} series. */
export type Steps<T> = Generator<undefined, T>;

/** So many series are added, sorted or encoded in about 10 to 15 ms. */
export const STEP = 12_000;

/** Work that others may do step by step before somebody needs its result. */
export class Work<T> {
  readonly #steps: Steps<T>;
  #ended: { readonly result: T } | undefined;

  constructor(steps: Steps<T>) {
    this.#steps = steps;
  }

  /** Does what is left at once: on a busy machine, whoever waits for the result would wait long for each turn of the event loop. */
  get result(): T {
    for (;;) {
      if (this.#ended !== undefined) return this.#ended.result;
      this.#step();
    }
  }

  /** Does one step in each turn of the event loop, so that other work of the main thread need not wait for all of them. */
  async inTurns(): Promise<void> {
    for (; this.#ended === undefined; await setImmediate()) this.#step();
  }

  #step(): void {
    const { done, value } = this.#steps.next();
    if (done === true) this.#ended = { result: value };
  }
}
