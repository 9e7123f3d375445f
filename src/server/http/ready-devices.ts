import type { Request, RequestHandler } from 'express';
import { type ReadyQuestion, type ReadyRules, readyDevices } from '../../health/journal/ready-devices.ts';
import { defined } from '../../model/defined.ts';
import type { Snapshot } from '../../model/snapshot.ts';
import { sendError, sendText, TEXT_TYPE } from './answer.ts';

export const READY_PARAMETERS = ['family', 'resource', 'max-unhealthy'] as const;

export interface ReadySources {
  snapshot(): Snapshot | undefined;
  /** Returns why the agent cannot do its work; undefined while it can. */
  fault(): string | undefined;
  /** Names of the families that the agent reads. */
  readonly families: readonly string[];
  readonly rules: ReadyRules;
}

/** A name with a domain, as Kubernetes requires of a resource of devices. */
const RESOURCE = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?\/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
const MOST = /^(\d{1,6})(%?)$/;

/** Answers `GET /-/ready/devices` from the latest snapshot: 200, or 503 with one line for each reason. */
export function readyHandler({ snapshot, fault, families, rules }: ReadySources): RequestHandler {
  return (request, response) => {
    const { question, problem } = questionIn(request.query, families);
    if (question === undefined) return sendError(request, response, 400, 'parameter-invalid', problem);
    const latest = snapshot();
    if (latest === undefined) return sendText(request, response, TEXT_TYPE, 'The first snapshot is not ready yet.\n', 503);
    if (fault() !== undefined) return sendText(request, response, TEXT_TYPE, 'The agent does not do its work; see /healthz.\n', 503);
    const { isReady, lines } = readyDevices(latest, question, rules);
    return sendText(request, response, TEXT_TYPE, lines.map((line) => `${line}\n`).join(''), isReady ? 200 : 503);
  };
}

type Parsed =
  | { readonly question: ReadyQuestion; readonly problem?: undefined }
  | { readonly question?: undefined; readonly problem: string };

function questionIn(query: Request['query'], families: readonly string[]): Parsed {
  for (const name of READY_PARAMETERS) if (Array.isArray(query[name])) return { problem: `The parameter "${name}" can be given once.` };
  const { family, resource, 'max-unhealthy': most } = query as Readonly<Record<string, string | undefined>>;
  if (family !== undefined && !families.includes(family))
    return { problem: `The parameter "family" must be a family that the agent reads: ${families.join(', ')}.` };
  if (resource !== undefined && !RESOURCE.test(resource))
    return { problem: 'The parameter "resource" must be the name of a Kubernetes resource, such as example.com/device.' };
  const [, digits, sign] = MOST.exec(most ?? '0') ?? [];
  const number = Number(digits);
  if (digits === undefined || (sign === '%' && number > 100))
    return { problem: 'The parameter "max-unhealthy" must be a number of devices, such as 1, or a share of them, such as 25%.' };
  return {
    question: {
      ...defined({ family, resource }),
      most: sign === '%' ? { percent: number } : { count: number },
    },
  };
}
