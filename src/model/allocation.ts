import type { Device } from './device.ts';

/** One device id in the hands of one container, as the kubelet's PodResources API tells it. */
export interface Allocation {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  /** `vendor.com/kind`; for a DRA claim the driver's name. */
  readonly resource: string;
  /** As the plugin invented it; for a DRA claim `<pool>/<device>`. Unique only together with the resource. */
  readonly deviceId: string;
  /** NUMA nodes told with it, merged and sorted; empty when none was told. */
  readonly numaNodes: readonly number[];
  readonly claim?: Claim;
}

/** The part of a ResourceClaim that one allocation stands for. */
export interface Claim {
  readonly name: string;
  readonly namespace: string;
  readonly driver: string;
  readonly pool: string;
  readonly device: string;
  readonly shareId?: string;
}

export function allocationKey(allocation: Allocation): string {
  const { namespace, pod, container, resource, deviceId, claim } = allocation;
  return [namespace, pod, container, resource, deviceId, claim?.shareId ?? ''].join('\u0000');
}

/**
 * Finds the devices that a (resource, device id) names. None: not this family's. Several: a pool, of which the holder
 * can use each. A family gives one only where ids are more than a device's id or alias (replica suffixes, index forms).
 */
export type Resolve = (allocation: Pick<Allocation, 'resource' | 'deviceId' | 'claim'>, devices: readonly Device[]) => readonly string[];
