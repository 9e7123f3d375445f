import type { IncomingMessage, ServerResponse } from 'node:http';

/**
 * A limited number of places for answers. One address gets half of them at most, so that one client does not take all. Clients of a unix
 * socket have no address.
 */
export class Places {
  readonly #most: number;
  readonly #addresses = new Map<ServerResponse, string | undefined>();

  /** `most` 0 means no limit. */
  constructor(most: number) {
    this.#most = most === 0 ? Number.POSITIVE_INFINITY : most;
  }

  /** Takes a place until the answer ends; false when there is none. */
  take({ socket }: IncomingMessage, response: ServerResponse): boolean {
    const { remoteAddress, destroyed } = socket;
    // The answer of a closed connection has ended already, and would not free the place.
    if (destroyed || this.#addresses.size >= this.#most) return false;
    if (remoteAddress !== undefined && this.#heldBy(remoteAddress) >= Math.ceil(this.#most / 2)) return false;
    this.#addresses.set(response, remoteAddress);
    response.once('close', () => this.#addresses.delete(response));
    return true;
  }

  #heldBy(address: string): number {
    let count = 0;
    for (const one of this.#addresses.values()) if (one === address) count += 1;
    return count;
  }
}
