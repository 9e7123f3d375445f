import { credentials, Metadata, type ServiceError } from '@grpc/grpc-js';
import { type PluginInfo, RegistrationClient } from '../../../src/generated/pluginregistration/v1/api.ts';
import { type Clock, systemClock } from '../../../src/host/clock.ts';
import { resourceNameProblem } from '../../../src/model/plugin-resource.ts';
import type { SimulatedDeviceManager } from '../../../src/sim/kubelet/device-manager.ts';
import { RegistryWatch } from './registry-watch.ts';

const RECONCILE_MS = 1_000;
const DIAL_MS = 10_000;
const INFO_MS = 1_000;
const NOTIFY_MS = 5_000;

interface Registered {
  readonly version: number;
  readonly resource: string;
}

/** The kubelet's plugin watcher over one `plugins_registry`, for device plugins. */
export class SimulatedPluginWatcher {
  readonly #devices: SimulatedDeviceManager;
  readonly #clock: Clock;
  readonly #reconcileMs: number;
  readonly #watch: RegistryWatch;
  /** By the path of their sockets. Made anew at each start, so that what is under way from before changes nothing. */
  #registered = new Map<string, Registered>();
  #operations: BackedOff;
  #cancel = (): void => {};

  constructor(directory: string, devices: SimulatedDeviceManager, clock: Clock = systemClock, reconcileMs = RECONCILE_MS) {
    this.#devices = devices;
    this.#clock = clock;
    this.#reconcileMs = reconcileMs;
    this.#watch = new RegistryWatch(directory);
    this.#operations = new BackedOff(clock);
  }

  start(): void {
    this.#watch.start();
    const reconcile = (): void => {
      this.#reconcile();
      this.#cancel = this.#clock.after(this.#reconcileMs, reconcile);
    };
    reconcile();
  }

  /** Sockets stay; the next start finds and registers them again. */
  stop(): void {
    this.#cancel();
    this.#watch.stop();
    this.#registered = new Map();
    this.#operations = new BackedOff(this.#clock);
  }

  #reconcile(): void {
    const [registered, found] = [this.#registered, this.#watch.found()];
    for (const [path, { resource, version }] of registered) {
      if (found.get(path) === version) continue;
      this.#operations.run(path, async () => {
        registered.delete(path);
        this.#devices.disconnect(resource, path);
      });
    }
    for (const [path, version] of found) {
      // Each by itself: one that hangs holds up no other.
      if (registered.get(path)?.version !== version) this.#operations.run(path, () => this.#register(path, version, registered));
    }
  }

  /** Fails with whatever kept it from being registered, after the plugin was told, if it could be. */
  async #register(path: string, version: number, registered: Map<string, Registered>): Promise<void> {
    const client = new RegistrationClient(`unix:${path}`, credentials.createInsecure(), { 'grpc.use_local_subchannel_pool': 1 });
    try {
      await new Promise<void>((resolve, reject) => {
        client.waitForReady(Date.now() + DIAL_MS, (error) => (error === undefined ? resolve() : reject(error)));
      });
      const info = await answer<PluginInfo>((done) => client.getInfo({}, new Metadata(), { deadline: Date.now() + INFO_MS }, done));
      if (this.#registered !== registered) return;
      const error = await this.#connect(info, path);
      if (error === undefined) registered.set(path, { version, resource: info.name });
      const status = { pluginRegistered: error === undefined, error: error ?? '' };
      await answer((done) => client.notifyRegistrationStatus(status, new Metadata(), { deadline: Date.now() + NOTIFY_MS }, done)).catch(
        (unheard: unknown) => {
          if (registered.delete(path)) this.#devices.disconnect(info.name, path);
          throw unheard;
        },
      );
      if (error !== undefined) throw new Error(error);
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

function answer<A>(call: (done: (error: ServiceError | null, value: A) => void) => unknown): Promise<A> {
  return new Promise((resolve, reject) => {
    call((error, value) => (error === null ? resolve(value) : reject(error)));
  });
}

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 122_000;

interface State {
  readonly isPending: boolean;
  readonly failedAtMs: number;
  readonly waitMs: number;
}

/**
 * Runs things by name, one of a name at a time. After a failure the next of that name is passed over until a wait is up, each twice as
 * long as the one before; a success forgets them. Source of the waits: util/goroutinemap of Kubernetes 1.36.3.
 */
class BackedOff {
  readonly #clock: Clock;
  readonly #states = new Map<string, State>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  run(name: string, operation: () => Promise<void>): void {
    const before = this.#states.get(name) ?? { isPending: false, failedAtMs: 0, waitMs: 0 };
    if (before.isPending || (before.waitMs > 0 && this.#clock.monotonic() - before.failedAtMs <= before.waitMs)) return;
    this.#states.set(name, { ...before, isPending: true });
    operation().then(
      () => this.#states.delete(name),
      () => {
        const waitMs = before.waitMs === 0 ? FIRST_WAIT_MS : Math.min(2 * before.waitMs, LONGEST_WAIT_MS);
        this.#states.set(name, { isPending: false, failedAtMs: this.#clock.monotonic(), waitMs });
      },
    );
  }
}
