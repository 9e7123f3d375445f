import type { Device } from '../../generated/deviceplugin/v1beta1/api.ts';
import type { SimulatedDevice, SimulatedStock } from './pods.ts';

/** What the kubelet keeps of one resource. */
export interface ResourceState {
  readonly resource: string;
  /** The last list, as it was sent. */
  readonly devices: ReadonlyMap<string, Device>;
  /** By id. An id that stood in the list twice, once well and once not, is in both. */
  readonly healthy: ReadonlySet<string>;
  readonly sick: ReadonlySet<string>;
  /** False once its plugin is gone. */
  readonly isConnected: boolean;
}

/** Capacity counts the healthy and the sick ones, allocatable the healthy ones. */
export interface NodeCapacity {
  readonly capacity: number;
  readonly allocatable: number;
}

/** What a device manager knows of the resources of its plugins. */
export class ResourceStates {
  readonly #states = new Map<string, ResourceState>();

  get(resource: string): ResourceState | undefined {
    return this.#states.get(resource);
  }

  names(): readonly string[] {
    return [...this.#states.keys()];
  }

  /** A plugin sent this list. */
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

  /** Its plugin is gone: all devices count as sick. */
  stopped(resource: string): void {
    const state = this.#states.get(resource);
    if (state === undefined) return;
    const sick = new Set([...state.sick, ...state.healthy]);
    this.#states.set(resource, { ...state, healthy: new Set(), sick, isConnected: false });
  }

  /** Begins anew with these resources, of which no plugin is there yet. */
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

  /** The last list; of a plugin that went away, all unhealthy. */
  devices(resource: string): readonly Device[] {
    const state = this.#states.get(resource);
    const devices = [...(state?.devices.values() ?? [])];
    return state?.isConnected === false ? devices.map((device) => ({ ...device, health: 'Unhealthy' })) : devices;
  }

  /** For PodResources: what the node has in all. */
  stock(): SimulatedStock {
    const devices = [...this.#states.values()].flatMap(({ resource, devices, healthy }) =>
      [...devices.values()].map((device) => ({ ...placed(resource, device.ID, device), healthy: healthy.has(device.ID) })),
    );
    return { devices, resources: this.names(), cpus: [], memory: [] };
  }
}

/** A device of a resource with the nodes that its plugin told, if it told any. */
export function placed(resource: string, id: string, device: Device | undefined): SimulatedDevice {
  const numaNodes = device === undefined ? undefined : numaNodesOf(device);
  return { resource, id, ...(numaNodes === undefined ? {} : { numaNodes }) };
}

export function numaNodesOf({ topology }: Device): readonly number[] | undefined {
  return topology?.nodes.map(({ ID }) => Number(ID));
}

/** The kubelet compares with this one word. */
export const isHealthy = (device: Device): boolean => device.health === 'Healthy';
