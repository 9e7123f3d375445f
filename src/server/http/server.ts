import { createServer as createHttpServer, type Server } from 'node:http';
import type { ServerParts } from '../parts.ts';
import { createApp } from './app.ts';
import { listen } from './listen.ts';

export interface WebServer {
  /** Binds the configured address; gives where it can be reached. Fails with the user error `listen-failed`. */
  listen(): Promise<string>;
  /** Ends idle connections at once, answers under way after a moment. */
  close(): Promise<void>;
}

/** What clients can take of the server. */
export interface ServerLimits {
  /** For the head of a request. */
  readonly headersMs: number;
  /** For a whole request. */
  readonly requestMs: number;
  /** Between two looks at all connections, each of which wakes the process. */
  readonly checkMs: number;
  /** For an answer, from its request to its last byte: a client that reads more slowly loses its connection. */
  readonly answerMs: number;
  /** How long an idle connection is kept: longer than the usual scrape interval, so that Prometheus keeps its own. */
  readonly keepAliveMs: number;
  /** Further connections are closed at once. */
  readonly connections: number;
  /** How long answers under way may take when the server closes. */
  readonly closeMs: number;
}

export const serverLimits: ServerLimits = {
  headersMs: 5_000,
  requestMs: 10_000,
  checkMs: 15_000,
  answerMs: 30_000,
  keepAliveMs: 75_000,
  connections: 256,
  closeMs: 1_500,
};

export function createServer(parts: ServerParts, limits: ServerLimits = serverLimits): WebServer {
  const timeouts = {
    headersTimeout: limits.headersMs,
    requestTimeout: limits.requestMs,
    keepAliveTimeout: limits.keepAliveMs,
    connectionsCheckingInterval: limits.checkMs,
  };
  const server = createHttpServer(timeouts, createApp(parts, limits.answerMs));
  server.maxConnections = limits.connections;
  return {
    listen: () => listen(server, parts.options['listen-address']),
    close: () => close(server, limits.closeMs),
  };
}

function close(server: Server, graceMs: number): Promise<void> {
  return new Promise((resolve) => {
    if (!server.listening) return resolve();
    const timer = setTimeout(() => server.closeAllConnections(), graceMs);
    server.close(() => {
      clearTimeout(timer);
      resolve();
    });
    server.closeIdleConnections();
  });
}
