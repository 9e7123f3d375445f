import { chmodSync, mkdirSync } from 'node:fs';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { dirname, join } from 'node:path';
import { UserError } from '../../errors.ts';
import { listen } from '../http/listen.ts';

/** Name of the socket, in the directory of the state file, which is open to the user of the agent only. */
export const CONTROL_SOCKET = 'control.sock';

/** `POST` with an {@link AcceptRequest} as JSON; the answer is a {@link ControlAnswer}. All other requests read. */
export const ACCEPT_PATH = '/accept';

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

export type ControlAnswer =
  /** Key of the device, and the conditions that ended. */
  { readonly device: string; readonly accepted: readonly string[] } | { readonly refused: string };

const LONGEST_REQUEST = 8_192;
const MOST_CLIENTS = 64;
const PATIENCE_MS = 5_000;
/** Interval of the timeout checks; each check wakes the process. */
const CHECK_MS = 15_000;
const MOST_TEXT = 500;

/**
 * Serves commands of the same user: what they read, `read` answers; what they change, `accept` does. Returns a function that closes the
 * socket.
 */
export async function serveControlSocket(
  path: string,
  accept: (request: AcceptRequest) => ControlAnswer,
  read: RequestListener,
): Promise<() => void> {
  const timeouts = { headersTimeout: PATIENCE_MS, requestTimeout: PATIENCE_MS, connectionsCheckingInterval: CHECK_MS };
  const server = createServer(timeouts, (request, response) => {
    if (request.method === 'POST' && request.url === ACCEPT_PATH) takeRequest(request, response, accept);
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

function takeRequest(request: IncomingMessage, response: ServerResponse, accept: (request: AcceptRequest) => ControlAnswer): void {
  let text = '';
  request.setEncoding('utf8').on('data', (part: string) => {
    text += part;
    if (text.length > LONGEST_REQUEST) request.destroy();
  });
  request.on('end', () => {
    const asked = requestIn(text);
    const answer: ControlAnswer = asked === undefined ? { refused: 'the agent does not understand the request' } : accept(asked);
    response.setHeader('Content-Type', 'application/json');
    response.end(`${JSON.stringify(answer)}\n`);
  });
}

function requestIn(text: string): AcceptRequest | undefined {
  let value: Partial<AcceptRequest> | null;
  try {
    value = JSON.parse(text) as Partial<AcceptRequest> | null;
  } catch {
    return undefined;
  }
  const isText = (one: unknown): one is string => typeof one === 'string' && one.trim() !== '' && one.length <= MOST_TEXT;
  const { device, condition, why } = value ?? {};
  if (value?.do !== 'accept' || !isText(device) || !isText(why) || !(condition === undefined || isText(condition))) return undefined;
  return { do: 'accept', device, why, ...(condition === undefined ? {} : { condition }) };
}
