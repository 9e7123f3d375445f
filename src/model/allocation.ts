import type { Device } from './device.ts';

/** One device id that one container holds, from the kubelet's PodResources API. */
export interface Allocation {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  /** `vendor.com/kind`; for a DRA claim the driver's name. */
  readonly resource: string;
  /** Id that the plugin chose; for a DRA claim `<pool>/<device>`. Unique only together with the resource. */
  readonly deviceId: string;
  /** NUMA nodes of the allocation, merged and sorted; empty when the kubelet gives none. */
  readonly numaNodes: readonly number[];
  readonly claim?: Claim;
}

/** The part of a ResourceClaim that one allocation represents. */
export interface Claim {
  readonly name: string;
  readonly namespace: string;
  readonly driver: string;
  readonly pool: string;
  readonly device: string;
  readonly shareId?: string;
  /** CDI names of this device alone; absent when the driver gave none. */
  readonly cdiDevices?: readonly string[];
}

export function allocationKey(allocation: Allocation): string {
  const { namespace, pod, container, resource, deviceId, claim } = allocation;
  return [namespace, pod, container, resource, deviceId, claim?.shareId ?? ''].join('\u0000');
}

/**
 * Finds the ids of the devices for a (resource, device id). Empty: the id belongs to another family. Several: a pool, and the holder can
 * use each device. A family defines this only if plugin ids differ from a device's id and aliases (replica suffixes, index forms).
 */
export type Resolve = (allocation: Pick<Allocation, 'resource' | 'deviceId' | 'claim'>, devices: readonly Device[]) => readonly string[];

/** A resource whose ids do not identify hardware ("0", "1", …), and the devices that its holders can use. */
export interface PoolRule {
  /** `vendor.com/kind`, exact. */
  readonly resource: string;
  /** Device ids or aliases; `*` matches any number of characters. */
  readonly devices: readonly string[];
}
