import type { Snapshot } from '../model/snapshot.ts';

/** The latest snapshot, and word to those who want to look again when there is a new one. */
export class Store {
  readonly #subscribers = new Set<() => void>();
  #snapshot: Snapshot | undefined;

  snapshot(): Snapshot | undefined {
    return this.#snapshot;
  }

  publish(snapshot: Snapshot): void {
    this.#snapshot = snapshot;
    for (const look of [...this.#subscribers]) look();
  }

  /** `look` carries no data: the subscriber asks for the snapshot. Returns the way to end the subscription. */
  subscribe(look: () => void): () => void {
    this.#subscribers.add(look);
    return () => this.#subscribers.delete(look);
  }
}
