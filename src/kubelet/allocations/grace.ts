import { type Allocation, allocationKey } from '../../model/allocation.ts';
import type { PodExclusiveResources } from '../../model/pod-resources.ts';
import { podName } from '../../model/pod-resources.ts';
import { type Attribution, containerKey, inOrder } from './allocations.ts';

/** An attribution that also contains allocations from earlier answers. */
export interface HeldAttribution extends Attribution {
  /** Keys of the allocations that were not in the last answer. */
  readonly held: ReadonlySet<string>;
}

export const NOTHING: HeldAttribution = { allocations: [], exclusive: [], podExclusive: [], held: new Set() };

/**
 * Merges the previous attribution into an answer that was given soon after a kubelet restart. Until its pod sources are ready, a
 * kubelet answers with few pods or none. The answer wins on a conflict: a container listed with devices of a resource holds only
 * those, and a device id or CPU listed for another pod now belongs to that pod.
 */
export function keepThroughRestart(before: Attribution, answer: Attribution): HeldAttribution {
  const listed = new Set(answer.allocations.map(slotKey));
  const owners = new Set(answer.allocations.filter((allocation) => allocation.claim === undefined).map(deviceKey));
  const all = new Map(answer.allocations.map((allocation) => [allocationKey(allocation), allocation]));
  const held = new Set<string>();
  for (const allocation of before.allocations) {
    const key = allocationKey(allocation);
    const hasNewOwner = allocation.claim === undefined && owners.has(deviceKey(allocation));
    if (all.has(key) || listed.has(slotKey(allocation)) || hasNewOwner) continue;
    all.set(key, allocation);
    held.add(key);
  }
  // The CPUs of a pod contain those of its containers, so a CPU that either level of the answer names is taken on both.
  const taken = new Set([...answer.exclusive, ...answer.podExclusive].flatMap(({ cpus }) => cpus));
  const isFree = ({ cpus }: PodExclusiveResources): boolean => !cpus.some((cpu) => taken.has(cpu));
  const exclusive = new Map([...before.exclusive.filter(isFree), ...answer.exclusive].map((entry) => [containerKey(entry), entry]));
  const podExclusive = new Map([...before.podExclusive.filter(isFree), ...answer.podExclusive].map((entry) => [podName(entry), entry]));
  return { allocations: inOrder(all), exclusive: inOrder(exclusive), podExclusive: inOrder(podExclusive), held };
}

function slotKey(allocation: Allocation): string {
  return `${containerKey(allocation)}\u0000${allocation.resource}`;
}

function deviceKey(allocation: Allocation): string {
  return `${allocation.resource}\u0000${allocation.deviceId}`;
}
