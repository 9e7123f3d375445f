import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Request, Response } from 'express';
import { acceptsGzip } from './negotiation.ts';

const compress = promisify(gzip);

/** Below this a compressed answer saves nothing. */
export const WORTH_COMPRESSING_BYTES = 1_024;

export const JSON_TYPE = 'application/json; charset=utf-8';
export const TEXT_TYPE = 'text/plain; charset=utf-8';
export const HTML_TYPE = 'text/html; charset=utf-8';

/** Sends a whole text, compressed where the client accepts it. Level 1: a third of the time of level 6 for 6 % more bytes. */
export async function sendText(request: Request, response: Response, type: string, text: string, status = 200): Promise<void> {
  let body = Buffer.from(text);
  response.status(status).setHeader('Content-Type', type);
  response.vary('Accept-Encoding');
  if (body.length >= WORTH_COMPRESSING_BYTES && acceptsGzip(request.get('accept-encoding'))) {
    body = await compress(body, { level: 1 });
    response.setHeader('Content-Encoding', 'gzip');
  }
  if (response.destroyed) return;
  response.setHeader('Content-Length', body.length);
  response.end(request.method === 'HEAD' ? undefined : body);
}

export function sendJson(request: Request, response: Response, value: unknown, status = 200): Promise<void> {
  return sendText(request, response, JSON_TYPE, `${JSON.stringify(value, bigintSafe)}\n`, status);
}

/** Short and clear: JSON below `/api`, one line of text elsewhere. */
export function sendError(request: Request, response: Response, status: number, code: string, message: string): Promise<void> {
  if (request.path.startsWith('/api/')) return sendJson(request, response, { error: { code, message } }, status);
  return sendText(request, response, TEXT_TYPE, `${message}\n`, status);
}

/** Integers that a JSON reader would round are given as strings of digits. */
function bigintSafe(_key: string, value: unknown): unknown {
  if (typeof value !== 'bigint') return value;
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value.toString();
}
