import { type Allocation, allocationKey } from '../model/allocation.ts';
import type { PodResources } from '../model/pod-resources.ts';
import type { AllocationState, UnresolvedReason } from '../model/snapshot.ts';
import type { Resolver } from './resolve.ts';

/** Every allocation with its devices, and every device with its allocations. */
export interface Owners {
  readonly allocations: readonly AllocationState[];
  /** Maps a device key to the allocations of the device. */
  readonly holders: ReadonlyMap<string, readonly Allocation[]>;
  /** The latest time of this name among the results of the resolver. */
  readonly unconfirmedMs?: number;
}

/**
 * Joins the kubelet's allocations with the devices that probes found. An allocation that no family knows is kept, with the reason. An
 * allocation that two families claim is assigned to neither.
 */
export function findOwners(podResources: PodResources, resolver: Resolver, isMissing: (deviceKey: string) => boolean): Owners {
  const holders = new Map<string, Allocation[]>();
  let latestMs: number | undefined;
  const allocations = podResources.allocations.map((allocation): AllocationState => {
    const { devices, ambiguous, by, contradiction, isDeviceless, unconfirmedMs } = resolver.resolve(allocation);
    if (unconfirmedMs !== undefined) latestMs = Math.max(latestMs ?? unconfirmedMs, unconfirmedMs);
    const held = podResources.held.size > 0 && podResources.held.has(allocationKey(allocation));
    if (ambiguous) return { allocation, devices: [], unresolved: 'ambiguous', held };
    for (const key of devices) {
      const list = holders.get(key);
      if (list === undefined) holders.set(key, [allocation]);
      else list.push(allocation);
    }
    const unresolved = isDeviceless === true ? undefined : whyUnresolved(devices, isMissing);
    return {
      allocation,
      devices,
      ...(by === undefined ? {} : { by }),
      ...(contradiction === undefined ? {} : { contradiction }),
      ...(unresolved === undefined ? {} : { unresolved }),
      held,
    };
  });
  return { allocations, holders, ...(latestMs === undefined ? {} : { unconfirmedMs: latestMs }) };
}

function whyUnresolved(devices: readonly string[], isMissing: (deviceKey: string) => boolean): UnresolvedReason | undefined {
  if (devices.length === 0) return 'no-device';
  return devices.every(isMissing) ? 'missing-device' : undefined;
}
