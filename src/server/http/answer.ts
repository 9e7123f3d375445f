import type { IncomingMessage, ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Logger } from '../../log/logger.ts';
import { jsonText } from '../api/views.ts';
import { acceptsGzip } from './negotiation.ts';

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

/** Sends an error: JSON below `/api`, one line of text elsewhere. */
export function sendError(
  request: IncomingMessage,
  response: ServerResponse,
  status: number,
  code: string,
  message: string,
): Promise<void> {
  if (requestPath(request)?.startsWith('/api/') === true) return sendJson(request, response, { error: { code, message } }, status);
  return sendText(request, response, TEXT_TYPE, `${message}\n`, status);
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
