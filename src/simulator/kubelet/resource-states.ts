import type { Device } from '../../generated/deviceplugin/v1beta1/api.ts';
import type { Clock } from '../../host/clock.ts';
import type { ContainerGrant } from './allocations.ts';
import {
  isHealthy,
  isOver,
  type NodeCapacity,
  noDevices,
  nodeCapacity,
  numaNodesOf,
  type ResourceState,
  stateOf,
  stopped,
} from './capacity.ts';
import type { SimulatedStock } from './pods.ts';

/** By container, resource and device. */
export type DeviceStatus = Record<string, Record<string, Record<string, 'Healthy' | 'Unhealthy'>>>;

/** What a device manager knows of the resources of its plugins. */
export class ResourceStates {
  readonly #clock: Clock;
  #states = new Map<string, ResourceState>();
  /** The last lists, also of resources that are forgotten. */
  readonly #sent = new Map<string, ReadonlyMap<string, Device>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Begins anew with these resources, of which no plugin is there yet. */
  restore(resources: Iterable<string>): void {
    const stoppedAtMs = this.#clock.monotonic();
    this.#states = new Map([...resources].map((resource) => [resource, { ...noDevices(resource), stoppedAtMs }]));
    this.#sent.clear();
  }

  get(resource: string): ResourceState | undefined {
    return this.#states.get(resource);
  }

  names(): readonly string[] {
    return [...this.#states.keys()];
  }

  listed(resource: string, list: readonly Device[]): void {
    const state = stateOf(resource, list);
    this.#states.set(resource, state);
    this.#sent.set(resource, state.devices);
  }

  stopped(resource: string): void {
    const state = this.#states.get(resource);
    if (state !== undefined) this.#states.set(resource, stopped(state, this.#clock.monotonic()));
  }

  /** Drops the resources whose plugin was away for too long; gives their names. */
  forget(): readonly string[] {
    const over = [...this.#states.values()].filter((state) => isOver(state, this.#clock.monotonic()));
    for (const { resource } of over) this.#states.delete(resource);
    return over.map(({ resource }) => resource);
  }

  capacity(resource: string): NodeCapacity | undefined {
    const state = this.#states.get(resource);
    return state === undefined ? undefined : nodeCapacity(state);
  }

  /** The last list; of a plugin that went away, all unhealthy. */
  devices(resource: string): readonly Device[] {
    const state = this.#states.get(resource);
    const devices = [...(state?.devices.values() ?? [])];
    return state?.stoppedAtMs === undefined ? devices : devices.map((device) => ({ ...device, health: 'Unhealthy' }));
  }

  /** The health that was sent last, whether or not the plugin is still there; healthy for a device that it no longer tells of. */
  status(grants: readonly Pick<ContainerGrant, 'container' | 'resource' | 'deviceIds'>[]): DeviceStatus {
    const told: DeviceStatus = {};
    for (const { container, resource, deviceIds } of grants) {
      const sent = this.#sent.get(resource);
      const isSick = (id: string): boolean => sent?.has(id) === true && !isHealthy(sent.get(id) as Device);
      const health = Object.fromEntries(deviceIds.map((id) => [id, isSick(id) ? 'Unhealthy' : 'Healthy'] as const));
      told[container] = { ...told[container], [resource]: health };
    }
    return told;
  }

  /** For PodResources: what the node has in all. */
  stock(): SimulatedStock {
    const devices = this.names().flatMap((resource) =>
      this.devices(resource).map((device) => {
        const numaNodes = numaNodesOf(device);
        return {
          resource,
          id: device.ID,
          healthy: this.#states.get(resource)?.healthy.has(device.ID) === true,
          ...(numaNodes === undefined ? {} : { numaNodes }),
        };
      }),
    );
    return { devices, resources: this.names(), cpus: [], memory: [] };
  }
}
