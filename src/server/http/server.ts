import type { RequestListener, Server } from 'node:http';
import { declaredBy } from '../../board/board.ts';
import { systemClock } from '../../host/clock.ts';
import { createServer as createHttpServer } from '../../host/node-http.ts';
import { OPEN_ACCESS } from '../access/access.ts';
import { PasswordThread } from '../access/password-thread.ts';
import { Passwords } from '../access/passwords.ts';
import { BoardFeed } from '../feed/board-feed.ts';
import { BoardSource } from '../feed/board-source.ts';
import { createBoardWatch, createHealthWatch, type Watch } from '../feed/watch.ts';
import type { ServerDependencies } from '../parts.ts';
import { type AppDependencies, createApp } from './app.ts';
import { Connections } from './connections.ts';
import { listen } from './listen.ts';
import { createTlsServer } from './tls-server.ts';

export interface WebServer {
  /** Binds the configured address and returns the reachable address. Fails with the user error `listen-failed`. */
  listen(): Promise<string>;
  /** Answers as the API does, to commands of the user of the agent: needs no password and has no limit. */
  readonly local: RequestListener;
  /** Closes idle connections immediately, and the others after their answer or a short timeout. */
  close(): Promise<void>;
}

/** Limits for clients. */
export interface ServerLimits {
  /** Timeout for the headers of a request. */
  readonly headersMs: number;
  /** Timeout for a complete request. */
  readonly requestMs: number;
  /** Interval of the timeout checks; each check wakes the process. */
  readonly checkMs: number;
  /** Timeout for an answer, from the request to the last byte. The server closes the connection of a client that reads more slowly. */
  readonly answerMs: number;
  /** How long an idle connection is kept: longer than the usual scrape interval, so that Prometheus can reuse its connection. */
  readonly keepAliveMs: number;
  /** Maximum number of connections; a further one takes the place of another, see {@link Connections}. */
  readonly connections: number;
  /** How long a closing server waits for running answers. */
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

export function createServer(parts: ServerDependencies, limits: ServerLimits = serverLimits): WebServer {
  const timeouts = {
    headersTimeout: limits.headersMs,
    requestTimeout: limits.requestMs,
    keepAliveTimeout: limits.keepAliveMs,
    connectionsCheckingInterval: limits.checkMs,
  };
  const { access } = parts;
  const { tls, users } = access?.current ?? OPEN_ACCESS;
  const thread = new PasswordThread(parts.clock ?? systemClock);
  const passwords = new Passwords(parts.comparePassword ?? ((password, hash) => thread.compare(password, hash)), users);
  const watch = parts.feed === undefined ? undefined : createHealthWatch(parts.feed);
  const board = boardSource(parts);
  const boardWatch = watchBoard(parts, board);
  const streams = [watch, boardWatch].filter((one) => one !== undefined);
  access?.subscribe((changed) => passwords.use(changed.users));
  const connections = new Connections(limits.connections);
  const app = connections.oneAtATime(
    createApp(parts, { passwords, answerMs: limits.answerMs, streams, board, acceptedMs: () => connections.acceptedMs }),
  );
  const server = access === undefined || tls === undefined ? createHttpServer(timeouts, app) : createTlsServer(timeouts, app, tls, access);
  connections.accept(server);
  return {
    local: localApp(parts, board, limits.answerMs, watch === undefined ? [] : [watch]),
    listen: () => listen(server, parts.options['listen-address']),
    async close() {
      thread.close();
      for (const stream of streams) stream.end();
      await close(server, limits.closeMs);
    },
  };
}

/** Only the API with the health feed, and the metrics: pages and the board are for browsers. */
function localApp(
  { access: _access, ...parts }: ServerDependencies,
  board: BoardSource,
  answerMs: number,
  streams: AppDependencies['streams'],
): RequestListener {
  const options = { ...parts.options, api: true, page: false, 'enable-lifecycle': false, 'max-requests': 0 };
  const passwords = new Passwords(() => Promise.resolve(false), OPEN_ACCESS.users);
  return createApp({ ...parts, options }, { passwords, answerMs, streams, board, acceptedMs: () => 0 });
}

function boardSource({ store, history, incidents, node, fault, families, clock = systemClock }: ServerDependencies): BoardSource {
  return new BoardSource({
    snapshot: () => store.snapshot(),
    history,
    incidents: () => incidents?.list() ?? [],
    node,
    fault: () => fault?.(),
    ...declaredBy(families),
    now: () => clock.now(),
  });
}

function watchBoard({ store, clock = systemClock }: ServerDependencies, board: BoardSource): Watch | undefined {
  if (store.subscribe === undefined) return undefined;
  const subscribe = (notify: () => void): (() => void) => store.subscribe?.(notify) ?? (() => undefined);
  return createBoardWatch(new BoardFeed({ subscribe, current: () => board.current(), clock }), () => store.snapshot() !== undefined);
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
