import { createServer as createHttpServer, type Server } from 'node:http';
import express, { type ErrorRequestHandler, type Express, type RequestHandler } from 'express';
import { type Clock, systemClock } from '../host/clock.ts';
import type { Logger } from '../log/logger.ts';
import type { ProblemSpec } from '../model/collection.ts';
import type { HealthEvent } from '../model/events.ts';
import type { Snapshot } from '../model/snapshot.ts';
import { sendError, sendFault, sendText, setCommonHeaders, TEXT_TYPE } from './answer.ts';
import { createApi } from './api.ts';
import { type Bound, boundAnswers } from './bound.ts';
import { boundConnections } from './connections.ts';
import { listen } from './listen.ts';
import type { WebOptions } from './options.ts';
import { createPages } from './pages.ts';
import { ScrapeHandler, type ScrapeSource } from './scrape.ts';
import { scrapesBefore } from './scrape-front.ts';

/** What the server shows. It reads the latest snapshot and asks neither hardware nor kubelet. */
export interface ServerParts {
  readonly exposition: ScrapeSource;
  readonly store: {
    snapshot(): Snapshot | undefined;
    /** Tells of new snapshots; returns the way to end that. Absent: no page is prepared before it is asked for. */
    readonly subscribe?: (look: () => void) => () => void;
  };
  /** What the agent says of itself at `/api/v1/status`: plain data with stable names. */
  status(): object;
  /** Events younger than the one of this number, oldest first. Absent: `/api/v1/events` is empty. */
  readonly events?: (since: number) => readonly HealthEvent[];
  readonly families: readonly { readonly name: string; readonly problems: readonly ProblemSpec[] }[];
  readonly version: string;
  readonly node?: string;
  readonly options: WebOptions;
  readonly logger: Logger;
  readonly clock?: Clock;
}

export interface WebServer {
  /** Binds the configured address; gives where it can be reached. Fails with the user error `listen-failed`. */
  listen(): Promise<string>;
  /** Ends idle connections at once, answers under way after a moment. */
  close(): Promise<void>;
}

/** What one client, or all of them together, can take. */
export interface ServerLimits {
  /** For the head of a request, from the moment of connecting. */
  readonly headersMs: number;
  readonly requestMs: number;
  /** For an answer, from its turn to its last byte: a client that reads more slowly loses its connection. */
  readonly answerMs: number;
  /** How long an idle connection is kept: longer than the usual scrape interval, so that Prometheus keeps its own. */
  readonly keepAliveMs: number;
  /** In all. No client keeps more than it leaves free for others. */
  readonly connections: number;
  /** How long a request waits for its turn, and how long a slow answer is left alone while another request waits. */
  readonly patienceMs: number;
  /** How long answers under way may take when the server closes. */
  readonly closeMs: number;
}

export const serverLimits: ServerLimits = {
  headersMs: 5_000,
  requestMs: 10_000,
  answerMs: 30_000,
  keepAliveMs: 75_000,
  connections: 512,
  patienceMs: 5_000,
  closeMs: 1_500,
};

export function createServer(parts: ServerParts, limits: ServerLimits = serverLimits): WebServer {
  const clock = parts.clock ?? systemClock;
  const timeouts = { headersTimeout: limits.headersMs, requestTimeout: limits.requestMs, keepAliveTimeout: limits.keepAliveMs };
  const scrapes = new ScrapeHandler(parts.exposition, clock);
  const bound = boundAnswers(parts.options['max-requests'], limits, clock);
  const app = createApp(parts, bound, clock);
  // Scrapes are most of what is asked: they go past what the pages for people need.
  const answer = scrapesBefore(app, { path: parts.options['telemetry-path'], scrapes, bound, logger: parts.logger });
  const server = createHttpServer({ ...timeouts, connectionsCheckingInterval: limits.headersMs / 5 }, answer);
  boundConnections(server, limits.connections);
  const unsubscribe = parts.store.subscribe?.(() => scrapes.snapshotTaken());
  return {
    listen: () => listen(server, parts.options['listen-address']),
    close() {
      unsubscribe?.();
      scrapes.close();
      return close(server, limits.closeMs, clock);
    },
  };
}

function createApp(parts: ServerParts, bound: Bound, clock: Clock): Express {
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
  app.get(['/healthz', '/-/healthy'], (request, response) => sendText(request, response, TEXT_TYPE, 'ok\n'));
  app.get(['/readyz', '/-/ready'], readiness(parts));
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
  if (request.method === 'GET' || request.method === 'HEAD') return next();
  response.setHeader('Allow', 'GET, HEAD');
  response.setHeader('Connection', 'close');
  return sendError(request, response, 405, 'method-not-allowed', `${request.method} is not allowed here; GET and HEAD are.`);
};

function readiness({ store }: ServerParts): RequestHandler {
  return (request, response) =>
    store.snapshot() === undefined
      ? sendText(request, response, TEXT_TYPE, 'The first snapshot is not there yet.\n', 503)
      : sendText(request, response, TEXT_TYPE, 'ok\n');
}

/** A fault of the request (a path that cannot be decoded) is told; one of ours is logged and told without details. */
function failure(logger: Logger): ErrorRequestHandler {
  return (error: { status?: unknown }, request, response, next) => {
    if (response.headersSent) return next(error);
    if (error.status === 400) return sendError(request, response, 400, 'bad-request', 'The path of the request cannot be read.');
    return sendFault(request, response, logger, error);
  };
}

function close(server: Server, graceMs: number, clock: Clock): Promise<void> {
  return new Promise((resolve) => {
    if (!server.listening) return resolve();
    const cancel = clock.after(graceMs, () => server.closeAllConnections());
    server.close(() => {
      cancel();
      resolve();
    });
    server.closeIdleConnections();
  });
}
