import { readFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { parseJson } from '../host/documents/json.ts';
import { request as requestPlain } from '../host/node-http.ts';
import { shortened } from '../model/one-line.ts';
import { type Answer, type Curve, curvesOf, errorIn, type Sample, samplesOf } from './answer.ts';
import { notPrometheus, PrometheusTrouble, refusal, unreachable } from './trouble.ts';

export interface PrometheusOptions {
  /** Its path stands before `/api/v1`. */
  readonly url: URL;
  /** Files are read for each query, because they are renewed. */
  readonly tokenFile?: string;
  readonly caFile?: string;
  readonly certFile?: string;
  readonly keyFile?: string;
  /** Value of the header `X-Scope-OrgID`. */
  readonly tenant?: string;
  readonly patienceMs?: number;
  readonly mostBytes?: number;
}

export interface Range {
  readonly start: number;
  readonly end: number;
  readonly step: number;
}

/** The query API. Both reject with {@link PrometheusTrouble}. Times are seconds. */
export interface Prometheus {
  query(expr: string, time?: number): Promise<Answer<Sample>>;
  queryRange(expr: string, range: Range): Promise<Answer<Curve>>;
}

const PATIENCE_MS = 10_000;
const MOST_BYTES = 32 * 1024 * 1024;
const BOUNDS = { mostEntries: 4_000_000, mostDepth: 20 };
const MESSAGE_BYTES = 300;
/** Prometheus runs 20 queries at once by default, for all who ask it. */
const AT_ONCE = 4;

export function prometheusAt(options: PrometheusOptions): Prometheus {
  const inTurn = turns(AT_ONCE);
  const ask = (path: string, parameters: Readonly<Record<string, string>>): Promise<unknown> =>
    inTurn(() => send(options, path, new URLSearchParams(parameters).toString()));
  return {
    query: async (query, time) => samplesOf(await ask('query', { query, ...(time === undefined ? {} : { time: String(time) }) })),
    queryRange: async (query, { start, end, step }) =>
      curvesOf(await ask('query_range', { query, start: String(start), end: String(end), step: String(step) })),
  };
}

/** Runs so many at once; the others wait. */
function turns(most: number): <T>(run: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async (run) => {
    if (running >= most) await new Promise<void>((resolve) => waiting.push(resolve));
    else running += 1;
    try {
      return await run();
    } finally {
      const next = waiting.shift();
      if (next === undefined) running -= 1;
      else next();
    }
  };
}

async function send(options: PrometheusOptions, path: string, body: string): Promise<unknown> {
  const { url, tenant, patienceMs = PATIENCE_MS, mostBytes = MOST_BYTES } = options;
  const isSecure = url.protocol === 'https:';
  const token = options.tokenFile === undefined ? undefined : (await contentOf(options.tokenFile)).trim();
  const [ca, cert, key] = await Promise.all([options.caFile, options.certFile, options.keyFile].map((file) => file && contentOf(file)));
  const request = isSecure ? (await import('node:https')).request : requestPlain;
  const headers = {
    Accept: 'application/json',
    'Content-Type': 'application/x-www-form-urlencoded',
    'Content-Length': Buffer.byteLength(body),
    ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
    ...(tenant === undefined ? {} : { 'X-Scope-OrgID': tenant }),
  };
  const target = new URL(`${url.pathname.replace(/\/$/, '')}/api/v1/${path}`, url);
  const { status, text } = await new Promise<Received>((resolve, reject) => {
    const failed = (error: Error): void => reject(troubleOf(error, patienceMs));
    const signal = AbortSignal.timeout(patienceMs);
    const tls = isSecure ? { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) } : {};
    try {
      const sent = request(target, { method: 'POST', agent: false, signal, headers, ...tls }, (response) =>
        take(response, { mostBytes, resolve, failed }),
      );
      sent.on('error', failed);
      sent.end(body);
    } catch (error) {
      // A header or a certificate that cannot be used.
      failed(error as Error);
    }
  });
  const parsed = parsedOf(text, mostBytes);
  const told = errorIn(parsed);
  if (status !== 200) throw refusal(status, told === undefined ? undefined : shortened(told, MESSAGE_BYTES));
  if (parsed === undefined) throw notPrometheus('the answer is no JSON');
  return parsed;
}

interface Received {
  readonly status: number;
  readonly text: string;
}

interface Taking {
  readonly mostBytes: number;
  readonly resolve: (received: Received) => void;
  readonly failed: (error: Error) => void;
}

function take(response: IncomingMessage, { mostBytes, resolve, failed }: Taking): void {
  const parts: Buffer[] = [];
  let bytes = 0;
  response.on('data', (part: Buffer) => {
    bytes += part.length;
    parts.push(part);
    if (bytes > mostBytes)
      response.destroy(
        new PrometheusTrouble(`the answer has more than ${mostBytes} bytes`, 'Load deploy/rules.yaml; or ask for one cluster only.'),
      );
  });
  response.on('error', failed);
  response.on('end', () => resolve({ status: response.statusCode ?? 0, text: Buffer.concat(parts).toString() }));
}

function troubleOf(error: Error, patienceMs: number): PrometheusTrouble {
  if (error instanceof PrometheusTrouble) return error;
  return unreachable(
    error.name === 'AbortError' || error.name === 'TimeoutError'
      ? `not within ${patienceMs / 1_000} s`
      : shortened(error.message || (error as NodeJS.ErrnoException).code || error.name, MESSAGE_BYTES),
  );
}

async function contentOf(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw new PrometheusTrouble((error as Error).message, 'Check the files of token and certificates.');
  }
}

function parsedOf(text: string, mostBytes: number): unknown {
  try {
    return parseJson(text, { ...BOUNDS, mostBytes });
  } catch {
    return undefined;
  }
}
