import { chmodSync, mkdirSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { UserError } from '../../errors.ts';
import { listen } from '../http/listen.ts';

/** Name of the socket, in the directory of the state file, which is open to the user of the agent only. */
export const CONTROL_SOCKET = 'control.sock';

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

/** One line of JSON in each direction, then the connection ends. */
export type ControlAnswer =
  /** Key of the device, and the conditions that ended. */
  { readonly device: string; readonly accepted: readonly string[] } | { readonly refused: string };

const LONGEST_REQUEST = 8_192;
const MOST_CLIENTS = 8;
const PATIENCE_MS = 5_000;
const MOST_TEXT = 500;

/** Lets commands of the same user change what the agent remembers. Returns a function that closes the socket. */
export async function serveControlSocket(path: string, accept: (request: AcceptRequest) => ControlAnswer): Promise<() => void> {
  const clients = new Set<Socket>();
  const server = createServer((socket) => {
    clients.add(socket);
    socket.once('close', () => clients.delete(socket));
    serveOne(socket, accept);
  });
  server.maxConnections = MOST_CLIENTS;
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  await listen(server, path, (fields, cause) => new UserError('control-failed', fields, cause));
  chmodSync(path, 0o600);
  return () => {
    server.close();
    for (const socket of clients) socket.destroy();
  };
}

function serveOne(socket: Socket, accept: (request: AcceptRequest) => ControlAnswer): void {
  let text = '';
  socket.setTimeout(PATIENCE_MS, () => socket.destroy());
  socket.on('error', () => socket.destroy());
  socket.setEncoding('utf8').on('data', (part: string) => {
    text += part;
    const end = text.indexOf('\n');
    if (end < 0 && text.length > LONGEST_REQUEST) socket.destroy();
    if (end < 0) return;
    socket.removeAllListeners('data');
    const request = requestIn(text.slice(0, end));
    const answer: ControlAnswer = request === undefined ? { refused: 'the agent does not understand the request' } : accept(request);
    socket.end(`${JSON.stringify(answer)}\n`);
  });
}

function requestIn(line: string): AcceptRequest | undefined {
  let value: Partial<AcceptRequest> | null;
  try {
    value = JSON.parse(line) as Partial<AcceptRequest> | null;
  } catch {
    return undefined;
  }
  const isText = (text: unknown): text is string => typeof text === 'string' && text.trim() !== '' && text.length <= MOST_TEXT;
  const { device, condition, why } = value ?? {};
  if (value?.do !== 'accept' || !isText(device) || !isText(why) || !(condition === undefined || isText(condition))) return undefined;
  return { do: 'accept', device, why, ...(condition === undefined ? {} : { condition }) };
}
