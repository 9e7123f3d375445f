/** Runs one piece of work at a time. */
export class SingleFlight<T> {
  readonly #work: () => Promise<T>;
  #running: Promise<T> | undefined;
  #isAskedAgain = false;

  constructor(work: () => Promise<T>) {
    this.#work = work;
  }

  /** The run under way; undefined while there is none. */
  get running(): Promise<T> | undefined {
    return this.#running;
  }

  /** Joins the run under way, or begins one. */
  join(): Promise<T> {
    this.#running ??= this.#run();
    return this.#running;
  }

  /** Resolves after a run that began after this call: after the run under way, one more follows. */
  again(): Promise<T> {
    this.#isAskedAgain = true;
    return this.join();
  }

  async #run(): Promise<T> {
    // Not in this turn: work that ends at once would clear the field before it is set, and a run that has ended would stay there for ever.
    await undefined;
    try {
      for (;;) {
        this.#isAskedAgain = false;
        const result = await this.#work();
        // In the same turn as the clearing: a call between the two would wait for nothing.
        if (!this.#isAskedAgain) return result;
      }
    } finally {
      this.#running = undefined;
    }
  }
}
