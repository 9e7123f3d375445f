import type { RequestHandler } from 'express';
import { sendError } from './answer.ts';
import { Places } from './places.ts';

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

/**
 * Limits the number of concurrent answers; further requests immediately get 503. If a client has not read its answer within `answerMs`,
 * the connection is closed, so that a client that does not read cannot occupy a slot. `most` 0 means no limit.
 */
export function limitAnswers(most: number, answerMs: number): RequestHandler {
  const places = new Places(most);
  return (request, response, next) => {
    if (!places.take(request, response)) {
      response.setHeader('Retry-After', '1');
      void sendError(request, response, 503, 'too-many-requests', 'Too many concurrent requests. Try again.');
      return;
    }
    const timer = setTimeout(() => request.socket.destroy(), answerMs).unref();
    response.once('close', () => clearTimeout(timer));
    next();
  };
}
