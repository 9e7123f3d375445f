import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Server, status } from '@grpc/grpc-js';
import {
  type Device,
  type RegisterRequest,
  type RegistrationServer,
  RegistrationService,
} from '../../generated/deviceplugin/v1beta1/api.ts';
import { type Clock, systemClock } from '../../host/clock.ts';
import { resourceNameProblem } from '../../model/plugin-resource.ts';
import { type ContainerGrant, type ContainerRequest, DeviceAllocations } from './allocations.ts';
import { isHealthy, type NodeCapacity, nodeCapacity, numaNodesOf, type ResourceState } from './capacity.ts';
import { refusal } from './device-choice.ts';
import { createImpostor, type Impostor } from './impostors.ts';
import { PluginConnection } from './plugin-connection.ts';
import type { SimulatedStock } from './pods.ts';
import type { RegistrationFault } from './registration-fault.ts';
import { bindGrpc, keepSocketFile, listen, makeRenamedSocket } from './renamed-socket.ts';
import type { TopologyPolicy } from './topology-hints.ts';

export interface DeviceManagerSettings {
  /** Stands for `/var/lib/kubelet/device-plugins`. */
  readonly directory: string;
  readonly clock?: Clock;
  readonly topologyPolicy?: TopologyPolicy;
  /** NUMA nodes of the machine. Default 2. */
  readonly numaNodes?: number;
  /** Up to 1.36 the end of any stream of a resource takes its newest plugin away; from 1.37 on only the plugin's own. */
  readonly release?: '1.36' | '1.37';
  /** A list, an allocation or a registration changed something. */
  readonly onChange?: () => void;
}

/** One container's wish for one resource. */
export interface DeviceRequest {
  readonly podUid: string;
  readonly container: string;
  readonly resource: string;
  readonly count: number;
}

/** The kubelet's device manager as plugins see it: registration, dial-back, lists, capacity, allocation, restarts. */
export class SimulatedDeviceManager {
  readonly socket: string;
  readonly #settings: DeviceManagerSettings;
  readonly #clock: Clock;
  readonly #connections = new Map<string, PluginConnection>();
  readonly #open = new Set<PluginConnection>();
  readonly #allocations: DeviceAllocations;
  #states = new Map<string, ResourceState>();
  readonly #faults = new Map<string, RegistrationFault>();
  #registrations = 0;
  #admissions: Promise<unknown> = Promise.resolve();
  #end: (() => Promise<void>) | undefined;

  constructor(settings: DeviceManagerSettings) {
    this.socket = join(settings.directory, 'kubelet.sock');
    this.#settings = settings;
    this.#clock = settings.clock ?? systemClock;
    this.#allocations = new DeviceAllocations({
      policy: settings.topologyPolicy ?? 'none',
      numaNodes: settings.numaNodes ?? 2,
      state: (resource) => this.#states.get(resource),
      plugin: (resource) => this.#connections.get(resource),
    });
  }

  /** Deletes every socket in the directory, other files stay; then listens. */
  async start(): Promise<void> {
    await this.stop();
    const { directory } = this.#settings;
    mkdirSync(directory, { recursive: true, mode: 0o750 });
    for (const name of readdirSync(directory)) removeSocket(join(directory, name));
    const server = new Server({ 'grpc.enable_channelz': 0 });
    const methods: RegistrationServer = {
      register: ({ request }, callback) => {
        this.#register(request).then(
          () => callback(null, {}),
          (error: Error) => callback({ code: status.UNKNOWN, details: error.message }),
        );
      },
    };
    server.addService(RegistrationService, methods);
    rmSync(this.socket, { force: true });
    // In its place, unlike the socket of PodResources.
    await bindGrpc(server, this.socket);
    this.#end = async () => keepSocketFile(this.socket, () => server.forceShutdown());
  }

  /** Ends it as a signal does: connections are cut, the socket file stays, what was known is in the checkpoint alone. */
  async stop(): Promise<void> {
    const end = this.#end;
    this.#end = undefined;
    for (const connection of this.#open) connection.close();
    this.#open.clear();
    this.#connections.clear();
    // The checkpoint names the resources; lists come back with their plugins.
    this.#states = new Map([...this.#states.keys()].map((resource) => [resource, { resource, devices: new Map(), stoppedAtMs: 0 }]));
    await end?.();
  }

  async restart(): Promise<void> {
    await this.stop();
    await this.start();
  }

  async impersonate(kind: Impostor): Promise<void> {
    await this.stop();
    const { server, end } = createImpostor(kind);
    await makeRenamedSocket(this.socket, (path) => listen(server, path));
    this.#end = end;
  }

  /** Ends it; a regular file lies where its socket was. */
  async replaceSocketByFile(): Promise<void> {
    await this.stop();
    rmSync(this.socket, { force: true });
    writeFileSync(this.socket, '');
  }

  async deleteDirectory(): Promise<void> {
    await this.stop();
    rmSync(this.#settings.directory, { recursive: true, force: true });
  }

  /** For one resource, or for all that have no fault of their own. */
  setFault(fault: RegistrationFault | undefined, resource = ''): void {
    if (fault === undefined) this.#faults.delete(resource);
    else this.#faults.set(resource, fault);
  }

  /** Calls of `Register` that arrived so far, refused ones too. */
  get registrations(): number {
    return this.#registrations;
  }

  isConnected(resource: string): boolean {
    return this.#connections.has(resource);
  }

  /** The kubelet's copy of the list; of a plugin that went away, all unhealthy. */
  devices(resource: string): readonly Device[] {
    const state = this.#states.get(resource);
    const devices = [...(state?.devices.values() ?? [])];
    return state?.stoppedAtMs === undefined ? devices : devices.map((device) => ({ ...device, health: 'Unhealthy' }));
  }

  /** Every resource that was ever registered, as the checkpoint names them. */
  resources(): readonly string[] {
    return [...this.#states.keys()];
  }

  /**
   * `allocatedResourcesStatus` of a pod by container, resource and device: the health that was sent last, whether or not the plugin is
   * still there, and healthy for a device that it no longer tells of.
   */
  status(podUid: string): Record<string, Record<string, Record<string, 'Healthy' | 'Unhealthy'>>> {
    const told: Record<string, Record<string, Record<string, 'Healthy' | 'Unhealthy'>>> = {};
    for (const { container, resource, deviceIds } of this.#allocations.of(podUid)) {
      const healthOf = (id: string): 'Healthy' | 'Unhealthy' => {
        const device = this.#states.get(resource)?.devices.get(id);
        return device === undefined || isHealthy(device) ? 'Healthy' : 'Unhealthy';
      };
      told[container] = { ...told[container], [resource]: Object.fromEntries(deviceIds.map((id) => [id, healthOf(id)])) };
    }
    return told;
  }

  capacity(resource: string): NodeCapacity | undefined {
    const state = this.#states.get(resource);
    return state === undefined ? undefined : nodeCapacity(state, this.#clock.monotonic());
  }

  /** For PodResources: what the node has in all. */
  stock(): SimulatedStock {
    const devices = this.resources().flatMap((resource) =>
      this.devices(resource).map((device) => {
        const numaNodes = numaNodesOf(device);
        return { resource, id: device.ID, healthy: isHealthy(device), ...(numaNodes === undefined ? {} : { numaNodes }) };
      }),
    );
    return { devices, resources: this.resources(), cpus: [], memory: [] };
  }

  /** As at pod admission, one container after the other: a plugin that hangs holds up everybody. */
  allocateAll(request: ContainerRequest): Promise<ContainerGrant[]> {
    const grants = this.#admissions.then(() => this.#allocations.allocate(request));
    this.#admissions = grants.catch(() => {});
    return grants.then((given) => {
      if (given.length > 0) this.#settings.onChange?.();
      return given;
    });
  }

  /** As {@link allocateAll} for a container that wants one resource, which must be registered. */
  async allocate({ resource, count, ...request }: DeviceRequest): Promise<ContainerGrant> {
    const [grant] = await this.allocateAll({ ...request, wants: [{ resource, count }] });
    if (grant === undefined) throw refusal(`cannot allocate unregistered device ${resource}`);
    return grant;
  }

  /** Before a container's start. */
  async preStart(grant: Pick<ContainerGrant, 'deviceIds'>, resource: string): Promise<void> {
    await this.#connections.get(resource)?.preStart(grant.deviceIds);
  }

  /** The checkpoint goes on naming the pod until something else has it written. */
  release(podUid: string): void {
    this.#allocations.release(podUid);
  }

  /** Dials a plugin back and follows its list; of `Register` and of the plugin watcher alike. */
  async connect(resource: string, socket: string): Promise<void> {
    const problem = resourceNameProblem(resource);
    if (problem !== undefined) throw new Error(`the ResourceName "${resource}" is invalid`);
    const connection = new PluginConnection(socket, this.#faultOf(resource)?.kind === 'old-authority' ? socket : 'localhost');
    this.#open.add(connection);
    try {
      await connection.dial();
    } catch (error) {
      this.#close(connection);
      throw error;
    }
    this.#connections.set(resource, connection);
    setImmediate(() => this.#follow(resource, connection));
  }

  disconnect(resource: string): void {
    const connection = this.#connections.get(resource);
    if (connection === undefined) return;
    this.#connections.delete(resource);
    this.#close(connection);
    const state = this.#states.get(resource);
    if (state !== undefined) this.#states.set(resource, { ...state, stoppedAtMs: this.#clock.monotonic() });
    this.#settings.onChange?.();
  }

  async #register({ version, resourceName, endpoint }: RegisterRequest): Promise<void> {
    this.#registrations += 1;
    const fault = this.#faultOf(resourceName);
    if (fault?.kind === 'hang') return new Promise(() => {});
    if (fault?.kind === 'slow') await new Promise<void>((resolve) => this.#clock.after(fault.delayMs, resolve));
    if (fault?.kind === 'refuse') throw new Error(fault.message);
    if (version !== 'v1beta1')
      throw new Error(`requested API version "${version}" is not supported by kubelet. Supported version is ["v1beta1"]`);
    if (fault?.kind === 'no-dial-back') return;
    await this.connect(resourceName, join(this.#settings.directory, endpoint));
    if (fault?.kind === 'double') await this.connect(resourceName, join(this.#settings.directory, endpoint));
  }

  #faultOf(resource: string): RegistrationFault | undefined {
    return this.#faults.get(resource) ?? this.#faults.get('');
  }

  #follow(resource: string, connection: PluginConnection): void {
    if (!this.#open.has(connection)) return;
    const stream = connection.follow({
      list: (devices) => this.#listed(resource, devices),
      ended: () => this.#streamEnded(resource, connection),
    });
    if (this.#faultOf(resource)?.kind === 'cut-stream') stream.once('data', () => stream.cancel());
  }

  #listed(resource: string, devices: readonly Device[]): void {
    this.#states.set(resource, { resource, devices: new Map(devices.map((device) => [device.ID, device])) });
    this.#settings.onChange?.();
  }

  #streamEnded(resource: string, connection: PluginConnection): void {
    const current = this.#connections.get(resource);
    const takesCurrent = this.#settings.release === '1.37' ? current?.socket === connection.socket : true;
    if (takesCurrent) this.disconnect(resource);
    this.#close(connection);
  }

  #close(connection: PluginConnection): void {
    this.#open.delete(connection);
    connection.close();
  }
}

function removeSocket(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isSocket() === true) rmSync(path, { force: true });
}
