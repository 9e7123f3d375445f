import { type Dirent, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { credentials, Metadata, type ServiceError } from '@grpc/grpc-js';
import { type PluginInfo, RegistrationClient } from '../../generated/pluginregistration/v1/api.ts';
import { type Clock, systemClock } from '../../host/clock.ts';
import { socketAt } from '../../host/socket-file.ts';
import { resourceNameProblem } from '../../model/plugin-resource.ts';
import type { SimulatedDeviceManager } from './device-manager.ts';

const RECONCILE_MS = 1_000;
const INFO_MS = 1_000;
const NOTIFY_MS = 5_000;

/** The kubelet's plugin watcher over one `plugins_registry`, for device plugins. */
export class SimulatedPluginWatcher {
  readonly #directory: string;
  readonly #devices: SimulatedDeviceManager;
  readonly #clock: Clock;
  readonly #reconcileMs: number;
  /** By path: which socket it was, and the resource once it is registered. */
  readonly #seen = new Map<string, { readonly identity: string; resource?: string }>();
  #cancel = (): void => {};

  constructor(directory: string, devices: SimulatedDeviceManager, clock: Clock = systemClock, reconcileMs = RECONCILE_MS) {
    this.#directory = directory;
    this.#devices = devices;
    this.#clock = clock;
    this.#reconcileMs = reconcileMs;
  }

  start(): void {
    const reconcile = (): void => {
      this.#reconcile();
      this.#cancel = this.#clock.after(this.#reconcileMs, reconcile);
    };
    reconcile();
  }

  /** Sockets stay; the next start finds and registers them again. */
  stop(): void {
    this.#cancel();
    this.#seen.clear();
  }

  #reconcile(): void {
    const present = new Map(socketsIn(this.#directory));
    for (const [path, { resource, identity }] of [...this.#seen]) {
      if (present.get(path) === identity) continue;
      this.#seen.delete(path);
      if (resource !== undefined) this.#devices.disconnect(resource);
    }
    for (const [path, identity] of present) {
      if (this.#seen.has(path)) continue;
      const entry: { readonly identity: string; resource?: string } = { identity };
      this.#seen.set(path, entry);
      // Each by itself: one that hangs holds up no other.
      void this.#register(path).then((resource) => {
        if (resource !== undefined) entry.resource = resource;
        else if (this.#seen.get(path) === entry) this.#seen.delete(path);
      });
    }
  }

  async #register(path: string): Promise<string | undefined> {
    const client = new RegistrationClient(`unix:${path}`, credentials.createInsecure(), { 'grpc.use_local_subchannel_pool': 1 });
    try {
      const info = await answer<PluginInfo>((done) => client.getInfo({}, new Metadata(), { deadline: Date.now() + INFO_MS }, done));
      const error = await this.#connect(info, path);
      const status = { pluginRegistered: error === undefined, error: error ?? '' };
      await answer((done) => client.notifyRegistrationStatus(status, new Metadata(), { deadline: Date.now() + NOTIFY_MS }, done));
      return error === undefined ? info.name : undefined;
    } catch {
      return undefined;
    } finally {
      client.close();
    }
  }

  /** Undefined when it worked. */
  async #connect({ type, name, endpoint, supportedVersions }: PluginInfo, path: string): Promise<string | undefined> {
    if (type !== 'DevicePlugin') return `RegisterPlugin error -- no handler registered for plugin type: ${type} at socket ${path}`;
    const problem = validationProblem(name, supportedVersions);
    if (problem !== undefined) return `RegisterPlugin error -- plugin validation failed with err: ${problem}`;
    return await this.#devices.connect(name, endpoint === '' ? path : endpoint).then(
      () => undefined,
      (error: unknown) => `RegisterPlugin error -- plugin registration failed with err: ${(error as Error).message}`,
    );
  }
}

function validationProblem(name: string, versions: readonly string[]): string | undefined {
  if (!versions.includes('v1beta1')) return `manager version, v1beta1, is not among plugin supported versions [${versions.join(' ')}]`;
  if (resourceNameProblem(name) === undefined) return undefined;
  return `invalid name of device plugin socket: the ResourceName "${name}" is invalid`;
}

/** Of a directory and all below it; what begins with a dot is passed over. */
function socketsIn(directory: string): [string, string][] {
  return entriesOf(directory).flatMap((entry): [string, string][] => {
    if (entry.name.startsWith('.')) return [];
    const path = join(directory, entry.name);
    if (entry.isDirectory()) return socketsIn(path);
    const state = socketAt(path);
    return state.kind === 'socket' ? [[path, state.identity]] : [];
  });
}

function entriesOf(directory: string): Dirent[] {
  try {
    return readdirSync(directory, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1));
  } catch {
    return [];
  }
}

function answer<A>(call: (done: (error: ServiceError | null, value: A) => void) => unknown): Promise<A> {
  return new Promise((resolve, reject) => {
    call((error, value) => (error === null ? resolve(value) : reject(error)));
  });
}
