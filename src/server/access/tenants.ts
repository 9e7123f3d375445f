import type { RequestHandler, Response } from 'express';
import { sendError } from '../http/answer.ts';

/** The only path whose answer can be limited to namespaces. */
const TENANT_PATH = '/api/incidents';

interface Bound {
  namespaces?: readonly string[] | undefined;
}

/** Remembers to which namespaces the user of a request is bound; undefined: to none, so the user reads everything. */
export function bind({ locals }: Response, namespaces: readonly string[] | undefined): void {
  (locals as Bound).namespaces = namespaces;
}

/** The namespaces to which the user of a request is bound; undefined when the user may read everything. */
export const boundTo = ({ locals }: Response): readonly string[] | undefined => (locals as Bound).namespaces;

/** Refuses users that are bound to namespaces everything that shows other tenants. Compares the path that the router compares. */
export const onlyOwnNamespaces: RequestHandler = (request, response, next) => {
  const namespaces = boundTo(response);
  if (namespaces === undefined || request.path === TENANT_PATH) return next();
  const message = `This user is bound to namespaces, and this page shows other tenants. Read ${TENANT_PATH}.`;
  return sendError(request, response, 403, 'bound-to-namespaces', message);
};
