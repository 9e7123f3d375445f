import { createServer, type Server } from 'node:http';
import express, { type ErrorRequestHandler } from 'express';
import type { Clock } from '../host/clock.ts';
import type { Logger } from '../log/logger.ts';
import { sendError, sendFault, sendJson, sendText, setCommonHeaders, TEXT_TYPE } from '../server/http/answer.ts';
import { heldDetail, nodeDetail } from './details.ts';
import { filtered } from './filter.ts';
import { fleetPages } from './pages/router.ts';
import type { Prometheus } from './prometheus.ts';
import { sentenceOf } from './sentence.ts';
import type { FleetWatch } from './watch.ts';

export interface FleetServer {
  readonly prometheus: Prometheus;
  readonly watch: Pick<FleetWatch, 'fleet' | 'trouble'>;
  readonly version: string;
  /** Address of the board of a node, with `{node}` and `{cluster}`. */
  readonly board?: string | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The server of the fleet's pages. It answers only reads, and knows nothing but Prometheus. */
export function fleetServer({ prometheus, watch, version, board, clock, logger }: FleetServer): Server {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.use((request, response, next) => {
    setCommonHeaders(response);
    if (request.method === 'GET' || request.method === 'HEAD') return next();
    return void sendError(request, response, 405, 'method-not-allowed', 'Only GET and HEAD are answered.');
  });
  app.get('/healthz', (request, response) => sendText(request, response, TEXT_TYPE, 'ok\n'));
  app.get('/api/v1/fleet', (request, response) => {
    const { fleet, trouble } = watch;
    if (fleet === undefined) return sendError(request, response, 503, 'not-ready', trouble?.message ?? 'Prometheus has not answered yet.');
    return sendJson(request, response, { sentence: sentenceOf(fleet), ...fleet });
  });
  const seconds = (): number => (watch.fleet === undefined ? clock.now() : Date.parse(watch.fleet.at)) / 1_000;
  app.use(
    fleetPages({
      version,
      fleet: () => watch.fleet,
      trouble: () => watch.trouble?.message,
      sentence: sentenceOf,
      filter: ({ nodes }, text) => filtered(nodes, text),
      node: (node, span) => nodeDetail(prometheus, node, span, seconds()),
      held: (namespace, pod) => heldDetail(prometheus, namespace, pod, seconds()),
      boardUrl: ({ name, cluster = '' }) =>
        board?.replaceAll('{node}', encodeURIComponent(name)).replaceAll('{cluster}', encodeURIComponent(cluster)),
      now: () => clock.now(),
    }),
  );
  app.use((request, response) => sendError(request, response, 404, 'not-found', 'There is no such page.'));
  const failed: ErrorRequestHandler = (error, request, response, _next) => void sendFault(request, response, logger, error);
  app.use(failed);
  return createServer(app);
}
