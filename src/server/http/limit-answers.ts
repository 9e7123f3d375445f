import type { RequestHandler } from 'express';
import { sendError } from './answer.ts';

/**
 * Limits the number of concurrent answers; further requests immediately get 503. If a client has not read its answer within `answerMs`,
 * the connection is closed, so that a client that does not read cannot occupy a slot. `most` 0 means no limit.
 */
export function limitAnswers(most: number, answerMs: number): RequestHandler {
  let running = 0;
  return (request, response, next) => {
    if (most > 0 && running >= most) {
      response.setHeader('Retry-After', '1');
      void sendError(request, response, 503, 'too-many-requests', 'Too many concurrent requests. Try again.');
      return;
    }
    running += 1;
    const timer = setTimeout(() => request.socket.destroy(), answerMs).unref();
    response.once('close', () => {
      running -= 1;
      clearTimeout(timer);
    });
    next();
  };
}
