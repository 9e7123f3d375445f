import type { RequestHandler } from 'express';
import { timeText } from '../../board/units.ts';
import { incidentsOf, listedFaults } from '../../incidents/by-device.ts';
import { isLabel } from '../../model/claim-hardware.ts';
import type { Snapshot } from '../../model/snapshot.ts';
import { boundTo } from '../access/tenants.ts';
import { sendError, sendJson } from '../http/answer.ts';
import type { IncidentSource } from '../parts.ts';

interface Sources {
  snapshot(): Snapshot | undefined;
  readonly incidents?: IncidentSource | undefined;
}

/** Answers `GET /api/incidents?namespace=`: all incidents, or those of a namespace. A user that is bound to namespaces gets those of these. */
export function incidentsHandler({ snapshot, incidents }: Sources): RequestHandler {
  // The answer for a namespace reads all records. One request reads at a time, so that many of them take no memory.
  let last: Promise<unknown> = Promise.resolve();
  return async (request, response) => {
    const { namespace } = request.query;
    const bound = boundTo(response);
    const takenAt = timeText(snapshot()?.takenAtMs);
    if (namespace !== undefined && (typeof namespace !== 'string' || !isLabel(namespace))) {
      return sendError(request, response, 400, 'parameter-invalid', 'The parameter "namespace" must be one name of a namespace.');
    }
    if (namespace !== undefined && bound?.includes(namespace) === false) {
      return sendError(request, response, 403, 'namespace-not-allowed', 'This user is not bound to that namespace.');
    }
    const namespaces = namespace === undefined ? bound : [namespace];
    const kept = incidents?.faults?.() ?? [];
    if (namespaces === undefined)
      return sendJson(request, response, { takenAt, incidents: incidents?.list() ?? [], faults: listedFaults(kept) });
    const reading = last.then(() => (response.destroyed || incidents === undefined ? undefined : incidentsOf(incidents, namespaces)));
    last = reading.catch(() => undefined);
    const { found = [], unread = 0 } = (await reading) ?? {};
    const faults = listedFaults(kept, namespaces);
    if (bound !== undefined)
      return sendJson(request, response, {
        takenAt,
        incidents: found.map(({ id: _id, ...own }) => own),
        faults: faults.map(({ id: _id, ...own }) => own),
      });
    return sendJson(request, response, { takenAt, incidents: found, faults, ...(unread > 0 ? { unread } : {}) });
  };
}
