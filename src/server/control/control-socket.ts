import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import { dirname, join } from 'node:path';
import { createServer } from '../../host/node-http.ts';
import { defined } from '../../model/defined.ts';
import type { ReleaseAnswer, ReleaseRequest } from '../../model/release.ts';
import type { SocketServer } from '../sockets.ts';

/** Name of the socket, in the directory of the state file, which is open to the user of the agent only. */
export const CONTROL_SOCKET = 'control.sock';

/** `POST` with a {@link ControlRequest} as JSON; the answer is a {@link ControlAnswer}. All other requests read. */
export const CONTROL_PATH = '/control';
/** `GET`: a {@link ConfigAnswer}. Only here: a configuration names files and addresses, which clients of the port need not know. */
export const CONFIG_PATH = '/config';
/** `GET`: the values of the options in use, by key, without the texts, which take longer to make. */
export const VALUES_PATH = '/config/values';
/** `GET`: a command that reads the devices itself waits here for the others, see {@link Turns}. */
export const TURN_PATH = '/turn';

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

/** A newer agent takes over. The older one has it as long as the connection lasts, and writes no state meanwhile. */
export interface TakeOverRequest {
  readonly do: 'take-over';
}

/** `sockets`: identities of the sockets that the newer agent may replace. */
export type TakeOverAnswer = { readonly sockets: readonly string[]; readonly refused?: undefined } | { readonly refused: string };

export type ControlRequest = AcceptRequest | ({ readonly do: 'release' } & ReleaseRequest) | TakeOverRequest;
export type ControlAnswer = AcceptAnswer | ReleaseAnswer;

/** Carries out the requests that change something. */
export interface Control {
  accept(request: AcceptRequest): AcceptAnswer;
  /** Resolves when the driver is closed, or open again. */
  release(request: ReleaseRequest): Promise<ReleaseAnswer>;
  /** Resolves when the last state is on disk. `ended` resolves when the newer agent has ended. */
  takeOver(ended: Promise<void>): Promise<TakeOverAnswer>;
  config(): Promise<ConfigAnswer>;
  /** Values of the options in use, by key: flags of a command may contradict them. */
  values(): Readonly<Record<string, unknown>>;
}

/** The configuration in use, as `config print` prints it, by format. */
export type ConfigAnswer = Readonly<Partial<Record<'yaml' | 'json' | 'table', string>>>;

/** The configuration in use. */
export type UsedConfig = Pick<Control, 'config' | 'values'>;

const LONGEST_REQUEST = 8_192;
const MOST_CLIENTS = 64;
const PATIENCE_MS = 5_000;
/** Interval of the timeout checks; each check wakes the process. */
const CHECK_MS = 15_000;
const MOST_TEXT = 500;

/** Serves commands of the same user: what they read, `read` answers; what they change, `control` does. */
export function controlServer(path: string, control: Control, read: RequestListener): SocketServer {
  const timeouts = { headersTimeout: PATIENCE_MS, requestTimeout: PATIENCE_MS, connectionsCheckingInterval: CHECK_MS };
  const servers = new Set<Server>();
  const turns = new Turns();
  return {
    name: 'control',
    path,
    mode: 0o600,
    isOwnDirectory: true,
    listener() {
      const server = createServer(timeouts, (request, response) => {
        if (request.method === 'POST' && request.url === CONTROL_PATH) takeRequest(request, response, control);
        else if (request.method === 'GET' && request.url === CONFIG_PATH) void sendJson(response, control.config());
        else if (request.method === 'GET' && request.url === VALUES_PATH) void sendJson(response, control.values());
        else if (request.method === 'GET' && request.url === TURN_PATH) turns.add(response);
        else read(request, response);
      });
      server.maxConnections = MOST_CLIENTS;
      servers.add(server);
      server.once('close', () => servers.delete(server));
      return server;
    },
    async close() {
      for (const server of servers) server.closeAllConnections();
    },
  };
}

async function sendJson(response: ServerResponse, value: object | Promise<object>): Promise<void> {
  response.setHeader('Content-Type', 'application/json');
  try {
    response.end(`${JSON.stringify(await value)}\n`);
  } catch {
    response.writeHead(500).end('{}\n');
  }
}

function takeRequest(request: IncomingMessage, response: ServerResponse, control: Control): void {
  let text = '';
  request.setEncoding('utf8').on('data', (part: string) => {
    text += part;
    if (text.length > LONGEST_REQUEST) request.destroy();
  });
  request.on('end', async () => {
    const asked = requestIn(text);
    response.setHeader('Content-Type', 'application/json');
    if (asked?.do !== 'take-over') return void response.end(`${JSON.stringify(await answerTo(asked, control))}\n`);
    const ended = new Promise<void>((resolve) => void response.once('close', resolve));
    const answer = await control.takeOver(ended);
    response.write(`${JSON.stringify(answer)}\n`);
    if (answer.refused !== undefined) response.end();
  });
}

async function answerTo(request: Exclude<ControlRequest, TakeOverRequest> | undefined, control: Control): Promise<ControlAnswer> {
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
  if (value?.do === 'take-over') return { do: 'take-over' };
  if (value?.do === 'release')
    return isText(family) && isText(by) && typeof forMs === 'number' ? { do: 'release', family, by, forMs } : undefined;
  if (value?.do !== 'accept' || !isText(device) || !isText(why) || !(condition === undefined || isText(condition))) return undefined;
  return { do: 'accept', device, why, ...defined({ condition }) };
}

/** Commands in the queue. A further one is told so at once, and does not wait. */
const MOST_COMMANDS = 16;

/**
 * Commands that read the devices themselves, one after the other: in a container they share the memory limit of the agent, which has room for
 * one of them. Each gets the head of its answer at once and a line when it is its turn, which lasts until it closes the connection.
 */
class Turns {
  readonly #queue: ServerResponse[] = [];

  add(response: ServerResponse): void {
    if (this.#queue.length >= MOST_COMMANDS) return void response.writeHead(503).end();
    response.writeHead(200, { 'Content-Type': 'text/plain' }).flushHeaders();
    response.once('close', () => {
      const at = this.#queue.indexOf(response);
      this.#queue.splice(at, 1);
      if (at === 0) this.#begin();
    });
    this.#queue.push(response);
    if (this.#queue.length === 1) this.#begin();
  }

  #begin(): void {
    this.#queue[0]?.write('your turn\n');
  }
}
