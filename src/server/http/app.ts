import { isIP } from 'node:net';
import express, { type ErrorRequestHandler, type Express, type RequestHandler, type Router } from 'express';
import { declaredBy } from '../../board/board.ts';
import { systemClock } from '../../host/clock.ts';
import type { Logger } from '../../log/logger.ts';
import { IDENTITY_HEADER, identityText } from '../../model/agent-stats.ts';
import { basicAuth } from '../access/basic-auth.ts';
import type { Passwords } from '../access/passwords.ts';
import { createApi } from '../api/api.ts';
import { createUsageApi } from '../api/usage.ts';
import type { BoardSource } from '../feed/board-source.ts';
import { showRefusal } from '../pages/error-page.ts';
import { createPages, PAGE_PATHS } from '../pages/pages.ts';
import type { ScrapedPage, ServerDependencies } from '../parts.ts';
import {
  acceptsGzip,
  chooseFormat,
  headerOf,
  isReading,
  requestPath,
  sendError,
  sendFault,
  sendText,
  setCommonHeaders,
  TEXT_TYPE,
  takes,
  WORTH_COMPRESSING_BYTES,
  withErrorPage,
} from './answer.ts';
import { takeTurns } from './connections.ts';
import { RELEASE_PATH, RELOAD_PATH, releaseHandler, reloadHandler } from './lifecycle.ts';
import { limitAnswers, limitRate } from './limit-answers.ts';
import { READY_PARAMETERS, type ReadySources, readyHandler } from './ready-devices.ts';

export interface AppDependencies {
  readonly passwords: Passwords;
  readonly answerMs: number;
  /** Routes of answers that do not end. */
  readonly streams: readonly { readonly router: Router }[];
  /** When the newest connection was accepted, on the monotonic clock. */
  readonly acceptedMs: () => number;
  readonly board: BoardSource;
}

/** Creates all routes. Earlier routes take precedence: health checks, metrics, API, pages. */
export function createApp(parts: ServerDependencies, { passwords, answerMs, streams, board, acceptedMs }: AppDependencies): Express {
  const { store, families, version, node, options, exposition, logger, clock = systemClock } = parts;
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.use(
    commonHeaders(() => parts.access?.current.headers ?? {}),
    onlyReading,
  );
  // Health checks come before password and limit, so that the kubelet is always answered.
  app.get(['/healthz', '/-/healthy'], (request, response) => {
    const fault = parts.fault?.();
    return sendText(request, response, TEXT_TYPE, `${fault ?? 'ok'}\n`, fault === undefined ? 200 : 503);
  });
  app.get(['/readyz', '/-/ready'], (request, response) =>
    store.snapshot() === undefined
      ? sendText(request, response, TEXT_TYPE, 'The first snapshot is not ready yet.\n', 503)
      : sendText(request, response, TEXT_TYPE, 'ok\n'),
  );
  if (options.page) app.use(withErrorPage(showRefusal));
  app.use(limitRate(() => parts.access?.current.rateLimit, clock));
  const inTurn = takeTurns(acceptedMs);
  app.use(inTurn, allowHosts(options['allowed-hosts'], parts.hostNames ?? []));
  // Passwords come before the limit, so that wrong ones take no place of a scrape.
  app.use(basicAuth(passwords, logger), identified(parts));
  // Before the limit too: a refusal would look like devices that are not ready, and the answer is short.
  app.get('/-/ready/devices', takes(...READY_PARAMETERS), readyHandler(readySources(parts)));
  if (options.api) for (const { router } of streams) app.use(router);
  // Again, for those that got a place: the others are refused first.
  app.use(limitAnswers(options['max-requests'], answerMs, clock), inTurn);
  app.all(RELOAD_PATH, reloadHandler(options['enable-lifecycle'], parts.reload));
  app.all(RELEASE_PATH, releaseHandler(options['enable-lifecycle'], parts.release));
  const scrape = scrapeHandler(exposition);
  // Compares plain text, because Express would interpret special characters of the configured path.
  app.use((request, response, next) => (requestPath(request) === options['telemetry-path'] ? scrape(request, response, next) : next()));
  const { history, events, watched, incidents, plugin, fault } = parts;
  const sources = { snapshot: () => store.snapshot(), board, history, events, incidents, now: () => clock.now() };
  if (options.api && parts.usage !== undefined) app.use(createUsageApi(parts.usage));
  if (options.api) app.use(createApi({ ...sources, status: () => parts.status(), remedyOf: declaredBy(families).remedyOf }));
  else app.use('/api', off('api-off', 'The API is off: --web.api is false.'));
  if (options.page) {
    const isLive = options.api && store.subscribe !== undefined;
    const frame = {
      version,
      node,
      telemetryPath: options['telemetry-path'],
      hasApi: options.api,
      isLive,
      grafanaUrl: options['grafana-url'],
    };
    app.use(createPages({ ...frame, ...sources, usage: parts.usage, watched, plugin, fault, families }));
  } else app.get(PAGE_PATHS, off('page-off', 'The HTML pages are off: --web.page is false.'));
  app.use((request, response) => sendError(request, response, 404, 'not-found', `There is nothing at ${request.path}.`));
  app.use(failure(logger));
  return app;
}

function readySources({ store, families, fault, isUsable, devicesOf }: ServerDependencies): ReadySources {
  return {
    snapshot: () => store.snapshot(),
    fault: () => fault?.(),
    families: families.map(({ name }) => name),
    rules: {
      isUsable: isUsable ?? (({ state }) => state === 'healthy' || state === 'degraded'),
      devicesOf: (resource) => devicesOf?.(resource),
    },
  };
}

const commonHeaders =
  (configured: () => Readonly<Record<string, string>>): RequestHandler =>
  (_request, response, next) => {
    setCommonHeaders(response);
    for (const [name, value] of Object.entries(configured())) response.setHeader(name, value);
    next();
  };

/** A client that asks by an address must see whom it asked. */
function identified({ node }: ServerDependencies): RequestHandler {
  const startedMs = Date.now() - process.uptime() * 1_000;
  const text = node === undefined ? undefined : identityText({ node, pid: process.pid, startedMs });
  return (_request, response, next) => {
    if (text !== undefined) response.setHeader(IDENTITY_HEADER, text);
    next();
  };
}

const off =
  (code: string, message: string): RequestHandler =>
  (request, response) =>
    sendError(request, response, 404, code, message);

const onlyReading: RequestHandler = (request, response, next) => {
  if (isReading(request) || (request.method === 'POST' && [RELOAD_PATH, RELEASE_PATH].some((path) => requestPath(request) === path)))
    return next();
  response.setHeader('Allow', 'GET, HEAD');
  response.setHeader('Connection', 'close');
  return sendError(request, response, 405, 'method-not-allowed', `${request.method} is not allowed here; GET and HEAD are.`);
};

/** Reports an error of the request (a path that cannot be decoded) to the client. Logs an internal error and answers without details. */
function failure(logger: Logger): ErrorRequestHandler {
  return (error: { status?: unknown }, request, response, next) => {
    if (response.headersSent) return next(error);
    if (error.status === 400) return sendError(request, response, 400, 'bad-request', 'The path of the request cannot be read.');
    return sendFault(request, response, logger, error);
  };
}

/** Answers scrapes with the current page, in the format and encoding that the client accepts. */
function scrapeHandler(exposition: ScrapedPage): RequestHandler {
  return async (request, response) => {
    const format = chooseFormat(headerOf(request, 'accept'));
    const page = await exposition.page(format);
    const isGzip = lengthOf(page.plain) >= WORTH_COMPRESSING_BYTES && acceptsGzip(headerOf(request, 'accept-encoding'));
    const body = isGzip ? await page.gzipped() : page.plain;
    if (response.destroyed) return;
    response.setHeader('Content-Type', exposition.contentTypes[format]);
    response.setHeader('Vary', 'Accept, Accept-Encoding');
    if (isGzip) response.setHeader('Content-Encoding', 'gzip');
    response.setHeader('Content-Length', lengthOf(body));
    if (request.method !== 'HEAD') for (const piece of body) response.write(piece);
    response.end();
  };
}

const lengthOf = (pieces: readonly Buffer[]): number => pieces.reduce((sum, { length }) => sum + length, 0);

/**
 * Answers only requests that address the agent by an IP address or by one of its names. A web page in a browser can make a name of its own
 * resolve to the agent's address (DNS rebinding) and then read every answer; its requests still carry that name as `Host`.
 */
function allowHosts(allowed: readonly string[], ownNames: readonly string[]): RequestHandler {
  const names = new Set(['localhost', ...ownNames, ...allowed].map((name) => name.toLowerCase()));
  return (request, response, next) => {
    const { host } = request.headers;
    // Browsers always send the header, and cannot reach a unix socket, which has no remote address.
    const isOutsideBrowsers = host === undefined || request.socket.remoteAddress === undefined;
    if (names.has('*') || isOutsideBrowsers || isAllowed(hostOf(host), names)) return next();
    const remedy = 'Address it by IP address or node name, or add the name to --web.allowed-hosts.';
    return sendError(request, response, 421, 'host-not-allowed', `The agent does not answer to this host name. ${remedy}`);
  };
}

const isAllowed = (name: string, names: ReadonlySet<string>): boolean => isIP(name) !== 0 || names.has(name);

/** Returns the host of a `Host` header in lower case, without the port, without brackets and without the dot at the end. */
function hostOf(header: string): string {
  const text = header.trim().toLowerCase();
  const ipv6 = /^\[([^\]]*)\](?::\d*)?$/.exec(text)?.[1];
  return ipv6 ?? text.replace(/:\d*$/, '').replace(/\.$/, '');
}
