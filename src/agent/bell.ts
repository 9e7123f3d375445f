/** Nobody listens to it. */
const SILENT = 0;
const WAITING = 1;

/**
 * By which a probe's thread is woken that does nothing but read when told to: it sleeps in the kernel, without an event loop, which
 * costs half of what a message costs. Numbers: whether it can be rung, and the last thing that was rung.
 */
export class Bell {
  readonly shared: SharedArrayBuffer;
  readonly #state: Int32Array;
  /** Of the last ring that was heard. */
  #heard = 0;

  constructor(shared: SharedArrayBuffer = new SharedArrayBuffer(8)) {
    this.shared = shared;
    this.#state = new Int32Array(shared);
  }

  /** By the thread, before it says that its first run is done: from now on it listens to the bell and to nothing else. */
  attend(): void {
    Atomics.store(this.#state, 0, WAITING);
  }

  /** By the thread, before the supervisor has reason to ring again: it listens to messages from now on. */
  leave(): void {
    Atomics.store(this.#state, 0, SILENT);
  }

  /** By the thread: sleeps until it is rung, and says with what. */
  wait(): number {
    Atomics.wait(this.#state, 1, this.#heard);
    this.#heard = Atomics.load(this.#state, 1);
    return this.#heard;
  }

  /** By the supervisor: false when the thread does not listen. A number other than the last. */
  ring(what: number): boolean {
    if (Atomics.load(this.#state, 0) === SILENT) return false;
    Atomics.store(this.#state, 1, what);
    Atomics.notify(this.#state, 1);
    return true;
  }
}
