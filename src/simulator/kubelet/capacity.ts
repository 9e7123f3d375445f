import type { Device } from '../../generated/deviceplugin/v1beta1/api.ts';

/** How long the devices of a plugin that went away still count as capacity. Kubernetes 1.36: endpointStopGracePeriod. */
const STOP_GRACE_MS = 5 * 60_000;

/** What the kubelet keeps of one resource. */
export interface ResourceState {
  readonly resource: string;
  /** The last list, as it was sent. */
  readonly devices: ReadonlyMap<string, Device>;
  /** Monotonic; present while no plugin is connected. */
  readonly stoppedAtMs?: number;
}

export interface NodeCapacity {
  readonly capacity: number;
  readonly allocatable: number;
}

/** Capacity counts every device, allocatable the healthy ones. */
export function nodeCapacity(state: ResourceState): NodeCapacity {
  return { capacity: state.devices.size, allocatable: usableDevices(state).length };
}

/** Its plugin has been away for so long that the resource is forgotten. */
export function isOver({ stoppedAtMs }: ResourceState, nowMs: number): boolean {
  return stoppedAtMs !== undefined && nowMs - stoppedAtMs > STOP_GRACE_MS;
}

/** Those that can be given to a container; none of a plugin that went away. */
export function usableDevices({ devices, stoppedAtMs }: ResourceState): Device[] {
  return stoppedAtMs === undefined ? [...devices.values()].filter(isHealthy) : [];
}

/** The kubelet compares with this one word. */
export const isHealthy = (device: Device): boolean => device.health === 'Healthy';

export function numaNodesOf({ topology }: Device): readonly number[] | undefined {
  return topology?.nodes.map(({ ID }) => Number(ID));
}
