import { type RequestHandler, Router } from 'express';
import { parseQuery, type UsageQuery } from '../../accounting/query.ts';
import type { LedgerReport } from '../../accounting/report.ts';
import { timeText } from '../../board/units.ts';
import { sendError, sendJson, takes } from '../http/answer.ts';

/** Makes a report of what containers used. Never rejects. */
export type ReportUsage = (query: UsageQuery) => Promise<LedgerReport>;

/** Creates the route of the usage report. */
export function createUsageApi(report: ReportUsage): Router {
  const router = Router();
  const answer: RequestHandler = async (request, response) => {
    const { query, problem } = parseQuery(request.query);
    if (query === undefined) return sendError(request, response, 400, 'usage-query-invalid', `The query is not valid: ${problem}.`);
    return sendJson(request, response, usageView(await report(query)));
  };
  router.get('/api/usage', takes('since', 'by', 'family'), answer);
  return router;
}

/** The report with times as text. Amounts are in base units. */
export function usageView({ sinceMs, untilMs, takenAtMs, ...report }: LedgerReport): object {
  return { takenAt: timeText(takenAtMs), since: timeText(sinceMs), until: timeText(untilMs), ...report };
}
