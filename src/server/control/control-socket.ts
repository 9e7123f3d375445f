import { chmodSync, mkdirSync } from 'node:fs';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { dirname, join } from 'node:path';
import { UserError } from '../../errors.ts';
import { createServer } from '../../host/node-http.ts';
import type { ReleaseAnswer, ReleaseRequest } from '../../model/release.ts';
import { listen } from '../http/listen.ts';

/** Name of the socket, in the directory of the state file, which is open to the user of the agent only. */
export const CONTROL_SOCKET = 'control.sock';

/** `POST` with a {@link ControlRequest} as JSON; the answer is a {@link ControlAnswer}. All other requests read. */
export const CONTROL_PATH = '/control';

export const controlSocket = (stateFile: string): string => join(dirname(stateFile), CONTROL_SOCKET);

/** A person ends conditions that no reading can confirm. Without `condition`: all of them on the device. */
export interface AcceptRequest {
  readonly do: 'accept';
  /** Id, alias, UUID or key of a device. */
  readonly device: string;
  /** `Type` or `Type/instance`. */
  readonly condition?: string;
  readonly why: string;
}

/** Key of the device, and the conditions that ended. */
export type AcceptAnswer =
  | { readonly device: string; readonly accepted: readonly string[]; readonly refused?: undefined }
  | { readonly refused: string };

export type ControlRequest = AcceptRequest | ({ readonly do: 'release' } & ReleaseRequest);
export type ControlAnswer = AcceptAnswer | ReleaseAnswer;

/** Carries out the requests that change something. */
export interface Control {
  accept(request: AcceptRequest): AcceptAnswer;
  /** Resolves when the driver is closed, or open again. */
  release(request: ReleaseRequest): Promise<ReleaseAnswer>;
}

const LONGEST_REQUEST = 8_192;
const MOST_CLIENTS = 64;
const PATIENCE_MS = 5_000;
/** Interval of the timeout checks; each check wakes the process. */
const CHECK_MS = 15_000;
const MOST_TEXT = 500;

/**
 * Serves commands of the same user: what they read, `read` answers; what they change, `control` does. Returns a function that closes the
 * socket.
 */
export async function serveControlSocket(path: string, control: Control, read: RequestListener): Promise<() => void> {
  const timeouts = { headersTimeout: PATIENCE_MS, requestTimeout: PATIENCE_MS, connectionsCheckingInterval: CHECK_MS };
  const server = createServer(timeouts, (request, response) => {
    if (request.method === 'POST' && request.url === CONTROL_PATH) takeRequest(request, response, control);
    else read(request, response);
  });
  server.maxConnections = MOST_CLIENTS;
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  await listen(server, path, (fields, cause) => new UserError('control-failed', fields, cause));
  chmodSync(path, 0o600);
  return () => {
    server.close();
    server.closeAllConnections();
  };
}

function takeRequest(request: IncomingMessage, response: ServerResponse, control: Control): void {
  let text = '';
  request.setEncoding('utf8').on('data', (part: string) => {
    text += part;
    if (text.length > LONGEST_REQUEST) request.destroy();
  });
  request.on('end', async () => {
    const answer = await answerTo(requestIn(text), control);
    response.setHeader('Content-Type', 'application/json');
    response.end(`${JSON.stringify(answer)}\n`);
  });
}

async function answerTo(request: ControlRequest | undefined, control: Control): Promise<ControlAnswer> {
  if (request === undefined) return { refused: 'the agent does not understand the request' };
  return request.do === 'accept' ? control.accept(request) : await control.release(request);
}

function requestIn(text: string): ControlRequest | undefined {
  let value: Partial<Record<keyof AcceptRequest | keyof ReleaseRequest, unknown>> | null;
  try {
    value = JSON.parse(text) as typeof value;
  } catch {
    return undefined;
  }
  const isText = (one: unknown): one is string => typeof one === 'string' && one.trim() !== '' && one.length <= MOST_TEXT;
  const { device, condition, why, family, forMs, by } = value ?? {};
  if (value?.do === 'release')
    return isText(family) && isText(by) && typeof forMs === 'number' ? { do: 'release', family, by, forMs } : undefined;
  if (value?.do !== 'accept' || !isText(device) || !isText(why) || !(condition === undefined || isText(condition))) return undefined;
  return { do: 'accept', device, why, ...(condition === undefined ? {} : { condition }) };
}
