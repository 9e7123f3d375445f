import type { Device } from '../../generated/deviceplugin/v1beta1/api.ts';
import { type Clock, systemClock } from '../../host/clock.ts';
import { type ContainerGrant, DeviceAllocations } from './allocations.ts';
import type { NodeCapacity } from './capacity.ts';
import { readCheckpoint } from './checkpoint-file.ts';
import { refusal } from './device-choice.ts';
import type { Impostor } from './impostors.ts';
import { PluginConnections } from './plugin-connections.ts';
import type { PodRequest } from './pod-request.ts';
import type { SimulatedStock } from './pods.ts';
import type { RegistrationFault } from './registration-fault.ts';
import { RegistrationServer } from './registration-server.ts';
import { Registrations } from './registrations.ts';
import { type DeviceStatus, ResourceStates } from './resource-states.ts';
import type { TopologyPolicy, TopologyScope } from './topology-hints.ts';

export interface DeviceManagerSettings {
  /** Stands for `/var/lib/kubelet/device-plugins`. */
  readonly directory: string;
  readonly clock?: Clock;
  readonly topologyPolicy?: TopologyPolicy;
  /** Default `container`. */
  readonly topologyScope?: TopologyScope;
  /** NUMA nodes of the machine. Default 2. */
  readonly numaNodes?: number;
  /** Path of the file that each start begins with. Absent: what it knew before, as if there had been one. */
  readonly checkpoint?: string;
  /** UIDs of the pods that have not ended; all others are forgotten before an allocation. Undefined while not all are known. */
  readonly activePods?: () => readonly string[] | undefined;
  /** Up to 1.36 the end of any stream of a resource takes its newest plugin away; from 1.37 on only the plugin's own. */
  readonly release?: '1.36' | '1.37';
  /** A list, an allocation or a registration changed something. */
  readonly onChange?: () => void;
}

/** The kubelet's device manager as plugins see it: registration, dial-back, lists, capacity, allocation, restarts. */
export class SimulatedDeviceManager {
  readonly #settings: DeviceManagerSettings;
  readonly #server: RegistrationServer;
  readonly #connections: PluginConnections;
  readonly #allocations: DeviceAllocations;
  readonly #states: ResourceStates;
  readonly #registrations: Registrations;
  #admissions: Promise<unknown> = Promise.resolve();

  constructor(settings: DeviceManagerSettings) {
    this.#settings = settings;
    const { directory, clock = systemClock } = settings;
    this.#server = new RegistrationServer(directory, (request) => this.#registrations.register(request));
    this.#registrations = new Registrations({ directory, clock, connect: (...asked) => this.connect(...asked) });
    this.#states = new ResourceStates(clock);
    this.#connections = new PluginConnections({
      release: settings.release ?? '1.36',
      faultOf: (resource) => this.#registrations.faultOf(resource),
      listed: (resource, devices) => {
        this.#states.listed(resource, devices);
        settings.onChange?.();
      },
      stopped: (resource) => {
        this.#states.stopped(resource);
        settings.onChange?.();
      },
    });
    this.#allocations = new DeviceAllocations({
      policy: settings.topologyPolicy ?? 'none',
      scope: settings.topologyScope ?? 'container',
      numaNodes: settings.numaNodes ?? 2,
      activePods: () => settings.activePods?.(),
      state: (resource) => this.#states.get(resource),
      plugin: (resource) => this.#connections.get(resource),
    });
  }

  get socket(): string {
    return this.#server.socket;
  }

  /** Deletes every socket in the directory, other files stay; reads its checkpoint; then listens. */
  async start(): Promise<void> {
    await this.stop();
    const { checkpoint } = this.#settings;
    if (checkpoint !== undefined) {
      const { resources, grants } = readCheckpoint(checkpoint);
      this.#states.restore(resources);
      this.#allocations.restore(grants);
    }
    await this.#server.start();
  }

  /** Ends it as a signal does: connections are cut, the socket file stays, what was known is in the checkpoint alone. */
  async stop(): Promise<void> {
    this.#connections.closeAll();
    // The checkpoint names the resources; lists come back with their plugins.
    this.#states.restore(this.#states.names());
    await this.#server.stop();
  }

  async restart(): Promise<void> {
    await this.stop();
    await this.start();
  }

  async impersonate(kind: Impostor): Promise<void> {
    await this.stop();
    await this.#server.impersonate(kind);
  }

  /** Ends it; a regular file lies where its socket was. */
  async replaceSocketByFile(): Promise<void> {
    await this.stop();
    this.#server.replaceSocketByFile();
  }

  async deleteDirectory(): Promise<void> {
    await this.stop();
    this.#server.deleteDirectory();
  }

  /** For one resource, or for all that have no fault of their own. */
  setFault(fault: RegistrationFault | undefined, resource = ''): void {
    this.#registrations.setFault(fault, resource);
  }

  /** Calls of `Register` that arrived so far, refused ones too. */
  get registrations(): number {
    return this.#registrations.count;
  }

  isConnected(resource: string): boolean {
    return this.#connections.get(resource) !== undefined;
  }

  /** The kubelet's copy of the list; of a plugin that went away, all unhealthy. */
  devices(resource: string): readonly Device[] {
    return this.#states.devices(resource);
  }

  /** As the checkpoint names them. */
  resources(): readonly string[] {
    return this.#states.names();
  }

  /** `allocatedResourcesStatus` of a pod by container, resource and device. */
  status(podUid: string): DeviceStatus {
    return this.#states.status(this.#allocations.of(podUid));
  }

  /** For the node's status. Resources whose plugin was away for too long are forgotten here, and undefined. */
  capacity(resource: string): NodeCapacity | undefined {
    if (this.#states.forget().length > 0) this.#settings.onChange?.();
    return this.#states.capacity(resource);
  }

  /** For PodResources: what the node has in all. */
  stock(): SimulatedStock {
    return this.#states.stock();
  }

  /** One pod after the other: a plugin that hangs holds up everybody. */
  admit(pod: PodRequest): Promise<ContainerGrant[]> {
    const grants = this.#admissions.then(() => this.#allocations.admit(pod));
    this.#admissions = grants.catch(() => {});
    return grants.then((given) => {
      if (given.length > 0) this.#settings.onChange?.();
      return given;
    });
  }

  /** As {@link admit} for one container that wants one resource, which must be registered. */
  async allocate({
    resource,
    count,
    podUid,
    container,
  }: Pick<ContainerGrant, 'podUid' | 'container' | 'resource'> & { readonly count: number }): Promise<ContainerGrant> {
    const [grant] = await this.admit({ podUid, containers: [{ container, wants: [{ resource, count }] }] });
    if (grant === undefined) throw refusal(`cannot allocate unregistered device ${resource}`);
    return grant;
  }

  /** Before a container's start. */
  async preStart(grant: Pick<ContainerGrant, 'deviceIds'>, resource: string): Promise<void> {
    if (this.#states.get(resource) === undefined) throw new Error(`endpoint not found in cache for a registered resource: ${resource}`);
    await this.#connections.get(resource)?.preStart(grant.deviceIds);
  }

  /** The checkpoint goes on naming the pod until something else has it written. */
  release(podUid: string): void {
    this.#allocations.release(podUid);
  }

  /** Dials a plugin back and follows its list; of `Register` and of the plugin watcher alike. */
  connect(resource: string, socket: string): Promise<void> {
    return this.#connections.connect(resource, socket);
  }

  disconnect(resource: string): void {
    this.#connections.disconnect(resource);
  }
}
