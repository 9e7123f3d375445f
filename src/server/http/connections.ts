import type { RequestListener, Server } from 'node:http';
import type { Socket } from 'node:net';
import { Server as TlsServer } from 'node:tls';
import type { RequestHandler } from 'express';

/** How long a new connection may take to its first request before it counts as idle. */
const FIRST_REQUEST_MS = 1_000;
/** A read brings up to 64 KiB with thousands of requests. After this many bytes, the rest of a closed connection is left. */
const STEP_BYTES = 2_048;

interface Connection {
  readonly socket: Socket;
  /** Undefined for all clients of a unix socket. */
  readonly address: string | undefined;
  isAnswering: boolean;
  idleFromMs: number;
}

/**
 * Limits the number of connections, and refuses none: beyond the limit, a new connection takes the place of another one. So the probes of the
 * kubelet are accepted, however many clients hold connections. The address with the most connections loses the one that is idle for the
 * longest time, or its oldest one when none is idle. A connection that has not sent a complete request is idle, also during its TLS handshake.
 *
 * A connection carries one request at a time. A client that sends the next one before the answer loses the connection: thousands of such
 * requests would all be handled before any other client.
 */
export class Connections {
  readonly #most: number;
  readonly #open = new Map<Socket, Connection>();
  /** Oldest first. */
  readonly #byAddress = new Map<string | undefined, Set<Connection>>();

  /** When the newest one was accepted, on the monotonic clock. */
  acceptedMs = Number.NEGATIVE_INFINITY;

  constructor(most: number) {
    this.#most = most;
  }

  accept(server: Server): void {
    server.on('connection', (socket: Socket) => {
      const replaced = this.#open.size < this.#most ? undefined : this.#leastUsed();
      if (replaced !== undefined) {
        // The socket reports its end only after all waiting connections are accepted.
        this.#forget(replaced);
        replaced.socket.destroy();
      }
      const address = socket.remoteAddress;
      this.acceptedMs = performance.now();
      const connection = { socket, address, isAnswering: false, idleFromMs: this.acceptedMs + FIRST_REQUEST_MS };
      this.#byAddress.set(address, (this.#byAddress.get(address) ?? new Set()).add(connection));
      this.#open.set(socket, connection);
      socket.once('close', () => this.#forget(connection));
    });
    server.on(server instanceof TlsServer ? 'secureConnection' : 'connection', readInSteps);
  }

  /** Returns a listener that gives each request to `answer` while its connection has no other one. */
  oneAtATime(answer: RequestListener): RequestListener {
    return (request, response) => {
      const connection = this.#open.get(transportOf(request.socket));
      if (connection === undefined || connection.isAnswering) return void request.socket.destroy();
      connection.isAnswering = true;
      response.once('close', () => {
        connection.isAnswering = false;
        connection.idleFromMs = performance.now();
      });
      answer(request, response);
    };
  }

  #forget(connection: Connection): void {
    const { socket, address } = connection;
    this.#open.delete(socket);
    const ofAddress = this.#byAddress.get(address);
    ofAddress?.delete(connection);
    if (ofAddress?.size === 0) this.#byAddress.delete(address);
  }

  /** Returns the connection that a new one replaces. */
  #leastUsed(): Connection | undefined {
    let busiest: ReadonlySet<Connection> = new Set();
    for (const one of this.#byAddress.values()) if (one.size > busiest.size) busiest = one;
    const nowMs = performance.now();
    let idle: Connection | undefined;
    for (const one of busiest) {
      if (!one.isAnswering && one.idleFromMs <= nowMs && one.idleFromMs < (idle?.idleFromMs ?? Number.POSITIVE_INFINITY)) idle = one;
    }
    return idle ?? busiest.values().next().value;
  }
}

/** Comes between a connection and its parser, which Node connected already. */
function readInSteps(socket: Socket): void {
  const parsers = socket.listeners('data');
  socket.removeAllListeners('data');
  socket.on('data', (chunk: Buffer) => {
    for (let at = 0; at < chunk.length && !socket.destroyed; at += STEP_BYTES) {
      for (const parse of parsers) parse(chunk.subarray(at, at + STEP_BYTES));
    }
  });
}

/** The connection that carries a TLS connection. Node has no public name for it. */
const transportOf = (socket: Socket): Socket => (socket as { readonly _parent?: Socket })._parent ?? socket;

/** How long requests wait at most for connections that are being accepted. */
const ACCEPT_MS = 20;

/**
 * Lets one request through in each turn of the event loop. A page of many devices takes tens of milliseconds, and the loop reads all connections
 * before it reads one again: without turns, a probe of the kubelet would wait for the pages of all other clients. Node accepts only one connection
 * in each turn, so requests also wait while many connections arrive, because a probe can be the last of them.
 */
export function takeTurns(acceptedMs: () => number): RequestHandler {
  const waiting: (() => void)[] = [];
  let [seenMs, answeredMs] = [acceptedMs(), performance.now()];
  const turn = (): void => {
    const isArriving = acceptedMs() !== seenMs && performance.now() - answeredMs < ACCEPT_MS;
    seenMs = acceptedMs();
    const next = isArriving ? undefined : waiting.shift();
    if (waiting.length > 0) setImmediate(turn);
    next?.();
    if (next !== undefined) answeredMs = performance.now();
  };
  return ({ socket }, _response, next) => {
    if (waiting.push(() => void (socket.destroyed || next())) === 1) setImmediate(turn);
  };
}
