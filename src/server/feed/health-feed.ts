import type { Clock } from '../../host/clock.ts';
import { seconds } from '../../model/duration.ts';
import type { Snapshot } from '../../model/snapshot.ts';
import type { NamingRules } from './device-names.ts';
import { type FeedList, feedList } from './feed-list.ts';
import { type FeedSink, Follower } from './follower.ts';

/** How often each client receives a message. */
export const HEARTBEAT_MS = seconds(10);
/** Without news for this time, a client knows nothing: three heartbeats, and the time that the kubelet takes by default. */
export const TIMEOUT_MS = 3 * HEARTBEAT_MS;

export interface HealthFeedDependencies {
  readonly store: { snapshot(): Snapshot | undefined; subscribe(notify: () => void): () => void };
  readonly names: NamingRules;
  /** Returns why the agent does not work; undefined while it does. */
  readonly fault?: () => string | undefined;
  readonly clock: Clock;
  readonly heartbeatMs?: number;
}

const NOTHING: FeedList = { devices: [], families: [], takenAtMs: 0, signature: '' };

/** The verdicts of all devices for clients that follow them. Without a client it does nothing. */
export class HealthFeed {
  readonly #parts: HealthFeedDependencies;
  readonly #followers = new Set<Follower>();
  #made: { readonly snapshot: Snapshot; readonly fault: string | undefined; readonly list: FeedList } | undefined;
  #fault: string | undefined;
  #stop: (() => void) | undefined;

  constructor(parts: HealthFeedDependencies) {
    this.#parts = parts;
  }

  get isReady(): boolean {
    return this.#parts.store.snapshot() !== undefined;
  }

  /** Sends the list at once, at each change and at each heartbeat. Returns a function that ends it. */
  follow(sink: FeedSink): () => void {
    if (this.#followers.size === 0) this.#start();
    const follower = new Follower(sink, () => this.#current());
    this.#followers.add(follower);
    return () => {
      this.#followers.delete(follower);
      if (this.#followers.size === 0) this.#end();
    };
  }

  /** The list for a client that asks now; undefined before the first snapshot. */
  latest(): FeedList | undefined {
    this.#fault = this.#parts.fault?.();
    return this.isReady ? this.#current() : undefined;
  }

  #current(): FeedList {
    const snapshot = this.#parts.store.snapshot();
    if (snapshot === undefined) return NOTHING;
    if (this.#made?.snapshot !== snapshot || this.#made.fault !== this.#fault) {
      this.#made = { snapshot, fault: this.#fault, list: feedList(snapshot, this.#parts.names, this.#fault) };
    }
    return this.#made.list;
  }

  #start(): void {
    const { store, clock, heartbeatMs = HEARTBEAT_MS, fault } = this.#parts;
    this.#fault = fault?.();
    const unsubscribe = store.subscribe(() => {
      this.#fault = fault?.();
      for (const follower of [...this.#followers]) follower.changed();
    });
    let cancel: () => void;
    const wait = (): void => {
      cancel = clock.after(heartbeatMs, () => {
        this.#fault = fault?.();
        wait();
        for (const follower of [...this.#followers]) follower.beat();
      });
    };
    wait();
    this.#stop = () => {
      unsubscribe();
      cancel();
    };
  }

  #end(): void {
    this.#stop?.();
    this.#made = undefined;
  }
}
