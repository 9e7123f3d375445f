import express, { type ErrorRequestHandler, type Express, type RequestHandler } from 'express';
import type { Clock } from '../host/clock.ts';
import type { Logger } from '../log/logger.ts';
import { isReading, sendError, sendFault, setCommonHeaders } from './answer.ts';
import { createApi } from './api.ts';
import type { Bound } from './bound.ts';
import { createPages } from './pages.ts';
import type { ServerParts } from './parts.ts';
import type { VitalSigns } from './vital-signs.ts';

interface AppParts {
  readonly signs: VitalSigns;
  readonly bound: Bound;
  readonly clock: Clock;
}

/** What people and programs ask besides the metrics page: the API and the pages. */
export function createApp(parts: ServerParts, { signs, bound, clock }: AppParts): Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.use((_request, response, next) => {
    setCommonHeaders(response);
    next();
  }, onlyReading);
  const remedyOf = (family: string, code: string): string | undefined =>
    parts.families.find(({ name }) => name === family)?.problems.find((problem) => problem.code === code)?.remedy;
  const sources = { snapshot: () => parts.store.snapshot(), remedyOf, now: () => clock.now(), version: parts.version, node: parts.node };
  // As whoever spells them another way asks for them.
  for (const [path, answer] of signs) app.get(path, answer);
  app.use(async (request, response, next) => {
    if (await bound(request, response)) next();
  });
  app.use(createApi({ ...sources, status: () => parts.status(), events: parts.events }));
  app.use(createPages({ ...sources, telemetryPath: parts.options['telemetry-path'] }));
  app.use((request, response) => sendError(request, response, 404, 'not-found', `There is nothing at ${request.path}.`));
  app.use(failure(parts.logger));
  return app;
}

const onlyReading: RequestHandler = (request, response, next) => {
  if (isReading(request)) return next();
  response.setHeader('Allow', 'GET, HEAD');
  response.setHeader('Connection', 'close');
  return sendError(request, response, 405, 'method-not-allowed', `${request.method} is not allowed here; GET and HEAD are.`);
};

/** A fault of the request (a path that cannot be decoded) is told; one of ours is logged and told without details. */
function failure(logger: Logger): ErrorRequestHandler {
  return (error: { status?: unknown }, request, response, next) => {
    if (response.headersSent) return next(error);
    if (error.status === 400) return sendError(request, response, 400, 'bad-request', 'The path of the request cannot be read.');
    return sendFault(request, response, logger, error);
  };
}
