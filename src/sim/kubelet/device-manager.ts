import { mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Server, status } from '@grpc/grpc-js';
import {
  type Device,
  type RegisterRequest,
  type RegistrationServer,
  RegistrationService,
} from '../../generated/deviceplugin/v1beta1/api.ts';
import { resourceNameProblem } from '../../model/plugin-resource.ts';
import { type Allocations, type AllocationsDependencies, type ContainerGrant, PlainAllocations, type PodRequest } from './allocations.ts';
import { PluginConnection } from './plugin-connection.ts';
import type { SimulatedStock } from './pods.ts';
import { type NodeCapacity, ResourceStates } from './resource-states.ts';
import { bindGrpc } from './sockets.ts';

export interface DeviceManagerSettings {
  /** Replaces `/var/lib/kubelet/device-plugins`. */
  readonly directory: string;
  /** Called when a list, an allocation or a registration changed something. */
  readonly onChange?: () => void;
  /** Admissions of several pods overlap, as they can from Kubernetes 1.37. Default: one after the other. */
  readonly isOverlapping?: boolean;
  /** Creates the policy that allocates devices to containers. */
  readonly allocations?: (parts: AllocationsDependencies) => Allocations;
}

/** Simulates the kubelet's device manager for plugins: registration, dial-back, lists, capacity, allocation. */
export class SimulatedDeviceManager {
  readonly socket: string;
  protected readonly states = new ResourceStates();
  readonly #directory: string;
  readonly #onChange: () => void;
  readonly #allocations: Allocations;
  /** The active plugin of each resource. */
  readonly #newest = new Map<string, PluginConnection>();
  /** The active connections, and older ones that are still open. */
  readonly #open = new Set<PluginConnection>();
  readonly #isOverlapping: boolean;
  #admissions: Promise<unknown> = Promise.resolve();
  #end: (() => Promise<void>) | undefined;

  constructor(settings: DeviceManagerSettings) {
    const { directory, onChange = () => {}, isOverlapping = false, allocations = (parts) => new PlainAllocations(parts) } = settings;
    this.#isOverlapping = isOverlapping;
    this.socket = join(directory, 'kubelet.sock');
    this.#directory = directory;
    this.#onChange = onChange;
    this.#allocations = allocations({ state: (resource) => this.states.get(resource), plugin: (resource) => this.plugin(resource) });
  }

  /** Deletes every socket in the directory, but no other files; then listens. */
  async start(): Promise<void> {
    await this.stop();
    mkdirSync(this.#directory, { recursive: true, mode: 0o750 });
    for (const name of readdirSync(this.#directory)) removeSocket(join(this.#directory, name));
    const server = new Server({ 'grpc.enable_channelz': 0 });
    const methods: RegistrationServer = {
      register: ({ request }, callback) => {
        this.register(request).then(
          () => callback(null, {}),
          (error: Error) => callback({ code: status.UNKNOWN, details: error.message }),
        );
      },
    };
    server.addService(RegistrationService, methods);
    rmSync(this.socket, { force: true });
    // The socket is bound at its final path, unlike the socket of PodResources, which is renamed.
    await bindGrpc(server, this.socket);
    this.listens(async () => server.forceShutdown());
  }

  /** Stops it as a signal does: closes all connections. Resources stay known; plugins send their lists again after a restart. */
  async stop(): Promise<void> {
    for (const connection of this.#open) connection.close();
    this.#open.clear();
    this.#newest.clear();
    this.states.restore(this.states.names());
    const end = this.#end;
    this.#end = undefined;
    await end?.();
  }

  isConnected(resource: string): boolean {
    return this.plugin(resource) !== undefined;
  }

  /** Returns the kubelet's copy of the list. After the plugin has disconnected, all devices are unhealthy. */
  devices(resource: string): readonly Device[] {
    return this.states.devices(resource);
  }

  /** Returns the values for the node's status. */
  capacity(resource: string): NodeCapacity | undefined {
    return this.states.capacity(resource);
  }

  /** Returns all devices of the node, for PodResources. */
  stock(): SimulatedStock {
    return this.states.stock();
  }

  /** Admits one pod after the other, so a hanging plugin blocks all later pods, unless admissions overlap. */
  admit(pod: PodRequest, onGrant?: (grant: ContainerGrant) => void): Promise<ContainerGrant[]> {
    const earlier = this.#isOverlapping ? Promise.resolve() : this.#admissions;
    const grants = earlier.then(() => this.#allocations.admit(pod, onGrant));
    this.#admissions = grants.catch(() => {});
    return grants.then((given) => {
      if (given.length > 0) this.changed();
      return given;
    });
  }

  /** Frees the devices of the pod. */
  release(podUid: string): void {
    this.#allocations.release(podUid);
  }

  /** Dials the plugin back, and then follows its list. Fails with the error that the plugin receives. */
  async connect(resource: string, socket: string): Promise<void> {
    if (resourceNameProblem(resource) !== undefined) throw new Error(`the ResourceName "${resource}" is invalid`);
    const connection = this.connectionTo(resource, socket);
    this.#open.add(connection);
    try {
      await connection.dial();
    } catch (error) {
      this.#close(connection);
      throw error;
    }
    this.#newest.set(resource, connection);
    setImmediate(() => this.#follow(resource, connection));
  }

  disconnect(resource: string, _socket?: string): void {
    const connection = this.#newest.get(resource);
    if (connection === undefined) return;
    this.#newest.delete(resource);
    this.#close(connection);
    this.stopped(resource);
  }

  /** Makes a connection that is open the active one. */
  protected promote(resource: string, connection: PluginConnection): void {
    this.#newest.set(resource, connection);
  }

  protected plugin(resource: string): PluginConnection | undefined {
    return this.#newest.get(resource);
  }

  /** Fails with the error that the plugin receives. */
  protected async register({ version, resourceName, endpoint }: RegisterRequest): Promise<void> {
    if (version !== 'v1beta1')
      throw new Error(`requested API version "${version}" is not supported by kubelet. Supported version is ["v1beta1"]`);
    await this.connect(resourceName, join(this.#directory, endpoint));
  }

  protected connectionTo(_resource: string, socket: string): PluginConnection {
    return new PluginConnection(socket);
  }

  protected listed(resource: string, devices: readonly Device[]): void {
    this.states.listed(resource, devices);
    this.changed();
  }

  protected stopped(resource: string): void {
    this.states.stopped(resource);
    this.changed();
  }

  /** As up to Kubernetes 1.36, the end of any stream of a resource removes its newest plugin. */
  protected streamEnded(resource: string, _connection: PluginConnection): void {
    this.disconnect(resource);
  }

  /** Called when a server listens at the socket; `end` stops it. */
  protected listens(end: () => Promise<void>): void {
    this.#end = end;
  }

  protected changed(): void {
    this.#onChange();
  }

  #follow(resource: string, connection: PluginConnection): void {
    if (!this.#open.has(connection)) return;
    connection.follow({
      list: (devices) => this.listed(resource, devices),
      ended: () => {
        this.streamEnded(resource, connection);
        this.#close(connection);
      },
    });
  }

  #close(connection: PluginConnection): void {
    this.#open.delete(connection);
    connection.close();
  }
}

function removeSocket(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isSocket() === true) rmSync(path, { force: true });
}
