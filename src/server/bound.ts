import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../host/clock.ts';
import { createAdmission } from './admission.ts';
import { sendError } from './answer.ts';

/** Waits for a request's turn; false when it was refused, or its client has gone. */
export type Bound = (request: IncomingMessage, response: ServerResponse) => Promise<boolean>;

/** Bounds how many answers are under way and how long one may take. */
export function boundAnswers(most: number, limits: { readonly patienceMs: number; readonly answerMs: number }, clock: Clock): Bound {
  const admission = createAdmission(most, limits.patienceMs, clock);
  return async (request, response) => {
    const leave = await admission.enter();
    if (leave === undefined) {
      response.setHeader('Retry-After', '1');
      await sendError(request, response, 503, 'too-many-requests', 'Too many requests are under way. Try again.');
      return false;
    }
    // The client may have gone while it waited; then `close` does not come any more.
    if (response.closed || request.socket.destroyed) {
      leave();
      return false;
    }
    const cancel = clock.after(limits.answerMs, () => request.socket.destroy());
    const ended = (): void => {
      cancel();
      leave();
    };
    response.once('close', ended);
    // An answer that waits behind another one on the same connection does not tell that the connection is gone.
    request.once('close', ended);
    return true;
  };
}
