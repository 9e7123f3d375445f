import { type Allocation, allocationKey } from '../../model/allocation.ts';
import { type Attribution, containerKey, inOrder } from './allocations.ts';

/** An attribution of which part is not from the last answer. */
export interface HeldAttribution extends Attribution {
  /** Keys of the allocations that the last answer did not have. */
  readonly held: ReadonlySet<string>;
}

export const NOTHING: HeldAttribution = { allocations: [], exclusive: [], held: new Set() };

/**
 * Adds to an answer given soon after a restart of the kubelet what was known before and is not contradicted: until its
 * sources have delivered, a kubelet answers with few pods or none. What the answer says wins: a container that is listed with
 * devices of a resource holds these only, and a device id or a CPU in another pod has changed hands.
 */
export function keepThroughRestart(before: Attribution, answer: Attribution): HeldAttribution {
  const listed = new Set(answer.allocations.map(slotKey));
  const owners = new Set(answer.allocations.filter((allocation) => allocation.claim === undefined).map(deviceKey));
  const all = new Map(answer.allocations.map((allocation) => [allocationKey(allocation), allocation]));
  const held = new Set<string>();
  for (const allocation of before.allocations) {
    const key = allocationKey(allocation);
    const changedHands = allocation.claim === undefined && owners.has(deviceKey(allocation));
    if (all.has(key) || listed.has(slotKey(allocation)) || changedHands) continue;
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
