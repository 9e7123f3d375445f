import { createServer, type Socket } from 'node:net';
import { Server, ServerCredentials, type ServerWritableStream } from '@grpc/grpc-js';
import { UserError } from '../../errors.ts';
import {
  type DeviceHealth,
  DRAResourceHealthService,
  HealthStatus,
  type NodeWatchResourcesResponse,
} from '../../generated/drahealth/v1/api.ts';
import { DRAResourceHealthService as AlphaService } from '../../generated/drahealth/v1alpha1/api.ts';
import { listen } from '../http/listen.ts';
import type { FeedList } from './feed-list.ts';
import { HEARTBEAT_MS, type HealthFeed, TIMEOUT_MS } from './health-feed.ts';

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

const LIMITS: FeedSocketLimits = { connections: 16, streams: 4, aliveMs: HEARTBEAT_MS, idleMs: 60_000 };

type WatchCall = ServerWritableStream<object, NodeWatchResourcesResponse>;

/** Serves the feed by gRPC on a unix socket, in both versions of the API. Returns a function that closes everything. */
export async function serveFeedSocket(path: string, feed: HealthFeed, limits: FeedSocketLimits = LIMITS): Promise<() => void> {
  const connections = new Set<Socket>();
  const listener = createServer((socket) => {
    connections.add(socket);
    const server = serverOf(feed, () => socket.destroy(), limits);
    socket.once('close', () => {
      connections.delete(socket);
      server.forceShutdown();
    });
    server.createConnectionInjector(ServerCredentials.createInsecure()).injectConnection(socket);
  });
  listener.maxConnections = limits.connections;
  await listen(listener, path, (fields, cause) => new UserError('feed-failed', fields, cause));
  return () => {
    listener.close();
    for (const socket of connections) socket.destroy();
  };
}

/** Each connection has its own server: the gRPC library does not show which connection a call belongs to, and cannot close one. */
function serverOf(feed: HealthFeed, cut: () => void, limits: FeedSocketLimits): Server {
  const server = new Server({
    'grpc.enable_channelz': 0,
    'grpc.max_concurrent_streams': limits.streams,
    'grpc.keepalive_time_ms': limits.aliveMs,
    'grpc.keepalive_timeout_ms': limits.aliveMs,
    'grpc.max_connection_idle_ms': limits.idleMs,
  });
  const methods = { nodeWatchResources: (call: WatchCall) => watch(call, feed, cut) };
  server.addService(DRAResourceHealthService, methods);
  server.addService(AlphaService, methods);
  return server;
}

function watch(call: WatchCall, feed: HealthFeed, cut: () => void): void {
  const stop = feed.follow({
    // The stream would buffer sixteen lists before it signals back-pressure, so each write waits for the one before.
    write: (list, _isNews, done) => call.write({ devices: messageOf(list) }, (error?: Error | null) => (error ? undefined : done())),
    cut,
  });
  for (const event of ['cancelled', 'close', 'error', 'finish']) call.once(event, stop);
}

function messageOf({ devices }: FeedList): DeviceHealth[] {
  return devices.flatMap(({ state, names, health, message }) =>
    names.map(({ pool, device }) => ({
      device: { poolName: pool, deviceName: device },
      health: HealthStatus[health],
      lastUpdatedTime: BigInt(Math.floor(state.readAtMs / 1_000)),
      healthCheckTimeoutSeconds: BigInt(TIMEOUT_MS / 1_000),
      message,
    })),
  );
}
