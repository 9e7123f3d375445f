import { createServer as createHttpServer, type Server } from 'node:http';
import { type Clock, systemClock } from '../host/clock.ts';
import { boundAnswers } from './bound.ts';
import { boundConnections } from './connections.ts';
import { lateListener } from './late-listener.ts';
import { listen } from './listen.ts';
import type { ServerParts } from './parts.ts';
import { ScrapeHandler } from './scrape.ts';
import { scrapesBefore } from './scrape-front.ts';
import { vitalSigns, vitalSignsBefore } from './vital-signs.ts';

export interface WebServer {
  /** Binds the configured address; gives where it can be reached. Fails with the user error `listen-failed`. */
  listen(): Promise<string>;
  /** Ends idle connections at once, answers under way after a moment. */
  close(): Promise<void>;
}

/** What one client, or all of them together, can take. */
export interface ServerLimits {
  /** For the head of a request, from the moment of connecting; on a connection that has had an answer it may be {@link checkMs} more. */
  readonly headersMs: number;
  readonly requestMs: number;
  /** Between two looks at all connections, each of which wakes the process. */
  readonly checkMs: number;
  /** For an answer, from its turn to its last byte: a client that reads more slowly loses its connection. */
  readonly answerMs: number;
  /** How long an idle connection is kept: longer than the usual scrape interval, so that Prometheus keeps its own. */
  readonly keepAliveMs: number;
  /** In all. No client keeps more than it leaves free for others. */
  readonly connections: number;
  /** How long a request waits for its turn, and how long a slow answer is left alone while another request waits. */
  readonly patienceMs: number;
  /** The same for a request of a client that has no place, against clients that have several. */
  readonly newcomerMs: number;
  /** How long answers under way may take when the server closes. */
  readonly closeMs: number;
}

export const serverLimits: ServerLimits = {
  headersMs: 5_000,
  requestMs: 10_000,
  checkMs: 30_000,
  answerMs: 30_000,
  keepAliveMs: 75_000,
  connections: 128,
  patienceMs: 5_000,
  newcomerMs: 500,
  closeMs: 1_500,
};

export function createServer(parts: ServerParts, limits: ServerLimits = serverLimits): WebServer {
  const clock = parts.clock ?? systemClock;
  const timeouts = { headersTimeout: limits.headersMs, requestTimeout: limits.requestMs, keepAliveTimeout: limits.keepAliveMs };
  const scrapes = new ScrapeHandler(parts.exposition, clock);
  const bound = boundAnswers(parts.options['max-requests'], limits, clock);
  const signs = vitalSigns(() => parts.store.snapshot() !== undefined);
  // Scrapes and vital signs are most of what is asked, and often all: what the rest needs is not loaded for them.
  const rest = lateListener(async () => {
    const { createApp } = await import('./app.ts');
    return createApp(parts, { signs, bound, clock });
  }, parts.logger);
  const front = { path: parts.options['telemetry-path'], scrapes, bound, logger: parts.logger };
  const answer = scrapesBefore(vitalSignsBefore(rest, signs), front);
  const server = createHttpServer({ ...timeouts, connectionsCheckingInterval: limits.checkMs });
  boundConnections(server, { most: limits.connections, headersMs: limits.headersMs, clock }, answer);
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
