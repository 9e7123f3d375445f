import type { Device } from '../../generated/deviceplugin/v1beta1/api.ts';

/** How long the devices of a plugin that went away still count as capacity. Kubernetes 1.36: endpointStopGracePeriod. */
const STOP_GRACE_MS = 5 * 60_000;

/** What the kubelet keeps of one resource. */
export interface ResourceState {
  readonly resource: string;
  /** The last list; of a plugin that went away, all unhealthy. */
  readonly devices: ReadonlyMap<string, Device>;
  /** Monotonic; present while no plugin is connected. */
  readonly stoppedAtMs?: number;
}

export interface NodeCapacity {
  readonly capacity: number;
  readonly allocatable: number;
}

/** Capacity counts every device, allocatable the healthy ones; both are 0 once a plugin was away for too long. */
export function nodeCapacity({ devices, stoppedAtMs }: ResourceState, nowMs: number): NodeCapacity {
  if (stoppedAtMs !== undefined && nowMs - stoppedAtMs >= STOP_GRACE_MS) return { capacity: 0, allocatable: 0 };
  const all = [...devices.values()];
  return { capacity: all.length, allocatable: all.filter(isHealthy).length };
}

/** The kubelet compares with this one word. */
export const isHealthy = (device: Device): boolean => device.health === 'Healthy';

export function disconnected(state: ResourceState, nowMs: number): ResourceState {
  const devices = new Map([...state.devices].map(([id, device]) => [id, { ...device, health: 'Unhealthy' }]));
  return { resource: state.resource, devices, stoppedAtMs: nowMs };
}

export function numaNodesOf({ topology }: Device): readonly number[] | undefined {
  return topology?.nodes.map(({ ID }) => Number(ID));
}
