import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../host/clock.ts';
import { Admission, type AdmissionWaits } from './admission.ts';
import { sendError } from './answer.ts';

/** Waits for a request's turn; false when it was refused, or its client has gone. */
export type Bound = (request: IncomingMessage, response: ServerResponse) => Promise<boolean>;

/** Bounds how many answers are under way, in all and for each client, and how long one may take. */
export function boundAnswers(most: number, limits: AdmissionWaits & { readonly answerMs: number }, clock: Clock): Bound {
  const admission = new Admission(most, limits, clock);
  return async (request, response) => {
    const { socket } = request;
    const turn = admission.enter(socket);
    let cancel = (): void => {};
    const ended = (): void => {
      cancel();
      turn.leave();
    };
    response.once('close', ended);
    // An answer that waits behind another one on the same connection does not tell that the connection is gone.
    request.once('close', ended);
    const isAdmitted = await turn.admitted;
    if (response.closed || socket.destroyed) {
      // A client that went before it was let in may have told so before anybody listened.
      ended();
      return false;
    }
    if (!isAdmitted) {
      response.setHeader('Retry-After', '1');
      await sendError(request, response, 503, 'too-many-requests', 'Too many requests are under way. Try again.');
      return false;
    }
    cancel = clock.after(limits.answerMs, () => socket.destroy());
    return true;
  };
}
