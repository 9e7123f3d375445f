import type { Socket } from 'node:net';

/**
 * Places divided among clients: nobody gets more than is left free for the others. One client alone gets half of them, two a third
 * each, and whoever comes next finds a place, whatever those before do with theirs. Where many have come before, none is left: then
 * {@link Shares.largest} tells whose place a newcomer may have.
 */
export class Shares {
  readonly #held = new Map<string, number>();
  #free: number;

  constructor(most: number) {
    this.#free = most;
  }

  /** False, and nothing taken, when the client has its share. */
  take(client: string): boolean {
    const held = this.held(client);
    if (held >= this.#free) return false;
    this.#held.set(client, held + 1);
    this.#free -= 1;
    return true;
  }

  giveBack(client: string): void {
    this.#less(client);
    this.#free += 1;
  }

  /** Passes a place on, whatever the new holder's share is. */
  pass(from: string, to: string): void {
    this.#less(from);
    this.#held.set(to, this.held(to) + 1);
  }

  /** The client that holds most; undefined when nobody holds any. */
  largest(): string | undefined {
    let [largest, most]: [string | undefined, number] = [undefined, 0];
    for (const [client, held] of this.#held) if (held > most) [largest, most] = [client, held];
    return largest;
  }

  held(client: string): number {
    return this.#held.get(client) ?? 0;
  }

  #less(client: string): void {
    const held = this.held(client) - 1;
    if (held > 0) this.#held.set(client, held);
    else this.#held.delete(client);
  }
}

/** The peer's address. Nothing tells the peers of a unix socket apart: they are one client. */
export const clientOf = (connection: Socket): string => connection.remoteAddress ?? '';
