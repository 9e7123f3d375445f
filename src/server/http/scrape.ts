import type { RequestHandler } from 'express';
import type { ScrapedPage } from '../parts.ts';
import { headerOf, WORTH_COMPRESSING_BYTES } from './answer.ts';
import { acceptsGzip, chooseFormat } from './negotiation.ts';

/** Answers scrapes with the current page, in the format and encoding that the client accepts. */
export function scrapeHandler(exposition: ScrapedPage): RequestHandler {
  return async (request, response) => {
    const format = chooseFormat(headerOf(request, 'accept'));
    const page = await exposition.page(format);
    const isGzip = page.plain.length >= WORTH_COMPRESSING_BYTES && acceptsGzip(headerOf(request, 'accept-encoding'));
    const body = isGzip ? await page.gzipped() : page.plain;
    if (response.destroyed) return;
    response.setHeader('Content-Type', exposition.contentTypes[format]);
    response.setHeader('Vary', 'Accept, Accept-Encoding');
    if (isGzip) response.setHeader('Content-Encoding', 'gzip');
    response.setHeader('Content-Length', body.length);
    response.end(request.method === 'HEAD' ? undefined : body);
  };
}
