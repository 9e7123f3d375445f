import { createServer, type Server as NetServer, type Socket } from 'node:net';
import { Server, ServerCredentials, type ServerWritableStream } from '@grpc/grpc-js';
import { seconds } from '../../model/duration.ts';
import type { FeedList } from './feed-list.ts';
import { HEARTBEAT_MS, type HealthFeed } from './health-feed.ts';

export interface FeedSocketLimits {
  /** Maximum number of connections; further ones are closed immediately. */
  readonly connections: number;
  /** Maximum number of streams on one connection. */
  readonly streams: number;
  /** How often a silent client is asked, and how long it may take to answer. */
  readonly aliveMs: number;
  /** How long a connection may be without a stream. */
  readonly idleMs: number;
}

export const FEED_LIMITS: FeedSocketLimits = { connections: 16, streams: 4, aliveMs: HEARTBEAT_MS, idleMs: 60_000 };

/** No request of these protocols needs more. */
const REQUEST_BYTES = 65_536;
/** How long a client may take to learn that its streams end. */
const END_MS = seconds(1);

/** One connection, for the calls on it. */
export interface FeedConnection {
  /** Streams that are open. */
  readonly streams: Set<{ end(): void }>;
  /** Closes the connection at once. */
  cut(): void;
}

/** Adds the services of one protocol to the server of a connection. */
export type FeedProtocol = (server: Server, connection: FeedConnection) => void;

/** Serves a protocol by gRPC on the connections of any number of listeners. */
export interface FeedServer {
  /** A listener, without an address. */
  listener(): NetServer;
  /** Ends all streams and closes all connections. */
  close(): Promise<void>;
}

export function createFeedServer(protocol: FeedProtocol, limits: FeedSocketLimits = FEED_LIMITS): FeedServer {
  const open = new Map<Socket, { readonly server: Server; readonly connection: FeedConnection }>();
  const accept = (socket: Socket): void => {
    // Those of a listener before count too.
    if (open.size >= limits.connections) return void socket.destroy();
    const server = serverWith(limits);
    const connection = { streams: new Set<{ end(): void }>(), cut: () => void socket.destroy() };
    open.set(socket, { server, connection });
    socket.once('close', () => {
      open.delete(socket);
      server.forceShutdown();
    });
    protocol(server, connection);
    server.createConnectionInjector(ServerCredentials.createInsecure()).injectConnection(socket);
  };
  return {
    listener: () => createServer(accept),
    async close() {
      const ended = [...open].map(async ([socket, { server, connection }]) => {
        // Some clients connect again after a stream that ended, and not after a connection that broke.
        for (const stream of connection.streams) stream.end();
        const deadline = setTimeout(() => socket.destroy(), END_MS);
        await new Promise<void>((resolve) => {
          socket.once('close', resolve);
          // The client closes the connection. Since Node 24 this callback comes before the last frames are sent, so this side must not close it.
          server.tryShutdown(() => undefined);
        });
        clearTimeout(deadline);
      });
      await Promise.all(ended);
    },
  };
}

/** Each connection has its own server: the gRPC library does not show which connection a call belongs to, and cannot close one. */
function serverWith({ streams, aliveMs, idleMs }: FeedSocketLimits): Server {
  return new Server({
    'grpc.enable_channelz': 0,
    'grpc.max_concurrent_streams': streams,
    'grpc.max_receive_message_length': REQUEST_BYTES,
    'grpc.keepalive_time_ms': aliveMs,
    'grpc.keepalive_timeout_ms': aliveMs,
    'grpc.max_connection_idle_ms': idleMs,
  });
}

/** Sends the list on a stream, as a message of its protocol: at once, at each change and at each heartbeat. */
export function streamLists<T>(
  call: ServerWritableStream<object, T>,
  feed: HealthFeed,
  { streams, cut }: FeedConnection,
  messageOf: (list: FeedList) => T,
): void {
  const stop = feed.follow({
    // The stream would buffer sixteen lists before it signals back-pressure, so each write waits for the one before.
    write: ({ list }, done) => call.write(messageOf(list), (error?: Error | null) => (error ? undefined : done())),
    cut,
  });
  streams.add(call);
  for (const event of ['cancelled', 'close', 'error', 'finish'])
    call.once(event, () => {
      streams.delete(call);
      stop();
    });
}
