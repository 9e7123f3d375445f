import type { RequestHandler } from 'express';
import { sendError } from './answer.ts';

/**
 * Bounds how many answers are under way; further requests get 503 at once. An answer that is not taken in `answerMs` loses its connection,
 * so that a client that does not read cannot keep its place. `most` 0: no bound.
 */
export function limitAnswers(most: number, answerMs: number): RequestHandler {
  let underWay = 0;
  return (request, response, next) => {
    if (most > 0 && underWay >= most) {
      response.setHeader('Retry-After', '1');
      void sendError(request, response, 503, 'too-many-requests', 'Too many requests are under way. Try again.');
      return;
    }
    underWay += 1;
    const timer = setTimeout(() => request.socket.destroy(), answerMs).unref();
    response.once('close', () => {
      underWay -= 1;
      clearTimeout(timer);
    });
    next();
  };
}
