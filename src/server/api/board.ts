import { type RequestHandler, Router } from 'express';
import { ratesOf, TREND_MS } from '../../board/trend.ts';
import { metricTitle } from '../../board/units.ts';
import { parseView, VIEW_PARAMETERS, viewOf } from '../../board/view.ts';
import type { DeviceHistory, ReadingHistoryStore } from '../../incidents/history.ts';
import { deviceKey } from '../../model/device.ts';
import type { BoardSource } from '../feed/board-source.ts';
import { sendError, sendJson } from '../http/answer.ts';
import { takes } from './parameters.ts';

const FILTERS = VIEW_PARAMETERS.filter((name) => name !== 'group');

export interface BoardApiDependencies {
  readonly source: BoardSource;
  readonly history: (() => ReadingHistoryStore) | undefined;
  now(): number;
}

/** Creates the routes of the board: its rows, the trends of their first readings, and the readings of one device over half an hour. */
export function createBoardApi({ source, history, now }: BoardApiDependencies): Router {
  const router = Router();
  const board: RequestHandler = (request, response) => {
    const { view, problem } = parseView(request.query);
    if (problem !== undefined) return sendError(request, response, 400, 'parameter-invalid', problem);
    const current = source.current();
    if (current === undefined) return sendError(request, response, 503, 'not-ready', 'The first snapshot is not ready yet.');
    const rows = viewOf(current, view).flatMap((section) => section.rows.map(({ row }) => row));
    return sendJson(request, response, { ...current, rows });
  };
  router.get('/api/board', takes(...FILTERS), board);
  router.get('/api/board/trends', takes(), (request, response) => sendJson(request, response, { trends: source.trends() }));
  router.get('/api/board/history/:family/:id', takes(), (request, response) => {
    const { family, id } = request.params;
    const found = history?.().seriesOf(deviceKey({ family: String(family), id: String(id) }), now() - TREND_MS);
    if (found === undefined) return sendError(request, response, 404, 'history-unknown', 'There are no readings of such a device.');
    return sendJson(request, response, historyView(found));
  });
  return router;
}

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
