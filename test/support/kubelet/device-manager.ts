import { rmSync, writeFileSync } from 'node:fs';
import type { Device, RegisterRequest } from '../../../src/generated/deviceplugin/v1beta1/api.ts';
import { type Clock, systemClock } from '../../../src/host/clock.ts';
import { type ContainerGrant, refusal } from '../../../src/sim/kubelet/allocations.ts';
import { type DeviceManagerSettings, SimulatedDeviceManager } from '../../../src/sim/kubelet/device-manager.ts';
import { PluginConnection, type StreamEvents } from '../../../src/sim/kubelet/plugin-connection.ts';
import { isHealthy, type NodeCapacity } from '../../../src/sim/kubelet/resource-states.ts';
import { makeRenamedSocket } from '../../../src/sim/kubelet/sockets.ts';
import { DeviceAllocations } from './allocations.ts';
import { readCheckpoint } from './checkpoint.ts';
import { createImpostor, type Impostor } from './impostors.ts';
import { keepSocketFile, listen } from './sockets.ts';
import type { TopologyPolicy, TopologyScope } from './topology-hints.ts';

/** How long the devices of a plugin that went away still count as capacity. Kubernetes 1.36: endpointStopGracePeriod. */
const STOP_GRACE_MS = 5 * 60_000;

export interface TestDeviceManagerSettings extends Pick<DeviceManagerSettings, 'directory' | 'onChange'> {
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
  /**
   * Up to 1.36, the default, the end of any stream of a resource takes its newest plugin away. From 1.37 on only the end of the last one does, the
   * list that arrived last stays, and a socket that is connected cannot register again: its end is then never seen.
   */
  readonly release?: '1.36' | '1.37';
}

/**
 * How a kubelet treats those who register: `slow` answers late, `hang` never, `refuse` with an error, `no-dial-back` says yes and asks for
 * nothing, `cut-stream` ends each stream after its first list, `double` dials back twice, `old-authority` sends the socket's path as
 * `:authority`, as kubelets up to 1.25 do.
 */
export type RegistrationFault =
  | { readonly kind: 'slow'; readonly delayMs: number }
  | { readonly kind: 'hang' }
  | { readonly kind: 'refuse'; readonly message: string }
  | { readonly kind: 'no-dial-back' }
  | { readonly kind: 'cut-stream' }
  | { readonly kind: 'double' }
  | { readonly kind: 'old-authority' };

/** By container, resource and device. */
export type DeviceStatus = Record<string, Record<string, Record<string, 'Healthy' | 'Unhealthy'>>>;

/** The simulated device manager as the kubelet's own: topology, init containers, restarts from the checkpoint; and what goes wrong. */
export class TestDeviceManager extends SimulatedDeviceManager {
  readonly #settings: TestDeviceManagerSettings;
  readonly #clock: Clock;
  readonly #own: DeviceAllocations;
  /** By resource; with an empty name for all that have none of their own. */
  readonly #faults = new Map<string, RegistrationFault>();
  /** The last lists, also of resources that are forgotten. */
  readonly #sent = new Map<string, ReadonlyMap<string, Device>>();
  readonly #stoppedAtMs = new Map<string, number>();
  /** By resource and socket, from 1.37 on. */
  readonly #connected = new Map<string, Map<string, PluginConnection>>();
  /** Sockets whose end is not seen any more. */
  readonly #unseen = new Set<string>();
  /** Calls of `Register` that arrived so far, refused ones too. */
  registrations = 0;

  constructor(settings: TestDeviceManagerSettings) {
    let own: DeviceAllocations | undefined;
    super({
      ...settings,
      allocations: (parts) => {
        own = new DeviceAllocations({
          ...parts,
          policy: settings.topologyPolicy ?? 'none',
          scope: settings.topologyScope ?? 'container',
          numaNodes: settings.numaNodes ?? 2,
          activePods: () => settings.activePods?.(),
        });
        return own;
      },
    });
    this.#own = own as unknown as DeviceAllocations;
    this.#settings = settings;
    this.#clock = settings.clock ?? systemClock;
  }

  /** Reads its checkpoint first. */
  override async start(): Promise<void> {
    await this.stop();
    if (this.#settings.checkpoint !== undefined) {
      const { resources, grants } = readCheckpoint(this.#settings.checkpoint);
      this.states.restore(resources);
      this.#own.restore(grants);
      this.#allStopped();
    }
    await super.start();
  }

  /** The socket file stays. */
  override async stop(): Promise<void> {
    await super.stop();
    this.#sent.clear();
    this.#connected.clear();
    this.#unseen.clear();
    this.#allStopped();
  }

  async restart(): Promise<void> {
    await this.stop();
    await this.start();
  }

  async impersonate(kind: Impostor): Promise<void> {
    await this.stop();
    const { server, end } = createImpostor(kind);
    await makeRenamedSocket(this.socket, (path) => listen(server, path));
    super.listens(end);
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

  /** As the checkpoint names them. */
  resources(): readonly string[] {
    return this.states.names();
  }

  /** `allocatedResourcesStatus`: the health that was sent last, even by a plugin that is gone; healthy for a device that is no longer told of. */
  status(podUid: string): DeviceStatus {
    const told: DeviceStatus = {};
    for (const { container, resource, deviceIds } of this.#own.of(podUid)) {
      const sent = this.#sent.get(resource);
      const isSick = (id: string): boolean => sent?.has(id) === true && !isHealthy(sent.get(id) as Device);
      const health = Object.fromEntries(deviceIds.map((id) => [id, isSick(id) ? 'Unhealthy' : 'Healthy'] as const));
      told[container] = { ...told[container], [resource]: health };
    }
    return told;
  }

  /** Resources whose plugin was away for too long are forgotten here, and undefined. */
  override capacity(resource: string): NodeCapacity | undefined {
    const over = [...this.#stoppedAtMs].filter(([, atMs]) => this.#clock.monotonic() - atMs > STOP_GRACE_MS);
    for (const [name] of over) {
      this.states.forget(name);
      this.#stoppedAtMs.delete(name);
    }
    if (over.length > 0) this.changed();
    return super.capacity(resource);
  }

  /** As `admit` for one container that wants one resource, which must be registered. */
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
    if (this.states.get(resource) === undefined) throw new Error(`endpoint not found in cache for a registered resource: ${resource}`);
    await this.plugin(resource)?.preStart(grant.deviceIds);
  }

  protected override async register(request: RegisterRequest): Promise<void> {
    this.registrations += 1;
    const fault = this.#errorToExit(request.resourceName);
    if (fault?.kind === 'hang') return new Promise(() => {});
    if (fault?.kind === 'slow') await new Promise<void>((resolve) => this.#clock.after(fault.delayMs, resolve));
    if (fault?.kind === 'refuse') throw new Error(fault.message);
    if (fault?.kind === 'no-dial-back') return;
    await super.register(request);
    if (fault?.kind === 'double') await super.register(request);
  }

  override async connect(resource: string, socket: string): Promise<void> {
    if (this.#settings.release !== '1.37') return super.connect(resource, socket);
    const connected = this.#connected.get(resource) ?? new Map<string, PluginConnection>();
    if (connected.has(socket)) {
      this.#unseen.add(socket);
      throw new Error(`device plugin already connected: ${socket}`);
    }
    await super.connect(resource, socket);
    this.#connected.set(resource, connected.set(socket, this.plugin(resource) as PluginConnection));
  }

  /** With a socket: as the plugin watcher does when it is removed. */
  override disconnect(resource: string, socket?: string): void {
    const connection = socket === undefined ? undefined : this.#connected.get(resource)?.get(socket);
    if (connection !== undefined) this.streamEnded(resource, connection);
    else if (socket === undefined || this.#settings.release !== '1.37') super.disconnect(resource);
  }

  protected override connectionTo(resource: string, socket: string): PluginConnection {
    const fault = this.#errorToExit(resource);
    if (fault?.kind === 'cut-stream') return new CutConnection(socket);
    return new PluginConnection(socket, fault?.kind === 'old-authority' ? socket : 'localhost');
  }

  protected override listed(resource: string, devices: readonly Device[]): void {
    this.#stoppedAtMs.delete(resource);
    this.#sent.set(resource, new Map(devices.map((device) => [device.ID, device])));
    super.listed(resource, devices);
  }

  protected override stopped(resource: string): void {
    if (this.states.get(resource) !== undefined) this.#stoppedAtMs.set(resource, this.#clock.monotonic());
    super.stopped(resource);
  }

  protected override streamEnded(resource: string, connection: PluginConnection): void {
    const connected = this.#connected.get(resource);
    if (connected === undefined) {
      super.streamEnded(resource, connection);
      return;
    }
    if (this.#unseen.has(connection.socket)) return;
    connected.delete(connection.socket);
    const [left] = connected.values();
    if (left === undefined) super.streamEnded(resource, connection);
    else if (this.plugin(resource) === connection) this.promote(resource, left);
  }

  protected override listens(end: () => Promise<void>): void {
    super.listens(async () => keepSocketFile(this.socket, () => void end()));
  }

  #errorToExit(resource: string): RegistrationFault | undefined {
    return this.#faults.get(resource) ?? this.#faults.get('');
  }

  #allStopped(): void {
    this.#stoppedAtMs.clear();
    for (const resource of this.states.names()) this.#stoppedAtMs.set(resource, this.#clock.monotonic());
  }
}

/** Ends its stream after the first list. */
class CutConnection extends PluginConnection {
  override follow({ list, ended }: StreamEvents): void {
    super.follow({
      list: (devices) => {
        list(devices);
        this.cancelStream();
      },
      ended,
    });
  }
}
