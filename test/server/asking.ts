import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { connect, type Socket } from 'node:net';
import { afterEach } from 'vitest';
import { type Started, type StartOptions, start as startServer } from './start.ts';

const running: Started[] = [];
const sockets: Socket[] = [];
/** A server that is closed after the test. */
export const start = async (options?: StartOptions): Promise<Started> => {
  const started = await startServer(options);
  running.push(started);
  return started;
};
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await Promise.all(running.splice(0).map(({ server }) => server.close()));
});

/** By which address of its own, or by which unix socket, a client comes. */
export interface Way {
  readonly localAddress?: string;
  readonly socketPath?: string;
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** As the bytes come: nothing is decompressed, no header is added. `from`: address or unix socket that the request goes by. */
export function ask(url: string, headers: Record<string, string> = {}, method = 'GET', from: Way = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(url, { method, headers, agent: false, ...from }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) }));
      response.on('error', reject);
    });
    request.on('error', reject);
    request.end();
  });
}

/** A bare connection that sends a text and reads nothing by itself; it is closed after the test. */
export interface Connection {
  readonly socket: Socket;
  /** Waits until something came. Not to be asked after `socket.resume()`. */
  answered(): Promise<void>;
  readonly closed: Promise<void>;
}

export function connectTo(url: string, send: string, { localAddress, socketPath }: Way = {}): Connection {
  const socket =
    socketPath === undefined ? connect({ port: Number(new URL(url).port), host: '127.0.0.1', localAddress }) : connect(socketPath);
  sockets.push(socket);
  socket.on('error', () => undefined);
  socket.write(send);
  return {
    socket,
    answered: () => new Promise((resolve) => socket.once('readable', () => resolve())),
    closed: new Promise((resolve) => socket.once('close', () => resolve())),
  };
}

export const METRICS = 'GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n';

const bigPage = Buffer.alloc(64 * 1024 * 1024, 'x');
/** A page too big for the buffers of a socket: whoever does not read it holds its place. Counts how often it was asked for. */
export function bigExposition() {
  const asked = { count: 0 };
  const page = () => {
    asked.count += 1;
    return Promise.resolve({ plain: [bigPage], gzipped: () => Promise.resolve([bigPage]) });
  };
  return {
    asked,
    bytes: bigPage.length,
    exposition: { page, contentTypes: { text: 'text/plain', openmetrics: '' } },
  };
}
