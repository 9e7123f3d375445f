import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { isReading, requestPath, sendText, setCommonHeaders, TEXT_TYPE } from './answer.ts';

type Answer = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

/** What tells whether the agent lives, and whether it has something to show, by path. */
export type VitalSigns = ReadonlyMap<string, Answer>;

export function vitalSigns(hasSnapshot: () => boolean): VitalSigns {
  const liveness: Answer = (request, response) => sendText(request, response, TEXT_TYPE, 'ok\n');
  const readiness: Answer = (request, response) =>
    hasSnapshot()
      ? sendText(request, response, TEXT_TYPE, 'ok\n')
      : sendText(request, response, TEXT_TYPE, 'The first snapshot is not there yet.\n', 503);
  return new Map([
    ['/healthz', liveness],
    ['/-/healthy', liveness],
    ['/readyz', readiness],
    ['/-/ready', readiness],
  ]);
}

/** Answers them itself, at once however many answers are under way, and leaves everything else to the listener behind it. */
export function vitalSignsBefore(others: RequestListener, signs: VitalSigns): RequestListener {
  return (request, response) => {
    const answer = isReading(request) ? signs.get(requestPath(request) ?? '') : undefined;
    if (answer === undefined) return others(request, response);
    setCommonHeaders(response);
    void answer(request, response);
  };
}
