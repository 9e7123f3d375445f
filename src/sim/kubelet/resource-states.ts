import type { Device } from '../../generated/deviceplugin/v1beta1/api.ts';
import { defined } from '../../model/defined.ts';
import type { SimulatedDevice, SimulatedStock } from './pods.ts';

/** The kubelet's state of one resource. */
export interface ResourceState {
  readonly resource: string;
  /** The last list as sent by the plugin. */
  readonly devices: ReadonlyMap<string, Device>;
  /** Healthy ids. An id that was in the list both as healthy and as unhealthy is in both sets. */
  readonly healthy: ReadonlySet<string>;
  readonly sick: ReadonlySet<string>;
  /** False after its plugin has disconnected. */
  readonly isConnected: boolean;
}

/** `capacity` counts all devices, `allocatable` only the healthy ones. */
export interface NodeCapacity {
  readonly capacity: number;
  readonly allocatable: number;
}

/** The device manager's state of all plugin resources. */
export class ResourceStates {
  readonly #states = new Map<string, ResourceState>();

  get(resource: string): ResourceState | undefined {
    return this.#states.get(resource);
  }

  names(): readonly string[] {
    return [...this.#states.keys()];
  }

  /** Stores the list that a plugin sent. */
  listed(resource: string, list: readonly Device[]): void {
    const idsOf = (devices: readonly Device[]): Set<string> => new Set(devices.map(({ ID }) => ID));
    this.#states.set(resource, {
      resource,
      devices: new Map(list.map((device) => [device.ID, device])),
      healthy: idsOf(list.filter(isHealthy)),
      sick: idsOf(list.filter((device) => !isHealthy(device))),
      isConnected: true,
    });
  }

  /** Records that the plugin has disconnected: all devices count as sick. */
  stopped(resource: string): void {
    const state = this.#states.get(resource);
    if (state === undefined) return;
    const sick = new Set([...state.sick, ...state.healthy]);
    this.#states.set(resource, { ...state, healthy: new Set(), sick, isConnected: false });
  }

  /** Resets the state to these resources, without plugins. */
  restore(resources: Iterable<string>): void {
    const names = [...resources];
    this.#states.clear();
    for (const resource of names) {
      this.#states.set(resource, { resource, devices: new Map(), healthy: new Set(), sick: new Set(), isConnected: false });
    }
  }

  forget(resource: string): void {
    this.#states.delete(resource);
  }

  capacity(resource: string): NodeCapacity | undefined {
    const state = this.#states.get(resource);
    return state === undefined ? undefined : { capacity: state.healthy.size + state.sick.size, allocatable: state.healthy.size };
  }

  /** Returns the last list. After the plugin has disconnected, all devices are unhealthy. */
  devices(resource: string): readonly Device[] {
    const state = this.#states.get(resource);
    const devices = [...(state?.devices.values() ?? [])];
    return state?.isConnected === false ? devices.map((device) => ({ ...device, health: 'Unhealthy' })) : devices;
  }

  /** Returns all devices of the node, for PodResources. */
  stock(): SimulatedStock {
    const devices = [...this.#states.values()].flatMap(({ resource, devices, healthy }) =>
      [...devices.values()].map((device) => ({ ...placed(resource, device.ID, device), healthy: healthy.has(device.ID) })),
    );
    return { devices, resources: this.names(), cpus: [], memory: [] };
  }
}

/** Returns a device of a resource with the NUMA nodes that its plugin reported, if any. */
export function placed(resource: string, id: string, device: Device | undefined): SimulatedDevice {
  const numaNodes = device === undefined ? undefined : numaNodesOf(device);
  return { resource, id, ...defined({ numaNodes }) };
}

export function numaNodesOf({ topology }: Device): readonly number[] | undefined {
  return topology?.nodes.map(({ ID }) => Number(ID));
}

/** The kubelet treats every other text as unhealthy. */
export const isHealthy = (device: Device): boolean => device.health === 'Healthy';
