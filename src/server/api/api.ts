import { type RequestHandler, Router } from 'express';
import type { RemedyOf } from '../../board/board.ts';
import { explainPod } from '../../board/explain.ts';
import { ratesOf, TREND_MS } from '../../board/trend.ts';
import { metricTitle, timeText } from '../../board/units.ts';
import { parseView, VIEW_PARAMETERS, viewOf } from '../../board/view.ts';
import { incidentsOf, listedFaults } from '../../incidents/by-device.ts';
import type { DeviceHistory, ReadingHistoryStore } from '../../incidents/history.ts';
import { isLabel } from '../../model/claim-hardware.ts';
import { deviceKey } from '../../model/device.ts';
import type { HealthEvent } from '../../model/events.ts';
import type { Snapshot } from '../../model/snapshot.ts';
import type { BoardSource } from '../feed/board-source.ts';
import { sendError, sendJson, sendNoDevice, sendNoPod, takes } from '../http/answer.ts';
import type { IncidentSource } from '../parts.ts';
import { allocationsView, eventsView, statusView, wholeBoard, wholeDevice } from './views.ts';

export interface ApiSources {
  snapshot(): Snapshot | undefined;
  readonly board: BoardSource;
  readonly history: (() => ReadingHistoryStore) | undefined;
  /** Status of the agent itself; printed before the data of the snapshot. */
  status(): object;
  /** Returns events newer than the event with id `since`; absent when no events are kept. */
  readonly events?: ((since: number) => readonly HealthEvent[]) | undefined;
  readonly incidents?: IncidentSource | undefined;
  remedyOf: RemedyOf;
  now(): number;
}

const FILTERS = VIEW_PARAMETERS.filter((name) => name !== 'group');

/** Creates the routes of `/api/v1`, which serve the latest snapshot as JSON. */
export function createApi(sources: ApiSources): Router {
  const router = Router();
  const withSnapshot =
    (answer: (snapshot: Snapshot, ...given: Parameters<RequestHandler>) => unknown): RequestHandler =>
    (...given) => {
      const snapshot = sources.snapshot();
      if (snapshot === undefined) return sendError(given[0], given[1], 503, 'not-ready', 'The first snapshot is not ready yet.');
      return answer(snapshot, ...given);
    };

  router.get(
    '/api/v1/devices',
    takes(...FILTERS, 'readings'),
    withSnapshot((snapshot, request, response) => {
      const { readings = 'all', ...filters } = request.query;
      const { view, problem } = parseView(filters);
      if (problem !== undefined) return sendError(request, response, 400, 'parameter-invalid', problem);
      if (readings !== 'all' && readings !== 'shown')
        return sendError(request, response, 400, 'parameter-invalid', 'The parameter "readings" must be one of all, shown.');
      const board = sources.board.of(snapshot);
      const devices = viewOf(board, view).flatMap((section) => section.rows.map(({ row }) => row));
      return sendJson(request, response, wholeBoard({ ...board, devices }, snapshot, readings === 'all'));
    }),
  );
  router.get('/api/v1/devices/trends', takes(), (request, response) => sendJson(request, response, { trends: sources.board.trends() }));
  router.get(
    '/api/v1/devices/:family/:id',
    takes(),
    withSnapshot((snapshot, request, response) => {
      const key = keyOf(request.params);
      const state = snapshot.devices.find((one) => one.key === key);
      const board = sources.board.of(snapshot);
      const view = board.devices.find((one) => one.key === key);
      if (state === undefined || view === undefined) return sendNoDevice(request, response, board, request.params.family);
      return sendJson(request, response, wholeDevice(view, state));
    }),
  );
  router.get('/api/v1/devices/:family/:id/history', takes(), (request, response) => {
    const found = sources.history?.().seriesOf(keyOf(request.params), sources.now() - TREND_MS);
    if (found === undefined) return sendError(request, response, 404, 'history-unknown', 'There are no readings of such a device.');
    return sendJson(request, response, historyView(found));
  });
  router.get('/api/v1/devices/:family/:id/trends', takes(), (request, response) => {
    const trends = sources.board.trendsOf(keyOf(request.params));
    if (trends === undefined) return sendError(request, response, 404, 'history-unknown', 'There are no readings of such a device.');
    return sendJson(request, response, { trends });
  });
  router.get(
    '/api/v1/allocations',
    takes(),
    withSnapshot((snapshot, request, response) => sendJson(request, response, allocationsView(snapshot))),
  );
  router.get(
    '/api/v1/explain/:namespace/:pod',
    takes(),
    withSnapshot((snapshot, request, response) => {
      const { namespace, pod } = request.params;
      const lines = explainPod(String(namespace), String(pod), snapshot);
      if (lines === undefined) return sendNoPod(request, response, sources.board.of(snapshot));
      return sendJson(request, response, { takenAt: timeText(snapshot.takenAtMs), lines });
    }),
  );
  router.get('/api/v1/events', takes('since'), (request, response) => {
    const since = request.query.since ?? '0';
    if (typeof since !== 'string' || !/^\d{1,15}$/.test(since)) {
      return sendError(request, response, 400, 'since-invalid', 'The parameter "since" must be the id of an event.');
    }
    return sendJson(request, response, eventsView(sources.events?.(Number(since)) ?? []));
  });
  router.get('/api/incidents', takes('namespace'), incidentsHandler(sources));
  router.get('/api/incidents/:incident', takes(), async (request, response) => {
    const read = await sources.incidents?.read(String(request.params.incident));
    if (read === undefined) return sendError(request, response, 404, 'incident-unknown', 'There is no such incident.');
    if (read.problem !== undefined) return sendError(request, response, 500, 'incident-unreadable', 'The record cannot be read.');
    return sendJson(request, response, read.record);
  });
  router.get('/api/v1/status', takes(), (request, response) =>
    sendJson(request, response, { ...sources.status(), ...statusView(sources.snapshot(), sources.now(), sources.remedyOf) }),
  );
  return router;
}

const keyOf = ({ family, id }: Readonly<Record<string, unknown>>): string => deviceKey({ family: String(family), id: String(id) });

/** Readings as columns. A counter is shown by its growth per second. */
export function historyView({ times, series }: DeviceHistory): {
  readonly times: readonly number[];
  readonly series: readonly {
    readonly metric: string;
    readonly title: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly isRate: boolean;
    readonly values: readonly (number | null)[];
  }[];
} {
  return {
    times,
    series: series.map(({ metric, labels, type, values, reads }) => ({
      metric,
      title: metricTitle(metric),
      labels,
      isRate: type === 'counter',
      values: type === 'counter' ? ratesOf(times, values, reads) : values,
    })),
  };
}

interface Sources {
  snapshot(): Snapshot | undefined;
  readonly incidents?: IncidentSource | undefined;
}

/** Answers `GET /api/incidents?namespace=`: all incidents, or those of a namespace. */
function incidentsHandler({ snapshot, incidents }: Sources): RequestHandler {
  // The answer for a namespace reads all records. One request reads at a time, so that many of them take no memory.
  let last: Promise<unknown> = Promise.resolve();
  return async (request, response) => {
    const { namespace } = request.query;
    const takenAt = timeText(snapshot()?.takenAtMs);
    if (namespace !== undefined && (typeof namespace !== 'string' || !isLabel(namespace))) {
      return sendError(request, response, 400, 'parameter-invalid', 'The parameter "namespace" must be one name of a namespace.');
    }
    const kept = incidents?.faults?.() ?? [];
    if (namespace === undefined)
      return sendJson(request, response, { takenAt, incidents: incidents?.list() ?? [], faults: listedFaults(kept) });
    const reading = last.then(() => (response.destroyed || incidents === undefined ? undefined : incidentsOf(incidents, namespace)));
    last = reading.catch(() => undefined);
    const { found = [], unread = 0 } = (await reading) ?? {};
    const faults = listedFaults(kept, namespace);
    return sendJson(request, response, { takenAt, incidents: found, faults, ...(unread > 0 ? { unread } : {}) });
  };
}
