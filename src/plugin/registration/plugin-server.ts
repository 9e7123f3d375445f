import { createServer, type Socket } from 'node:net';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import { type DevicePluginServer, DevicePluginService } from '../../generated/deviceplugin/v1beta1/api.ts';
import { type RegistrationServer, RegistrationService } from '../../generated/pluginregistration/v1/api.ts';
import type { Clock } from '../../host/clock.ts';
import { makeSocket, type OwnSocket } from '../../host/fs/own-socket.ts';
import type { PluginService } from '../service.ts';

/** How long a regular shutdown waits for calls in progress, and for clients that close their connections. */
const GRACE_MS = 1_000;
/** The kubelet opens one connection for the list and, with the plugin watcher, one more. Others can connect too, and get the rest. */
const MOST_CONNECTIONS = 16;
/** A client asks for the list within this time. After it, a connection without a list gives its place to a further one. */
const UNUSED_MS = 1_000;
/** Limit for the calls that run at the same time on one connection. */
const MOST_STREAMS = 32;

/** A gRPC server on one socket file. */
export interface PluginServer {
  readonly path: string;
  /** Closes all connections immediately and removes the socket file. */
  cut(): void;
  /** Like `cut`, but first lets calls in progress and lists end. */
  close(): Promise<void>;
}

/** `watcher` is set when the kubelet's plugin watcher will call the socket. Rejects when the socket cannot be created. */
export async function servePlugin(
  path: string,
  service: PluginService,
  clock: Clock,
  watcher: RegistrationServer | undefined,
): Promise<PluginServer> {
  // The gRPC library closes its listener at once but keeps open connections, so the connections are accepted here. Each has a server of its
  // own, because the library does not tell which connection a call belongs to.
  const connections = new Map<Socket, Connection>();
  const listener = createServer((socket) => {
    if (connections.size >= MOST_CONNECTIONS) {
      const nowMs = clock.monotonic();
      const unused = [...connections].find(([, { lists, sinceMs }]) => lists.size === 0 && nowMs - sinceMs >= UNUSED_MS);
      if (unused === undefined) return void socket.destroy();
      // Its event comes later than the next client.
      connections.delete(unused[0]);
      unused[0].destroy();
    }
    const connection = connectionWith(service, watcher, clock.monotonic());
    connections.set(socket, connection);
    socket.once('close', () => {
      connections.delete(socket);
      connection.server.forceShutdown();
    });
    connection.server.createConnectionInjector(ServerCredentials.createInsecure()).injectConnection(socket);
  });
  let own: OwnSocket | undefined;
  const cut = (): void => {
    own?.close();
    for (const socket of connections.keys()) socket.destroy();
  };
  own = await makeSocket(listener, path, 0o600);
  return {
    path,
    cut,
    async close() {
      service.endStreams();
      await new Promise<void>((resolve) => {
        const cancel = clock.after(GRACE_MS, resolve);
        // The clients close the connections. Since Node 24 this shutdown ends before the last frames are sent, so this side must not close them.
        listener.once('close', () => {
          cancel();
          resolve();
        });
        own?.close();
        for (const { server } of connections.values()) server.tryShutdown(() => undefined);
      });
      cut();
    },
  };
}

interface Connection {
  readonly server: Server;
  /** Calls that follow the list. */
  readonly lists: Set<unknown>;
  readonly sinceMs: number;
}

function connectionWith(service: PluginService, watcher: RegistrationServer | undefined, sinceMs: number): Connection {
  const server = new Server({ 'grpc.enable_channelz': 0, 'grpc.max_concurrent_streams': MOST_STREAMS });
  const lists = new Set<unknown>();
  const listAndWatch: DevicePluginServer['listAndWatch'] = (call) => {
    lists.add(call);
    call.once('close', () => lists.delete(call));
    call.once('cancelled', () => lists.delete(call));
    return service.methods.listAndWatch(call);
  };
  server.addService(DevicePluginService, { ...service.methods, listAndWatch });
  if (watcher !== undefined) server.addService(RegistrationService, watcher);
  return { server, lists, sinceMs };
}
