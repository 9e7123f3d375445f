import { Server, ServerCredentials } from '@grpc/grpc-js';
import { DevicePluginService } from '../../generated/deviceplugin/v1beta1/api.ts';
import { type RegistrationServer, RegistrationService } from '../../generated/pluginregistration/v1/api.ts';
import type { Clock } from '../../host/clock.ts';
import type { PluginService } from '../service.ts';
import { removeSocket } from './socket-names.ts';

/** How long a regular shutdown waits for calls in progress. */
const GRACE_MS = 1_000;

/** A gRPC server on one socket file. */
export interface PluginServer {
  readonly path: string;
  /** Closes all connections immediately and removes the socket file. */
  cut(): void;
  /** Like `cut`, but waits for calls in progress first. */
  close(): Promise<void>;
}

/** `watcher` is set when the kubelet's plugin watcher will call the socket. Rejects when the socket cannot be created. */
export async function servePlugin(
  path: string,
  service: PluginService,
  clock: Clock,
  watcher: RegistrationServer | undefined,
): Promise<PluginServer> {
  const server = new Server({ 'grpc.enable_channelz': 0 });
  server.addService(DevicePluginService, service.methods);
  if (watcher !== undefined) server.addService(RegistrationService, watcher);
  const cut = (): void => {
    server.forceShutdown();
    removeSocket(path);
  };
  try {
    await bind(server, path);
  } catch (error) {
    cut();
    throw error;
  }
  return {
    path,
    cut,
    async close() {
      service.endStreams();
      await new Promise<void>((resolve) => {
        const cancel = clock.after(GRACE_MS, resolve);
        server.tryShutdown(() => {
          cancel();
          resolve();
        });
      });
      cut();
    },
  };
}

function bind(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.bindAsync(`unix:${path}`, ServerCredentials.createInsecure(), (error) => (error === null ? resolve() : reject(error)));
  });
}
