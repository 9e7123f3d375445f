import type { Snapshot } from '../model/snapshot.ts';

/** Holds the latest snapshot and notifies subscribers of each new one. */
export class Store {
  readonly #subscribers = new Set<() => void>();
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
}
