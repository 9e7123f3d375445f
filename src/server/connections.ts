import type { RequestListener, Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '../host/clock.ts';
import { clientOf, Shares } from './shares.ts';

/**
 * Requests on one connection that are read but not answered. No scraper, browser or probe sends more than one ahead, and each takes
 * kilobytes, of which a connection that is read by the chunk could ask for thousands.
 */
const MOST_AHEAD = 16;

export interface ConnectionBounds {
  /** In all. */
  readonly most: number;
  /** How long a new connection may take for the head of its first request. */
  readonly headersMs: number;
  readonly clock: Clock;
}

interface Kept {
  readonly client: string;
  /** To be called when its first request is there. */
  readonly asked: () => void;
  answersUnderWay: number;
}

/**
 * Has requests answered, and bounds the connections, in all and for each client. A client that has its share gives up the one that has been
 * idle longest for the new one, so that whoever shares an address with somebody who only connects gets through. One that comes without any
 * when none is left gets one of the client that has most, or where nobody has several, the longest idle one. Where none can go for it, the
 * new one is closed. A connection on which nothing is asked is closed, and so is one on which more is asked than anybody waits for.
 */
export function boundConnections(server: Server, { most, headersMs, clock }: ConnectionBounds, answer: RequestListener): void {
  const shares = new Shares(most);
  const kept = new Map<Socket, Kept>();
  /** Nothing is answered on them, nor was ever asked, in the order in which they came to that. */
  const idle = new Set<Socket>();

  const forget = (socket: Socket): void => {
    kept.delete(socket);
    idle.delete(socket);
  };
  /** For a client that has none: of the one that has most the longest idle, or the first; where nobody has several, the longest idle. */
  const forNewcomer = (client: string): Socket | undefined => {
    const largest = shares.largest();
    if (largest === undefined || shares.held(client) > 0) return undefined;
    return shares.held(largest) > 1 ? (longestIdle(largest) ?? first(largest)) : idle.values().next().value;
  };
  const first = (client: string): Socket | undefined => {
    for (const [socket, connection] of kept) if (connection.client === client) return socket;
    return undefined;
  };
  const longestIdle = (client: string): Socket | undefined => {
    for (const socket of idle) if (kept.get(socket)?.client === client) return socket;
    return undefined;
  };

  server.on('connection', (socket: Socket) => {
    const client = clientOf(socket);
    if (!shares.take(client)) {
      const given = longestIdle(client) ?? forNewcomer(client);
      if (given === undefined) {
        socket.destroy();
        return;
      }
      shares.pass(kept.get(given)?.client ?? client, client);
      forget(given);
      given.destroy();
    }
    const asked = clock.after(headersMs, () => socket.destroy());
    kept.set(socket, { client, asked, answersUnderWay: 0 });
    idle.add(socket);
    socket.once('close', () => {
      asked();
      if (kept.has(socket)) shares.giveBack(client);
      forget(socket);
    });
  });
  server.on('request', (request, response) => {
    const { socket } = request;
    const connection = kept.get(socket);
    // What was read together with the request for which the connection was closed.
    if (connection === undefined || socket.destroyed) return;
    connection.asked();
    if (connection.answersUnderWay === MOST_AHEAD) {
      socket.destroy();
      return;
    }
    connection.answersUnderWay += 1;
    idle.delete(socket);
    response.once('close', () => {
      connection.answersUnderWay -= 1;
      if (connection.answersUnderWay === 0 && kept.has(socket)) idle.add(socket);
    });
    answer(request, response);
  });
}
