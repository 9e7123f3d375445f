import { stat } from 'node:fs/promises';
import type { Clock } from '../host/clock.ts';
import { seconds } from '../model/duration.ts';
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

/** Without a new snapshot for this time, or for {@link INTERVALS}, the agent has stopped working. */
const SHORTEST_MS = seconds(60);
const INTERVALS = 6;
/** Scrapes are compressed, and the state is saved, in Node's pool of threads. A file operation there takes less than a millisecond. */
const POOL_MS = seconds(20);

/** Says whether the agent still does its work: it publishes snapshots, and its pool of threads answers. */
export class Liveness {
  readonly #clock: Clock;
  #limitMs: number = SHORTEST_MS;
  #publishedMs: number;
  /** Start of the file operation that has not returned yet. */
  #askedMs: number | undefined;

  constructor(intervalMs: number, clock: Clock) {
    this.#clock = clock;
    this.configure(intervalMs);
    this.#publishedMs = clock.monotonic();
  }

  configure(intervalMs: number): void {
    this.#limitMs = Math.max(SHORTEST_MS, INTERVALS * intervalMs);
  }

  published(): void {
    this.#publishedMs = this.#clock.monotonic();
  }

  /** Returns what does not work, or undefined. Each call also starts a test of the pool, for the next call. */
  fault(): string | undefined {
    const now = this.#clock.monotonic();
    const [silentMs, waitingMs] = [now - this.#publishedMs, now - (this.#askedMs ?? now)];
    this.#askPool(now);
    if (silentMs > this.#limitMs) return `There was no new snapshot for ${Math.round(silentMs / 1_000)} s.`;
    if (waitingMs > POOL_MS) return `No file operation has returned for ${Math.round(waitingMs / 1_000)} s.`;
    return undefined;
  }

  #askPool(now: number): void {
    if (this.#askedMs !== undefined) return;
    this.#askedMs = now;
    const answered = (): void => {
      this.#askedMs = undefined;
    };
    stat('/').then(answered, answered);
  }
}
