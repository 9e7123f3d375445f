import { type Request, type RequestHandler, type Response, Router } from 'express';
import { parseQuery } from '../../accounting/query.ts';
import { type Board, unreadIn } from '../../board/board.ts';
import type { DeviceView } from '../../board/device-view.ts';
import { type Html, html } from '../../board/html.ts';
import {
  filterHtml,
  podsHtml,
  problemsHtml,
  sayHtml,
  shownText,
  type TrendsByKey,
  tableHtml,
  unresolvedHtml,
} from '../../board/overview-html.ts';
import { devicePath, incidentPath, latestIncidentPath } from '../../board/paths.ts';
import { pictureHtml } from '../../board/places-html.ts';
import { TREND_MS } from '../../board/trend.ts';
import { type BoardView, DEFAULT_VIEW, parseView, VIEW_PARAMETERS, viewOf, viewQuery } from '../../board/view.ts';
import { isOfDevice } from '../../incidents/by-device.ts';
import type { ReadingHistoryStore } from '../../incidents/history.ts';
import type { ListedIncident } from '../../incidents/record.ts';
import type { PluginStats } from '../../model/agent-stats.ts';
import type { ActivitySpec } from '../../model/declaration.ts';
import type { HealthEvent } from '../../model/events.ts';
import { hardwareKey } from '../../model/hardware.ts';
import type { ConditionSpec } from '../../model/health.ts';
import type { ObservedSpans } from '../../model/observed-spans.ts';
import type { DeviceState, Snapshot } from '../../model/snapshot.ts';
import type { ReportUsage } from '../api/usage.ts';
import type { BoardSource } from '../feed/board-source.ts';
import {
  type ErrorPage,
  HTML_TYPE,
  sendError,
  sendNoDevice,
  sendNoPod,
  sendText,
  TEXT_TYPE,
  takes,
  withErrorPage,
} from '../http/answer.ts';
import type { IncidentSource } from '../parts.ts';
import { agentPage } from './agent-page.ts';
import { createAssets } from './assets.ts';
import { conditionsPage } from './conditions-page.ts';
import { devicePage } from './device-page.ts';
import { createDocuments, DOCUMENTS_PATH } from './documents.ts';
import { errorPage } from './error-page.ts';
import { type IncidentFacts, incidentsPage } from './incident-list.ts';
import { incidentPage } from './incident-page.ts';
import { incidentText } from './incident-text.ts';
import { document, facts, type PageFrame, titleHtml } from './page-parts.ts';
import { podPage } from './pod-page.ts';
import { protect } from './protect.ts';
import { usagePage } from './usage-page.ts';

export interface PageSources extends Omit<PageFrame, 'nowMs' | 'pathOf' | 'board'> {
  readonly board: BoardSource;
  snapshot(): Snapshot | undefined;
  readonly history?: (() => ReadingHistoryStore) | undefined;
  readonly events?: ((since: number) => readonly HealthEvent[]) | undefined;
  readonly watched?: (() => ObservedSpans) | undefined;
  readonly incidents?: IncidentSource | undefined;
  readonly usage?: ReportUsage | undefined;
  readonly plugin?: (() => PluginStats | undefined) | undefined;
  readonly fault?: (() => string | undefined) | undefined;
  readonly families: readonly DeclaredFamily[];
  now(): number;
}

/** Paths of the pages, for the answer while they are off. */
export const PAGE_PATHS = [
  '/',
  '/devices/:family/:id',
  '/pods/:namespace/:pod',
  '/incidents',
  '/incidents/latest',
  '/incidents/:incident',
  '/usage',
  '/agent',
  '/conditions',
  DOCUMENTS_PATH,
];

/** Creates the HTML pages. They load only files of this server, and work without a script. */
export function createPages(sources: PageSources): Router {
  const router = Router();
  const assets = createAssets();
  const frame = (): PageFrame => ({ ...sources, board: sources.board.current(), pathOf: assets.pathOf, nowMs: sources.now() });
  const incidentFacts = (): IncidentFacts => ({
    incidents: sources.incidents?.list() ?? [],
    events: sources.events?.(0) ?? [],
    snapshot: sources.snapshot(),
    board: sources.board.current(),
    nowMs: sources.now(),
  });
  const send = (request: Request, response: Response, page: string): Promise<void> => {
    protect(response);
    return sendText(request, response, HTML_TYPE, page);
  };
  const page =
    (render: (request: Request) => string): RequestHandler =>
    (request, response) =>
      send(request, response, render(request));

  const showError: ErrorPage = (request, response, status, code, message) => {
    protect(response);
    return sendText(request, response, HTML_TYPE, errorPage(request, { status, code, message }, frame()), status);
  };
  router.use(withErrorPage(showError));
  router.use(
    assets.router,
    createDocuments((request, response, { title, body, device }) => {
      const row = sources.board.current()?.devices.find(({ id }) => id === device);
      const text = html`${titleHtml(['/docs/runbooks/README.md', 'Runbooks'], title, undefined)}${row && evidenceHtml(row)}<section class="card prose">${body}</section>`;
      return send(request, response, document(frame(), { title: title.text, body: text, liveness: 'none' }));
    }),
  );
  router.get('/', takes(...VIEW_PARAMETERS), (request, response) => {
    const { view, problem } = parseView(request.query);
    if (problem !== undefined) return sendError(request, response, 400, 'parameter-invalid', problem);
    const trends = sources.board.trends();
    return send(
      request,
      response,
      overviewPage(sources.board.current(), view, (key) => trends[key], frame()),
    );
  });
  router.get('/devices/:family/:id', (request, response) => {
    const { family, id } = request.params;
    const state = sources.snapshot()?.devices.find(({ device }) => device.family === family && device.id === id);
    const board = sources.board.current();
    const row = board?.devices.find(({ key }) => key === state?.key);
    if (state === undefined || board === undefined || row === undefined) return sendNoDevice(request, response, board, family);
    const { key } = state;
    const parts = {
      state,
      row,
      board,
      history: sources.history?.().seriesOf(key, sources.now() - TREND_MS),
      events: (sources.events?.(0) ?? []).filter(({ device }) => device === key).toReversed(),
      watched: sources.watched?.(),
      incidents: (sources.incidents?.list() ?? []).filter((one) => isOfDevice(one, key, hardwareKey(state.device))),
      numbersOf: (one: DeviceState) => sources.board.numbersOf(one),
    };
    return send(request, response, devicePage(parts, frame()));
  });
  router.get('/pods/:namespace/:pod', (request, response) => {
    const [snapshot, board] = [sources.snapshot(), sources.board.current()];
    const { namespace, pod } = request.params;
    const found =
      snapshot &&
      board &&
      podPage(namespace, pod, board, snapshot, frame(), {
        historyOf: (key) => sources.history?.().seriesOf(key, sources.now() - TREND_MS),
        incidents: sources.incidents?.list() ?? [],
      });
    return found === undefined ? sendNoPod(request, response, board) : send(request, response, found);
  });
  router.get(
    '/agent',
    page(() =>
      agentPage(
        {
          board: sources.board.current(),
          snapshot: sources.snapshot(),
          fault: sources.fault?.(),
          plugin: sources.plugin?.(),
          historyBytes: sources.history?.().bytes,
        },
        frame(),
      ),
    ),
  );
  router.get(
    '/conditions',
    page(() => conditionsPage(ownFirst(sources.families, sources.board.current()), frame())),
  );
  router.get(
    '/incidents',
    page(() => incidentsPage(incidentFacts(), frame())),
  );
  const { usage } = sources;
  if (usage !== undefined)
    router.get('/usage', takes('since', 'by', 'family'), async (request, response) => {
      // Hours of GPUs and hours of adapters cannot be compared. So the page begins with the accelerators, unless the address has a family.
      const { since = '24h', by = 'pod', family = acceleratorOf(sources.families, sources.board.current()) } = request.query;
      const { query, problem } = parseQuery({ since, by, family: family === '' ? undefined : family });
      if (query === undefined) return sendError(request, response, 400, 'usage-query-invalid', `The query is not valid: ${problem}.`);
      return send(request, response, usagePage(await usage(query), query, String(since), frame()));
    });
  router.get('/incidents/latest', takes('device'), (request, response) => {
    const id = String(request.query.device);
    const states = sources.snapshot()?.devices.filter(({ device }) => device.id === id) ?? [];
    const isOf = (one: ListedIncident): boolean =>
      states.length === 0
        ? one.device.slice(one.device.indexOf('/') + 1) === id
        : states.some(({ key, device }) => isOfDevice(one, key, hardwareKey(device)));
    const newest = sources.incidents?.list().find(isOf);
    if (newest !== undefined) return response.redirect(302, incidentPath(newest.id));
    const [state] = states;
    const board = sources.board.current();
    return state === undefined
      ? sendNoDevice(request, response, board, board && unreadIn(board)[0])
      : response.redirect(302, devicePath(state.device));
  });
  router.get('/incidents/:incident', takes('as'), async (request, response) => {
    const read = await sources.incidents?.read(String(request.params.incident));
    if (read === undefined) return sendError(request, response, 404, 'incident-unknown', 'There is no such incident.');
    if (read.problem !== undefined) return sendError(request, response, 500, 'incident-unreadable', 'The record cannot be read.');
    if (request.query.as === 'text') return sendText(request, response, TEXT_TYPE, incidentText(read.record));
    return send(request, response, incidentPage(read.record, incidentFacts(), frame()));
  });
  return router;
}

/** Above a runbook: the device of the link, and its record. A reset wipes what the record keeps. */
const evidenceHtml = (device: DeviceView): Html =>
  html`<section class="card prose" aria-label="Evidence"><p>Evidence to save before a reset: <a href="${latestIncidentPath(device.id)}">the record of the incident of ${device.name}</a>. How it is now: <a href="${devicePath(device)}">its page</a>.</p></section>`;

/** The keys of `live.ts`. Without that script there are no keys, and their dialog never opens. */
const KEYS = [
  ['/', 'Go to the filter'],
  ['Escape', 'Leave the filter, or close this'],
  ['arrows, j, k', 'Next and previous device; on the map, the next tile'],
  ['Enter', 'Open the device'],
  ['?', 'Show these keys'],
] as const;

/** Renders the devices of a view on one page, or a notice before the first snapshot. It is complete without a script. */
function overviewPage(board: Board | undefined, view: BoardView, trendOf: TrendsByKey, frame: PageFrame): string {
  if (board === undefined) {
    const body = html`<section class="say unknown"><h1>The first read runs</h1><p>The agent reads the hardware for the first time. This page loads again by itself.</p></section>`;
    return document(frame, { at: '/', body, liveness: 'none', againS: 2 });
  }
  const sections = viewOf(board, view);
  const body = html`<div id="say">${sayHtml(board)}</div>
<div id="problems">${problemsHtml(board)}</div>
<div class="overview"><div id="map">${pictureHtml(board, view)}</div>
<section class="card" id="table" aria-label="Devices">${filterHtml(board, view)}
<p id="shown" class="soft">${shownText(board, sections)}</p>
<div class="scroll">${tableHtml(sections, view, trendOf, frame.nowMs)}</div></section>
<div id="pods">${podsHtml(board)}</div></div>
<div id="unresolved">${unresolvedHtml(board)}</div>
<dialog id="keys" aria-labelledby="keys-title"><div class="head"><h2 id="keys-title">Keys</h2></div>${facts(KEYS)}<form method="dialog" class="body"><button>Close</button></form></dialog>`;
  const at = viewQuery({ ...DEFAULT_VIEW, group: view.group });
  return document(frame, { at: `/${at}`, body, json: '/api/v1/devices', liveness: 'board' });
}

interface DeclaredFamily {
  readonly name: string;
  readonly conditions?: readonly ConditionSpec[];
  readonly activity?: ActivitySpec;
}

/** The family of accelerators of the node: its devices have engines. Undefined when there is none, or more than one. */
function acceleratorOf(families: readonly DeclaredFamily[], board: Board | undefined): string | undefined {
  const here = new Set(board?.devices.map(({ family }) => family));
  const [one, another] = families.filter(({ name, activity }) => activity?.utilization !== undefined && here.has(name));
  return another === undefined ? one?.name : undefined;
}

/** Families of which the node has devices come first. */
function ownFirst<T extends DeclaredFamily>(families: readonly T[], board: Board | undefined): readonly T[] {
  const here = new Set(board?.devices.map(({ family }) => family));
  return families.toSorted((a, b) => Number(here.has(b.name)) - Number(here.has(a.name)));
}

/** What each condition means and what to do, from the declarations of the families. */
