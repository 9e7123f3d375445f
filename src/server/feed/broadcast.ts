import type { Clock } from '../../host/clock.ts';

/** The connection of one client. */
export interface Sink<M> {
  /** Sends a message. Calls `done` when the operating system has taken its bytes. */
  write(message: M, done: () => void): void;
  /** Closes the connection at once. */
  cut(): void;
}

export interface BroadcastParts<M> {
  readonly clock: Clock;
  /** How often each client receives a message. A client that takes nothing for this time is cut. */
  readonly heartbeatMs: number;
  /** Called for the first client. Returns what is called after the last one. */
  begin(): () => void;
  /** All that a client must know which has just come, or which missed a message. */
  full(): M;
  /** A message for each heartbeat. `isNews`: a client that misses it must get all. */
  beat(): { readonly message: M; readonly isNews: boolean };
}

interface Client<M> {
  readonly sink: Sink<M>;
  isWriting: boolean;
  /** It missed a message, so that it needs all. */
  isBehind: boolean;
  /** It took nothing for one heartbeat. */
  isStalled: boolean;
}

/**
 * Sends messages to clients that follow them. At most one message is on the way to a client: one that missed some gets all at its next read,
 * and one that takes nothing is cut. Without a client it does nothing.
 */
export class Broadcast<M> {
  readonly #parts: BroadcastParts<M>;
  readonly #clients = new Set<Client<M>>();
  #end: (() => void) | undefined;

  constructor(parts: BroadcastParts<M>) {
    this.#parts = parts;
  }

  get clients(): number {
    return this.#clients.size;
  }

  /** Sends all at once, then each message. Returns a function that ends it. */
  follow(sink: Sink<M>): () => void {
    if (this.#clients.size === 0) this.#begin();
    const client: Client<M> = { sink, isWriting: false, isBehind: false, isStalled: false };
    this.#clients.add(client);
    this.#write(client, this.#parts.full());
    return () => {
      this.#clients.delete(client);
      if (this.#clients.size > 0) return;
      this.#end?.();
      this.#end = undefined;
    };
  }

  send(message: M): void {
    for (const client of [...this.#clients]) {
      if (client.isWriting) client.isBehind = true;
      else this.#write(client, message);
    }
  }

  #begin(): void {
    const { clock, heartbeatMs, begin } = this.#parts;
    const end = begin();
    let cancel: () => void;
    const wait = (): void => {
      cancel = clock.after(heartbeatMs, () => {
        wait();
        this.#beat();
      });
    };
    wait();
    this.#end = () => {
      end();
      cancel();
    };
  }

  #beat(): void {
    const { message, isNews } = this.#parts.beat();
    for (const client of [...this.#clients]) {
      if (!client.isWriting) this.#write(client, message);
      else if (client.isStalled) client.sink.cut();
      else {
        client.isStalled = true;
        client.isBehind ||= isNews;
      }
    }
  }

  #write(client: Client<M>, message: M): void {
    client.isWriting = true;
    client.sink.write(message, () => {
      client.isWriting = false;
      client.isStalled = false;
      if (!client.isBehind || !this.#clients.has(client)) return;
      client.isBehind = false;
      this.#write(client, this.#parts.full());
    });
  }
}
