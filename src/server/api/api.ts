import { type Request, type RequestHandler, Router } from 'express';
import { explainPod } from '../../board/explain.ts';
import type { HealthEvent } from '../../model/events.ts';
import type { Snapshot } from '../../model/snapshot.ts';
import { sendError, sendJson } from '../http/answer.ts';
import type { IncidentSource } from '../parts.ts';
import { incidentsHandler } from './incidents.ts';
import { timeText } from './names.ts';
import { takes } from './parameters.ts';
import { allocationsView, devicesView, deviceView, eventsView, type RemedyOf, statusView } from './views.ts';

export interface ApiSources {
  snapshot(): Snapshot | undefined;
  /** Status of the agent itself; printed before the data of the snapshot. */
  status(): object;
  /** Returns events newer than the event with id `since`; absent when no events are kept. */
  readonly events?: ((since: number) => readonly HealthEvent[]) | undefined;
  readonly incidents?: IncidentSource | undefined;
  remedyOf: RemedyOf;
  now(): number;
}

/** Creates the routes of `/api/v1`, which serve the latest snapshot as JSON. */
export function createApi(sources: ApiSources): Router {
  const router = Router();
  const withSnapshot = (view: (snapshot: Snapshot, request: Request) => object | undefined): RequestHandler => {
    return (request, response) => {
      const snapshot = sources.snapshot();
      if (snapshot === undefined) return sendError(request, response, 503, 'not-ready', 'The first snapshot is not ready yet.');
      const found = view(snapshot, request);
      if (found === undefined) return sendError(request, response, 404, 'device-unknown', 'There is no such device.');
      return sendJson(request, response, found);
    };
  };

  router.get('/api/v1/devices', takes(), withSnapshot(devicesView));
  router.get(
    '/api/v1/devices/:family/:id',
    takes(),
    withSnapshot((snapshot, { params }) => findDevice(snapshot, params.family, params.id)),
  );
  router.get('/api/v1/allocations', takes(), withSnapshot(allocationsView));
  router.get('/api/v1/explain/:namespace/:pod', takes(), (request, response) => {
    const snapshot = sources.snapshot();
    if (snapshot === undefined) return sendError(request, response, 503, 'not-ready', 'The first snapshot is not ready yet.');
    const { namespace, pod } = request.params;
    const lines = explainPod(String(namespace), String(pod), snapshot);
    if (lines === undefined) return sendError(request, response, 404, 'pod-unknown', 'No container of such a pod holds a device.');
    return sendJson(request, response, { takenAt: timeText(snapshot.takenAtMs), lines });
  });
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

function findDevice(snapshot: Snapshot, family: unknown, id: unknown): object | undefined {
  const state = snapshot.devices.find(({ device }) => device.family === family && device.id === id);
  return state && deviceView(state);
}
