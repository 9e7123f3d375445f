import type { RequestHandler } from 'express';
import { sendError } from '../http/answer.ts';

/** Refuses other query parameters: one that is ignored looks like a filter that found everything. */
export function takes(...known: readonly string[]): RequestHandler {
  return (request, response, next) => {
    const unknown = Object.keys(request.query).find((name) => !known.includes(name));
    if (unknown === undefined) return next();
    const names = known.length === 0 ? 'This path has no parameters.' : `Known here: ${known.join(', ')}.`;
    const message = `There is no parameter ${JSON.stringify(unknown.slice(0, 80))}. ${names}`;
    return sendError(request, response, 400, 'parameter-unknown', message);
  };
}
