import type { Clock } from '../../host/clock.ts';
import { seconds } from '../../model/duration.ts';
import type { Snapshot } from '../../model/snapshot.ts';
import { Broadcast, type Sink } from './broadcast.ts';
import type { NamingRules } from './feed-list.ts';
import { type FeedList, feedList } from './feed-list.ts';

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

/** A list for a client. `isNews` is false when the client already has it. */
export interface FeedMessage {
  readonly list: FeedList;
  readonly isNews: boolean;
}

/** The verdicts of all devices for clients that follow them. Without a client it does nothing. */
export class HealthFeed {
  readonly #parts: HealthFeedDependencies;
  readonly #broadcast: Broadcast<FeedMessage>;
  #made: { readonly snapshot: Snapshot; readonly fault: string | undefined; readonly list: FeedList } | undefined;
  #fault: string | undefined;
  /** Signature of the list that was sent last. */
  #sent = '';

  constructor(parts: HealthFeedDependencies) {
    this.#parts = parts;
    const { clock, heartbeatMs = HEARTBEAT_MS } = parts;
    const full = (): FeedMessage => ({ list: this.#current(), isNews: true });
    this.#broadcast = new Broadcast({ clock, heartbeatMs, begin: () => this.#begin(), full, beat: () => this.#beat() });
  }

  get isReady(): boolean {
    return this.#parts.store.snapshot() !== undefined;
  }

  /** Sends the list at once, at each change and at each heartbeat. Returns a function that ends it. */
  follow(sink: Sink<FeedMessage>): () => void {
    return this.#broadcast.follow(sink);
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

  #begin(): () => void {
    this.#beat();
    const unsubscribe = this.#parts.store.subscribe(() => {
      const { message, isNews } = this.#beat();
      if (isNews) this.#broadcast.send(message);
    });
    return () => {
      unsubscribe();
      this.#made = undefined;
    };
  }

  /** The list now, which is news when it differs from the last one. */
  #beat(): { readonly message: FeedMessage; readonly isNews: boolean } {
    this.#fault = this.#parts.fault?.();
    const list = this.#current();
    const isNews = list.signature !== this.#sent;
    this.#sent = list.signature;
    return { message: { list, isNews }, isNews };
  }
}
