import type { Device } from '../../generated/deviceplugin/v1beta1/api.ts';
import type { SimulatedDevice } from './pods.ts';

/** How long the devices of a plugin that went away still count as capacity. Kubernetes 1.36: endpointStopGracePeriod. */
const STOP_GRACE_MS = 5 * 60_000;

/** What the kubelet keeps of one resource. */
export interface ResourceState {
  readonly resource: string;
  /** The last list, as it was sent. */
  readonly devices: ReadonlyMap<string, Device>;
  /** By id. An id that stood in the list twice, once well and once not, is in both. */
  readonly healthy: ReadonlySet<string>;
  readonly sick: ReadonlySet<string>;
  /** Monotonic; present while no plugin is connected. */
  readonly stoppedAtMs?: number;
}

export interface NodeCapacity {
  readonly capacity: number;
  readonly allocatable: number;
}

/** No plugin has told of it yet. */
export const noDevices = (resource: string): ResourceState => ({ resource, devices: new Map(), healthy: new Set(), sick: new Set() });

export function stateOf(resource: string, list: readonly Device[]): ResourceState {
  const idsOf = (devices: readonly Device[]): Set<string> => new Set(devices.map(({ ID }) => ID));
  return {
    resource,
    devices: new Map(list.map((device) => [device.ID, device])),
    healthy: idsOf(list.filter(isHealthy)),
    sick: idsOf(list.filter((device) => !isHealthy(device))),
  };
}

/** Its plugin is gone: all devices count as sick. */
export function stopped(state: ResourceState, atMs: number): ResourceState {
  return { ...state, healthy: new Set(), sick: new Set([...state.sick, ...state.healthy]), stoppedAtMs: atMs };
}

/** Capacity counts the healthy and the sick ones, allocatable the healthy ones. */
export function nodeCapacity({ healthy, sick }: ResourceState): NodeCapacity {
  return { capacity: healthy.size + sick.size, allocatable: healthy.size };
}

/** Its plugin has been away for so long that the resource is forgotten. */
export function isOver({ stoppedAtMs }: ResourceState, nowMs: number): boolean {
  return stoppedAtMs !== undefined && nowMs - stoppedAtMs > STOP_GRACE_MS;
}

/** The kubelet compares with this one word. */
export const isHealthy = (device: Device): boolean => device.health === 'Healthy';

export function numaNodesOf({ topology }: Device): readonly number[] | undefined {
  return topology?.nodes.map(({ ID }) => Number(ID));
}

/** Devices of one resource with the nodes that they are on. */
export function placed(state: ResourceState, ids: readonly string[]): SimulatedDevice[] {
  return ids.map((id) => {
    const device = state.devices.get(id);
    const numaNodes = device === undefined ? undefined : numaNodesOf(device);
    return { resource: state.resource, id, ...(numaNodes === undefined ? {} : { numaNodes }) };
  });
}
