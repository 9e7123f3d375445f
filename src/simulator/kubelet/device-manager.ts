import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Server, status } from '@grpc/grpc-js';
import {
  type ContainerAllocateResponse,
  type Device,
  type RegisterRequest,
  type RegistrationServer,
  RegistrationService,
} from '../../generated/deviceplugin/v1beta1/api.ts';
import { type Clock, systemClock } from '../../host/clock.ts';
import { resourceNameProblem } from '../../model/plugin-resource.ts';
import { disconnected, isHealthy, type NodeCapacity, nodeCapacity, numaNodesOf, type ResourceState } from './capacity.ts';
import { chooseFrom, refusal, settle, type TopologyPolicy } from './device-choice.ts';
import { createImpostor, type Impostor } from './impostors.ts';
import { PluginConnection } from './plugin-connection.ts';
import type { SimulatedStock } from './pods.ts';
import type { RegistrationFault } from './registration-fault.ts';
import { bindGrpc, listen, makeRenamedSocket } from './renamed-socket.ts';

export interface DeviceManagerSettings {
  /** Stands for `/var/lib/kubelet/device-plugins`. */
  readonly directory: string;
  readonly clock?: Clock;
  readonly topologyPolicy?: TopologyPolicy;
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

export interface DeviceGrant {
  readonly deviceIds: readonly string[];
  readonly response: ContainerAllocateResponse;
}

/** The kubelet's device manager as plugins see it: registration, dial-back, lists, capacity, allocation, restarts. */
export class SimulatedDeviceManager {
  readonly socket: string;
  readonly #settings: DeviceManagerSettings;
  readonly #clock: Clock;
  readonly #connections = new Map<string, PluginConnection>();
  readonly #open = new Set<PluginConnection>();
  readonly #grants = new Map<string, DeviceGrant & DeviceRequest>();
  #states = new Map<string, ResourceState>();
  readonly #faults = new Map<string, RegistrationFault>();
  #registrations = 0;
  #admissions: Promise<unknown> = Promise.resolve();
  #end: (() => Promise<void>) | undefined;

  constructor(settings: DeviceManagerSettings) {
    this.socket = join(settings.directory, 'kubelet.sock');
    this.#settings = settings;
    this.#clock = settings.clock ?? systemClock;
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
    await makeRenamedSocket(this.socket, (path) => bindGrpc(server, path));
    this.#end = async () => server.forceShutdown();
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

  /** The kubelet's copy of the list. */
  devices(resource: string): readonly Device[] {
    return [...(this.#states.get(resource)?.devices.values() ?? [])];
  }

  capacity(resource: string): NodeCapacity | undefined {
    const state = this.#states.get(resource);
    return state === undefined ? undefined : nodeCapacity(state, this.#clock.monotonic());
  }

  /** For PodResources: what the node has in all. */
  stock(): SimulatedStock {
    const devices = [...this.#states.values()].flatMap(({ resource, devices: all }) =>
      [...all.values()].map((device) => {
        const numaNodes = numaNodesOf(device);
        return { resource, id: device.ID, healthy: isHealthy(device), ...(numaNodes === undefined ? {} : { numaNodes }) };
      }),
    );
    return { devices, cpus: [], memory: [] };
  }

  /**
   * As at pod admission, one after the other: a plugin that hangs holds up everybody. What a container was given it keeps; asked again, it
   * gets the same without a call to the plugin.
   */
  allocate(request: DeviceRequest): Promise<DeviceGrant> {
    const grant = this.#admissions.then(() => this.#allocate(request));
    this.#admissions = grant.catch(() => {});
    return grant;
  }

  async #allocate(request: DeviceRequest): Promise<DeviceGrant> {
    const { resource, count } = request;
    const key = [request.podUid, request.container, resource].join('\u0000');
    const known = this.#grants.get(key);
    if (known !== undefined) return known;
    const connection = this.#connections.get(resource);
    const state = this.#states.get(resource);
    if (connection === undefined || state === undefined) throw refusal(`cannot allocate unregistered device ${resource}`);
    const inUse = new Set([...this.#grants.values()].flatMap((grant) => (grant.resource === resource ? grant.deviceIds : [])));
    const { candidates, askPlugin } = chooseFrom(resource, state.devices, inUse, count, this.#settings.topologyPolicy ?? 'none');
    const ask = askPlugin && connection.options.getPreferredAllocationAvailable;
    const proposed = ask ? await connection.prefer(candidates, [], count) : [];
    const deviceIds = settle(candidates, proposed, count);
    const { containerResponses } = await connection.allocate(deviceIds);
    const [response] = containerResponses;
    if (response === undefined) throw refusal(`no containers return in allocation response for ${resource}`);
    const grant = { ...request, deviceIds, response };
    this.#grants.set(key, grant);
    this.#settings.onChange?.();
    return grant;
  }

  /** Before a container's start. */
  async preStart(grant: DeviceGrant, resource: string): Promise<void> {
    await this.#connections.get(resource)?.preStart(grant.deviceIds);
  }

  release(podUid: string): void {
    for (const [key, grant] of this.#grants) if (grant.podUid === podUid) this.#grants.delete(key);
    this.#settings.onChange?.();
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
    if (state !== undefined) this.#states.set(resource, disconnected(state, this.#clock.monotonic()));
    this.#settings.onChange?.();
  }

  async #register({ version, resourceName, endpoint }: RegisterRequest): Promise<void> {
    this.#registrations += 1;
    const fault = this.#faultOf(resourceName);
    if (fault?.kind === 'hang') return new Promise(() => {});
    if (fault?.kind === 'slow') await new Promise<void>((resolve) => this.#clock.after(fault.delayMs, resolve));
    if (fault?.kind === 'refuse') throw new Error(fault.message);
    if (version !== 'v1beta1')
      throw new Error(`requested API version "${version}" is not supported by kubelet. Supported versions: [v1beta1]`);
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
