import type { IncomingMessage, ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { RequestHandler } from 'express';
import { type Board, isStarting, podDoubt, unreadIn } from '../../board/board.ts';
import type { Logger } from '../../log/logger.ts';
import { jsonText } from '../api/views.ts';

const compress = promisify(gzip);

/** Compression saves nothing below this size. */
export const WORTH_COMPRESSING_BYTES = 1_024;

const JSON_TYPE = 'application/json; charset=utf-8';
export const TEXT_TYPE = 'text/plain; charset=utf-8';
export const HTML_TYPE = 'text/html; charset=utf-8';

/** Sends a text, compressed if the client accepts it. Level 1 needs a third of the time of level 6, for 6 % more bytes. */
export async function sendText(
  request: IncomingMessage,
  response: ServerResponse,
  type: string,
  text: string,
  status = 200,
): Promise<void> {
  let body = Buffer.from(text);
  response.statusCode = status;
  response.setHeader('Content-Type', type);
  response.setHeader('Vary', 'Accept-Encoding');
  if (body.length >= WORTH_COMPRESSING_BYTES && acceptsGzip(headerOf(request, 'accept-encoding'))) {
    body = await compress(body, { level: 1 });
    response.setHeader('Content-Encoding', 'gzip');
  }
  if (response.destroyed) return;
  response.setHeader('Content-Length', body.length);
  response.end(request.method === 'HEAD' ? undefined : body);
}

export function sendJson(request: IncomingMessage, response: ServerResponse, value: unknown, status = 200): Promise<void> {
  return sendText(request, response, JSON_TYPE, jsonText(value), status);
}

/** Shows an error as a page. Until a client is let in, it shows nothing of the node. */
export type ErrorPage = (
  request: IncomingMessage,
  response: ServerResponse,
  status: number,
  code: string,
  message: string,
) => Promise<void>;

export const withErrorPage =
  (showError: ErrorPage): RequestHandler =>
  (_request, response, next) => {
    response.locals.showError = showError;
    next();
  };

/** Sends an error: JSON below `/api`, a page to a browser, one line of text to others. */
export function sendError(
  request: IncomingMessage,
  response: ServerResponse,
  status: number,
  code: string,
  message: string,
): Promise<void> {
  if (requestPath(request)?.startsWith('/api/') === true) return sendJson(request, response, { error: { code, message } }, status);
  const { showError } = (response as { locals?: { readonly showError?: ErrorPage } }).locals ?? {};
  if (showError !== undefined && headerOf(request, 'accept')?.includes('text/html') === true)
    return showError(request, response, status, code, message);
  return sendText(request, response, TEXT_TYPE, `${message}\n`, status);
}

/** Answers that there is no such device. Before a successful read of its family, it answers that this is not known yet. */
export function sendNoDevice(request: IncomingMessage, response: ServerResponse, board: Board | undefined, family: unknown): Promise<void> {
  const isKnown = board !== undefined && !unreadIn(board).some((one) => one === family);
  if (isKnown) return sendError(request, response, 404, 'device-unknown', 'There is no such device.');
  const parts = [
    board === undefined || isStarting(board) ? 'The first read runs.' : '',
    board === undefined ? '' : `Not read yet: ${family}.`,
  ];
  return sendError(request, response, 503, 'not-ready', parts.join(' ').trim());
}

/** Answers that no such pod holds a device. Without a full and present answer of the kubelet, it answers that this is not known. */
export function sendNoPod(request: IncomingMessage, response: ServerResponse, board: Board | undefined): Promise<void> {
  if (board === undefined || board.kubelet.state === 'starts')
    return sendError(request, response, 503, 'not-ready', 'The first read runs.');
  const doubt = podDoubt(board);
  if (doubt !== undefined) return sendError(request, response, 503, 'pod-not-known', doubt);
  return sendError(request, response, 404, 'pod-unknown', 'No such pod holds a device of this node.');
}

/** Logs an internal error and answers without details. */
export function sendFault(request: IncomingMessage, response: ServerResponse, logger: Logger, error: unknown): Promise<void> {
  logger.error('request failed', { path: requestPath(request), error });
  return sendError(request, response, 500, 'internal', "Internal error; see the agent's log.");
}

/** Sets the headers of every answer: no caching, and no content type sniffing. */
export function setCommonHeaders(response: ServerResponse): void {
  response.setHeader('X-Content-Type-Options', 'nosniff');
  response.setHeader('Cache-Control', 'no-store');
}

/** The server answers only GET and HEAD. */
export const isReading = ({ method }: IncomingMessage): boolean => method === 'GET' || method === 'HEAD';

/** Returns the path of a request as sent, without the query; undefined when it has none. */
export function requestPath({ url = '' }: IncomingMessage): string | undefined {
  if (url.startsWith('/')) return url.split('?', 1)[0];
  return URL.canParse(url) ? new URL(url).pathname : undefined;
}

/** Node joins the values of a repeated header. */
export const headerOf = ({ headers }: IncomingMessage, name: 'accept' | 'accept-encoding'): string | undefined => headers[name]?.toString();

/** One entry of an `Accept` or `Accept-Encoding` header. */
interface Preference {
  readonly value: string;
  readonly parameters: Readonly<Record<string, string>>;
  readonly quality: number;
}

/** Prometheus text format 0.0.4, or OpenMetrics 1.0. */
export type ScrapeFormat = 'text' | 'openmetrics';

/**
 * Returns the text format, unless the client names OpenMetrics with at least the same quality. A client that accepts neither gets the
 * text format, as with every exporter.
 */
export function chooseFormat(accept: string | undefined): ScrapeFormat {
  const preferences = parsePreferences(accept ?? '');
  const openMetrics = best(preferences, (one) => one.value === 'application/openmetrics-text' && isVersion(one, '1.0.0'));
  const text =
    best(preferences, (one) => one.value === 'text/plain' && isVersion(one, '0.0.4')) ??
    best(preferences, (one) => one.value === 'text/*') ??
    best(preferences, (one) => one.value === '*/*');
  return openMetrics !== undefined && openMetrics > 0 && openMetrics >= (text ?? 0) ? 'openmetrics' : 'text';
}

export function acceptsGzip(acceptEncoding: string | undefined): boolean {
  const preferences = parsePreferences(acceptEncoding ?? '');
  const gzip = best(preferences, (one) => one.value === 'gzip' || one.value === 'x-gzip') ?? best(preferences, (one) => one.value === '*');
  return gzip !== undefined && gzip > 0;
}

function best(preferences: readonly Preference[], matches: (one: Preference) => boolean): number | undefined {
  const qualities = preferences.filter(matches).map((one) => one.quality);
  return qualities.length === 0 ? undefined : Math.max(...qualities);
}

const isVersion = (one: Preference, version: string): boolean => (one.parameters.version ?? version) === version;

/** An entry with an invalid quality gets the quality 0, which means "not accepted". */
function parsePreferences(header: string): readonly Preference[] {
  return header
    .split(',')
    .map((entry) => entry.split(';').map((part) => part.trim()))
    .filter(([value]) => value !== undefined && value !== '')
    .map(([value = '', ...rest]) => {
      const parameters = Object.fromEntries(rest.map(parseParameter));
      return { value: value.toLowerCase(), parameters, quality: parseQuality(parameters.q) };
    });
}

function parseParameter(text: string): [string, string] {
  const at = text.indexOf('=');
  if (at < 0) return [text.toLowerCase(), ''];
  const value = text.slice(at + 1).trim();
  return [text.slice(0, at).trim().toLowerCase(), value.replace(/^"(.*)"$/, '$1')];
}

function parseQuality(text: string | undefined): number {
  if (text === undefined) return 1;
  return /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/.test(text) ? Number(text) : 0;
}

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
