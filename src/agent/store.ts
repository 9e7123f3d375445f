import type { Snapshot } from '../model/snapshot.ts';

/** Holds the latest snapshot and notifies subscribers of each new one. */
export class Store {
  readonly #subscribers = new Set<() => void>();
  readonly #due = new Set<() => void>();
  #snapshot: Snapshot | undefined;

  snapshot(): Snapshot | undefined {
    return this.#snapshot;
  }

  publish(snapshot: Snapshot): void {
    this.#snapshot = snapshot;
    for (const notify of [...this.#subscribers]) notify();
  }

  /** `notify` carries no data: the subscriber then calls `snapshot()`. Returns a function that ends the subscription. */
  subscribe(notify: () => void): () => void {
    this.#subscribers.add(notify);
    return () => this.#subscribers.delete(notify);
  }

  /**
   * As {@link subscribe}, for subscribers that only display the snapshot. Each of them is notified in a separate turn of the event loop, so that the main
   * thread answers other clients in between. A snapshot that came before its turn replaces the one before.
   */
  follow(notify: () => void): () => void {
    const unsubscribe = this.subscribe(() => {
      if (this.#due.size === 0) setImmediate(() => this.#turn());
      this.#due.add(notify);
    });
    return () => {
      unsubscribe();
      this.#due.delete(notify);
    };
  }

  #turn(): void {
    const [next] = this.#due;
    if (next === undefined) return;
    this.#due.delete(next);
    if (this.#due.size > 0) setImmediate(() => this.#turn());
    next();
  }
}
