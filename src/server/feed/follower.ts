import type { FeedList } from './feed-list.ts';

/** The connection of one client. */
export interface FeedSink {
  /** Sends a list. `isNews` is false when the client already has it. Calls `done` when the operating system has taken the bytes. */
  write(list: FeedList, isNews: boolean, done: () => void): void;
  /** Closes the connection at once. */
  cut(): void;
}

/**
 * One client of the feed. At most one list is being sent: a slow client gets the newest list at its next read, and those in between are
 * skipped. A client that takes nothing for one heartbeat interval is disconnected.
 */
export class Follower {
  readonly #sink: FeedSink;
  readonly #current: () => FeedList;
  #sent: string | undefined;
  #isWriting = false;
  #isStalled = false;
  #isOver = false;

  constructor(sink: FeedSink, current: () => FeedList) {
    this.#sink = sink;
    this.#current = current;
    this.changed();
  }

  changed(): void {
    if (this.#isOver || this.#isWriting) return;
    const list = this.#current();
    if (list.signature !== this.#sent) this.#write(list, true);
  }

  beat(): void {
    if (this.#isOver) return;
    if (!this.#isWriting) {
      const list = this.#current();
      this.#write(list, list.signature !== this.#sent);
    } else if (this.#isStalled) {
      this.cut();
    } else {
      this.#isStalled = true;
    }
  }

  cut(): void {
    this.#isOver = true;
    this.#sink.cut();
  }

  #write(list: FeedList, isNews: boolean): void {
    this.#sent = list.signature;
    this.#isWriting = true;
    this.#sink.write(list, isNews, () => {
      this.#isWriting = false;
      this.#isStalled = false;
      this.changed();
    });
  }
}
