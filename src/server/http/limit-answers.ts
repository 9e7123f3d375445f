import type { IncomingMessage, ServerResponse } from 'node:http';
import type { RequestHandler } from 'express';
import type { Clock } from '../../host/clock.ts';
import type { RateLimit } from '../access/access.ts';
import { sendError } from './answer.ts';

/** Limits the number of streams. They do not end, so they have places of their own: those of scrapes stay free. */
export function limitStreams(most: number): RequestHandler {
  const places = new Places(most);
  return (request, response, next) => {
    if (places.take(request, response)) return next();
    response.setHeader('Retry-After', '10');
    const message = `There are ${most} streams already, or half of them by this address. Close one of them.`;
    return sendError(request, response, 503, 'too-many-streams', message);
  };
}

/** Admits requests while the bucket has one for each; further ones get 429. Another limit begins with a full bucket. */
export function limitRate(limit: () => RateLimit | undefined, clock: Clock): RequestHandler {
  let [bucket, left, sinceMs] = ['', 0, 0];
  return (request, response, next) => {
    const current = limit();
    if (current === undefined) return next();
    const { intervalMs, burst } = current;
    const nowMs = clock.monotonic();
    const isSame = bucket === `${intervalMs} ${burst}`;
    [bucket, left, sinceMs] = [`${intervalMs} ${burst}`, isSame ? Math.min(burst, left + (nowMs - sinceMs) / intervalMs) : burst, nowMs];
    if (left >= 1) {
      left -= 1;
      return next();
    }
    if (burst > 0) response.setHeader('Retry-After', String(Math.ceil(((1 - left) * intervalMs) / 1_000)));
    return sendError(request, response, 429, 'rate-limited', 'rate_limit of the web configuration admits no more requests now.');
  };
}

/**
 * Limits the number of concurrent answers; further requests immediately get 503. If a client has not read its answer within `answerMs`,
 * the connection is closed, so that a client that does not read cannot occupy a slot. `most` 0 means no limit.
 */
export function limitAnswers(most: number, answerMs: number, clock: Clock): RequestHandler {
  const places = new Places(most);
  return (request, response, next) => {
    if (!places.take(request, response)) {
      response.setHeader('Retry-After', '1');
      void sendError(request, response, 503, 'too-many-requests', 'Too many concurrent requests. Try again.');
      return;
    }
    response.once(
      'close',
      clock.after(answerMs, () => request.socket.destroy()),
    );
    next();
  };
}

/**
 * A limited number of places for answers. One address gets half of them at most, so that one client does not take all. Clients of a unix
 * socket have no address.
 */
class Places {
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
