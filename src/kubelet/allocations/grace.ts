import { type Allocation, allocationKey } from '../../model/allocation.ts';
import { type Attribution, containerKey, inOrder } from './allocations.ts';

/** An attribution that also contains allocations from earlier answers. */
export interface HeldAttribution extends Attribution {
  /** Keys of the allocations that were not in the last answer. */
  readonly held: ReadonlySet<string>;
}

export const NOTHING: HeldAttribution = { allocations: [], exclusive: [], held: new Set() };

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
  const taken = new Set(answer.exclusive.flatMap(({ cpus }) => cpus));
  const kept = before.exclusive.filter(({ cpus }) => !cpus.some((cpu) => taken.has(cpu)));
  const exclusive = new Map([...kept, ...answer.exclusive].map((entry) => [containerKey(entry), entry]));
  return { allocations: inOrder(all), exclusive: inOrder(exclusive), held };
}

function slotKey(allocation: Allocation): string {
  return `${containerKey(allocation)}\u0000${allocation.resource}`;
}

function deviceKey(allocation: Allocation): string {
  return `${allocation.resource}\u0000${allocation.deviceId}`;
}
