import { createHash } from 'node:crypto';
import { type Response, Router } from 'express';
import type { Snapshot } from '../../model/snapshot.ts';
import type { RemedyOf } from '../api/views.ts';
import { HTML_TYPE, sendError, sendText } from '../http/answer.ts';
import type { IncidentSource } from '../parts.ts';
import { devicePage } from './device-page.ts';
import { incidentPage } from './incident-page.ts';
import { overviewPage } from './overview-page.ts';
import type { PageFrame } from './page-parts.ts';
import { PAGE_STYLE } from './page-style.ts';

export interface PageSources extends Omit<PageFrame, 'nowMs'> {
  snapshot(): Snapshot | undefined;
  readonly incidents?: IncidentSource | undefined;
  remedyOf: RemedyOf;
  now(): number;
}

/** Creates the HTML pages. They use no scripts and load nothing. */
export function createPages(sources: PageSources): Router {
  const router = Router();
  const frame = (): PageFrame => ({ ...sources, nowMs: sources.now() });
  const policy = contentSecurityPolicy();

  router.get('/', (request, response) => {
    protect(response, policy);
    return sendText(request, response, HTML_TYPE, overviewPage(sources.snapshot(), frame(), sources.remedyOf));
  });
  router.get('/devices/:family/:id', (request, response) => {
    const { family, id } = request.params;
    const state = sources.snapshot()?.devices.find(({ device }) => device.family === family && device.id === id);
    if (state === undefined) return sendError(request, response, 404, 'device-unknown', 'There is no such device.');
    protect(response, policy);
    const incidents = (sources.incidents?.list() ?? []).filter(({ device }) => device === state.key);
    return sendText(request, response, HTML_TYPE, devicePage(state, frame(), incidents));
  });
  router.get('/incidents/:incident', async (request, response) => {
    const read = await sources.incidents?.read(String(request.params.incident));
    if (read === undefined) return sendError(request, response, 404, 'incident-unknown', 'There is no such incident.');
    if (read.problem !== undefined) return sendError(request, response, 500, 'incident-unreadable', 'The record cannot be read.');
    protect(response, policy);
    return sendText(request, response, HTML_TYPE, incidentPage(read.record, frame()));
  });
  return router;
}

/** Allows only the page's own style sheet, which is identified by its hash. */
function contentSecurityPolicy(): string {
  const hash = createHash('sha256').update(PAGE_STYLE).digest('base64');
  return `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;
}

function protect(response: Response, policy: string): void {
  response.setHeader('Content-Security-Policy', policy);
  response.setHeader('X-Frame-Options', 'DENY');
  response.setHeader('Referrer-Policy', 'no-referrer');
}
