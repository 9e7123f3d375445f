import type { IncomingMessage, ServerResponse } from 'node:http';
import { Router } from 'express';
import { html } from '../../board/html.ts';
import { type ErrorPage, HTML_TYPE, sendError, sendText, takes, withErrorPage } from '../../server/http/answer.ts';
import { type Assets, createAssets } from '../../server/pages/assets.ts';
import { protect } from '../../server/pages/protect.ts';
import type { Fleet, FleetNode } from '../fleet.ts';
import { heldPage } from './held-page.ts';
import { nodePage } from './node-page.ts';
import { overviewPage } from './overview.ts';
import { type FleetFrame, fleetDocument } from './parts.ts';
import { type FleetSources, SPANS, type Span } from './sources.ts';

const MOST_FILTER = 200;

/** The pages of a fleet, for people. */
export function fleetPages(sources: FleetSources, assets: Assets = createAssets()): Router {
  const frame = (): FleetFrame => ({
    version: sources.version,
    pathOf: assets.pathOf,
    nowMs: sources.now(),
    fleet: sources.fleet(),
  });
  const send = (request: IncomingMessage, response: ServerResponse, text: string, status = 200): Promise<void> => {
    protect(response);
    return sendText(request, response, HTML_TYPE, text, status);
  };
  const showError: ErrorPage = (request, response, status, code, message) => {
    const body = html`<section class="say unknown"><h1>${message}</h1><p><a href="/">All nodes</a> <small>${status} ${code}</small></p></section>`;
    return send(request, response, fleetDocument(frame(), { title: message, body }), status);
  };
  const notRead = (request: IncomingMessage, response: ServerResponse): Promise<void> =>
    sendError(
      request,
      response,
      503,
      'not-ready',
      `Nothing is known of the fleet. Prometheus: ${sources.trouble?.() ?? 'it has not answered yet'}.`,
    );
  const router = Router();
  router.use(withErrorPage(showError));
  router.use(assets.router);
  router.get('/', takes('text'), (request, response) => {
    const fleet = sources.fleet();
    if (fleet === undefined) return notRead(request, response);
    const filter = String(request.query.text ?? '')
      .slice(0, MOST_FILTER)
      .trim();
    const shown = filter === '' ? fleet.nodes : sources.filter(fleet, filter);
    return send(request, response, overviewPage(fleet, { sentence: sources.sentence(fleet), filter, shown }, frame()));
  });
  router.get('/nodes/:node', takes('cluster', 'span'), async (request, response) => {
    const fleet = sources.fleet();
    if (fleet === undefined) return notRead(request, response);
    const span = String(request.query.span ?? '24h');
    if (!isSpan(span)) return sendError(request, response, 400, 'span-invalid', `span is one of ${Object.keys(SPANS).join(', ')}.`);
    const node = nodeOf(fleet, String(request.params.node), request.query.cluster);
    if (node === undefined) return sendError(request, response, 404, 'node-unknown', 'Prometheus knows no such node.');
    const detail = await sources.node(node, span);
    return send(request, response, nodePage(fleet, { node, detail, span, boardUrl: sources.boardUrl?.(node) }, frame()));
  });
  const held = async (request: IncomingMessage, response: ServerResponse, namespace: string, pod: string | undefined): Promise<void> => {
    const fleet = sources.fleet();
    if (fleet === undefined) return notRead(request, response);
    return send(request, response, heldPage(fleet, namespace, pod, await sources.held(namespace, pod), frame()));
  };
  router.get('/namespaces/:namespace', takes(), (request, response) =>
    held(request, response, String(request.params.namespace), undefined),
  );
  router.get('/pods/:namespace/:pod', takes(), (request, response) =>
    held(request, response, String(request.params.namespace), String(request.params.pod)),
  );
  return router;
}

const isSpan = (text: string): text is Span => Object.hasOwn(SPANS, text);

const nodeOf = ({ nodes }: Fleet, name: string, cluster: unknown): FleetNode | undefined =>
  nodes.find((one) => one.name === name && (cluster === undefined || one.cluster === cluster));
