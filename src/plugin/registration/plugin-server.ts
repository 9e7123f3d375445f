import { createServer, type Socket } from 'node:net';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import { DevicePluginService } from '../../generated/deviceplugin/v1beta1/api.ts';
import { type RegistrationServer, RegistrationService } from '../../generated/pluginregistration/v1/api.ts';
import type { Clock } from '../../host/clock.ts';
import type { PluginService } from '../service.ts';
import { removeSocket } from './socket-names.ts';

/** How long a regular shutdown waits for calls in progress, and for clients that close their connections. */
const GRACE_MS = 1_000;
/** The kubelet opens one connection for the list and, with the plugin watcher, one more. Others can connect too, and get the rest. */
const MOST_CONNECTIONS = 16;
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
  const server = new Server({ 'grpc.enable_channelz': 0, 'grpc.max_concurrent_streams': MOST_STREAMS });
  server.addService(DevicePluginService, service.methods);
  if (watcher !== undefined) server.addService(RegistrationService, watcher);
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  // The gRPC library closes its listener at once but keeps open connections, so the connections are accepted here.
  const connections = new Set<Socket>();
  const listener = createServer((socket) => {
    connections.add(socket);
    socket.once('close', () => connections.delete(socket));
    injector.injectConnection(socket);
  });
  listener.maxConnections = MOST_CONNECTIONS;
  const cut = (): void => {
    listener.close();
    for (const socket of connections) socket.destroy();
    server.forceShutdown();
    removeSocket(path);
  };
  await new Promise<void>((resolve, reject) => {
    listener.once('error', reject);
    listener.listen(path, resolve);
  }).catch((error: unknown) => {
    cut();
    throw error;
  });
  return {
    path,
    cut,
    async close() {
      service.endStreams();
      await new Promise<void>((resolve) => {
        const cancel = clock.after(GRACE_MS, resolve);
        // The clients close the connections. Since Node 24 this shutdown ends before the last frames are sent, so this side must not close them.
        listener.close(() => {
          cancel();
          resolve();
        });
        server.tryShutdown(() => undefined);
      });
      cut();
    },
  };
}
