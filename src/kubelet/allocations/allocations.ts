import { isDeepStrictEqual } from 'node:util';
import type {
  AllocatableResourcesResponse,
  ClaimResource,
  ContainerMemory,
  ContainerResources,
  ListPodResourcesResponse,
  TopologyInfo,
} from '../../generated/podresources/v1/api.ts';
import { type Allocation, allocationKey } from '../../model/allocation.ts';
import {
  type Allocatable,
  type ExclusiveResources,
  type MemoryBlock,
  type PodExclusiveResources,
  podName,
} from '../../model/pod-resources.ts';
import { sameListWhenEqual } from '../../model/step-cache.ts';

/** Content of one `List` answer, sorted independently of the kubelet's order. */
export interface Attribution {
  readonly allocations: readonly Allocation[];
  readonly exclusive: readonly ExclusiveResources[];
  readonly podExclusive: readonly PodExclusiveResources[];
}

type Container = Pick<Allocation, 'namespace' | 'pod' | 'container'>;
type Exclusive = Pick<PodExclusiveResources, 'cpus' | 'memory'>;

/**
 * Reads a `List` answer. The kubelet sends one entry per device and NUMA node in random order, so this merges entries by container,
 * resource and id. It keeps pod-level CPUs and memory apart, because they overlap with those of the containers.
 */
export function attributionFrom({ podResources }: ListPodResourcesResponse): Attribution {
  const allocations = new Map<string, Allocation>();
  const exclusive = new Map<string, ExclusiveResources>();
  const podExclusive = new Map<string, PodExclusiveResources>();
  for (const { namespace, name: pod, containers, ...ofPod } of podResources) {
    addExclusive(podExclusive, podName({ namespace, pod }), { namespace, pod }, ofPod);
    for (const resources of containers) {
      const container = { namespace, pod, container: resources.name };
      addDevices(allocations, container, resources);
      addClaims(allocations, container, resources);
      addExclusive(exclusive, containerKey(container), container, resources);
    }
  }
  return { allocations: inOrder(allocations), exclusive: inOrder(exclusive), podExclusive: inOrder(podExclusive) };
}

function addDevices(into: Map<string, Allocation>, container: Container, { devices }: ContainerResources): void {
  for (const { resourceName, deviceIds, topology } of devices) {
    if (resourceName === '') continue;
    const numaNodes = numaNodesOf(topology);
    for (const deviceId of deviceIds) {
      if (deviceId !== '') add(into, { ...container, resource: resourceName, deviceId, numaNodes });
    }
  }
}

/** Kubelets before 1.31 report only CDI names, which do not name a device by themselves. */
function addClaims(into: Map<string, Allocation>, container: Container, { dynamicResources }: ContainerResources): void {
  const claims = [...dynamicResources].sort((a, b) => compareText(claimKey(a), claimKey(b)));
  for (const { claimName: name, claimNamespace: namespace, claimResources } of claims) {
    const known = new Map<string, readonly string[]>();
    for (const resource of claimResources) {
      const names = resource.cdiDevices.map((device) => device.name);
      const cdiDevices = withoutFirst(names, known.get(resource.driverName) ?? []);
      known.set(resource.driverName, names);
      const allocation = claimed(container, { name, namespace }, resource, cdiDevices);
      if (allocation !== undefined) add(into, allocation);
    }
  }
}

/**
 * Names that belong to this entry. The kubelet repeats in each entry of a driver the CDI names of the entries before it, so these are removed. When the
 * list does not start with the names before it, the kubelet did not repeat them, and all names belong to the entry.
 */
function withoutFirst(names: readonly string[], before: readonly string[]): readonly string[] {
  return before.every((name, index) => names[index] === name) ? names.slice(before.length) : names;
}

function claimed(
  container: Container,
  claim: { name: string; namespace: string },
  resource: ClaimResource,
  cdiDevices: readonly string[],
): Allocation | undefined {
  const { driverName: driver, poolName: pool, deviceName: device, shareId } = resource;
  if (driver === '' || device === '') return undefined;
  const share = shareId === undefined || shareId === '' ? {} : { shareId };
  const cdi = cdiDevices.length === 0 ? {} : { cdiDevices };
  return {
    ...container,
    resource: driver,
    deviceId: `${pool}/${device}`,
    numaNodes: [],
    claim: { ...claim, driver, pool, device, ...share, ...cdi },
  };
}

function add(into: Map<string, Allocation>, allocation: Allocation): void {
  const key = allocationKey(allocation);
  const known = into.get(key);
  if (known === undefined) {
    into.set(key, allocation);
  } else if (allocation.numaNodes.some((node) => !known.numaNodes.includes(node))) {
    const numaNodes = [...new Set([...known.numaNodes, ...allocation.numaNodes])].sort((a, b) => a - b);
    into.set(key, { ...known, numaNodes });
  }
}

/** The answer does not distinguish an ended pod from its successor of the same name, so what both hold counts once. */
function addExclusive<Owner>(
  into: Map<string, Owner & Exclusive>,
  key: string,
  owner: Owner,
  resources: Pick<ContainerResources, 'cpuIds' | 'memory'>,
): void {
  const known = into.get(key);
  const cpus = sortedNumbers(resources.cpuIds);
  const memory = memoryBlocks(resources.memory);
  if (cpus.length === 0 && memory.length === 0) return;
  const blocks = new Map([...(known?.memory ?? []), ...memory].map((block) => [blockKey(block), block]));
  const allCpus = [...new Set([...(known?.cpus ?? []), ...cpus])].sort((a, b) => a - b);
  into.set(key, { ...owner, cpus: allCpus, memory: inOrder(blocks) });
}

export function containerKey({ namespace, pod, container }: Container): string {
  return `${namespace}\u0000${pod}\u0000${container}`;
}

/** Sorts by the code units of the keys, independent of the locale. */
export function inOrder<T>(entries: ReadonlyMap<string, T>): T[] {
  return [...entries].sort(([a], [b]) => compareText(a, b)).map(([, entry]) => entry);
}

function claimKey(claim: { readonly claimNamespace: string; readonly claimName: string }): string {
  return `${claim.claimNamespace}\u0000${claim.claimName}`;
}

/** Returns the reported NUMA nodes, sorted. A node without a number on the wire is node 0. Kubelets 1.21 send -1 for no node. */
export function numaNodesOf(topology: TopologyInfo | undefined): number[] {
  return sortedNumbers((topology?.nodes ?? []).map((node) => node.ID));
}

/** Returns distinct numbers in ascending order, without negative ones, which mean "none". */
export function sortedNumbers(values: readonly bigint[]): number[] {
  return [...new Set(values.map(Number))].filter((value) => value >= 0).sort((a, b) => a - b);
}

/** Returns blocks in stable order. A block that spans NUMA nodes stays one block, because its size is not known per node. */
export function memoryBlocks(memory: readonly ContainerMemory[]): MemoryBlock[] {
  return memory
    .filter((block) => block.memoryType !== '' && block.size > 0n)
    .map((block) => ({ type: block.memoryType, bytes: block.size, numaNodes: numaNodesOf(block.topology) }))
    .sort((a, b) => compareText(blockKey(a), blockKey(b)));
}

export function blockKey(block: MemoryBlock): string {
  return `${block.type}\u0000${block.numaNodes.join(',')}\u0000${block.bytes}`;
}

/** Compares by code unit, independent of the locale. */
export function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/** Reads a `GetAllocatableResources` answer. A device with several NUMA nodes occurs several times in it and counts once. */
export function allocatableFrom(response: AllocatableResourcesResponse): Allocatable {
  const ids = new Map<string, Set<string>>();
  for (const { resourceName, deviceIds } of response.devices) {
    if (resourceName === '') continue;
    const known = ids.get(resourceName) ?? new Set();
    ids.set(resourceName, known);
    for (const id of deviceIds) if (id !== '') known.add(id);
  }
  const devices = [...ids]
    .map(([resource, known]) => ({ resource, deviceIds: [...known].sort(compareText) }))
    .sort((a, b) => compareText(a.resource, b.resource));
  return { devices, cpus: sortedNumbers(response.cpuIds), memory: memoryBlocks(response.memory) };
}

/** The allocations of an answer. Those that the answer before had are the same objects, and all together are the same list. */
export function carriedAllocations(before: readonly Allocation[], now: readonly Allocation[]): readonly Allocation[] {
  if (before === now) return now;
  const known = new Map(before.map((one) => [allocationKey(one), one]));
  return sameListWhenEqual(
    before,
    now.map((one) => {
      const same = known.get(allocationKey(one));
      return same !== undefined && isDeepStrictEqual(same, one) ? same : one;
    }),
  );
}

/** An attribution that also contains allocations from earlier answers. */
export interface CarriedAttribution extends Attribution {
  /** Keys of the allocations that were not in the last answer. */
  readonly held: ReadonlySet<string>;
}

export const NOTHING: CarriedAttribution = { allocations: [], exclusive: [], podExclusive: [], held: new Set() };

/**
 * Merges the previous attribution into an answer that was given soon after a kubelet restart. Until its pod sources are ready, a
 * kubelet answers with few pods or none. The answer wins on a conflict: a container listed with devices of a resource holds only
 * those, and a device id or CPU listed for another pod now belongs to that pod.
 */
export function keepThroughRestart(before: Attribution, answer: Attribution): CarriedAttribution {
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

/** Without the held pods of which the kubelet has forgotten a device: they have ended. Claims and CPUs of such a pod end with it. */
export function withoutForgotten(attribution: CarriedAttribution, isKnown: (allocation: Allocation) => boolean): CarriedAttribution {
  const { allocations, held } = attribution;
  const isHeld = (one: Allocation): boolean => held.has(allocationKey(one));
  const ended = new Set(allocations.filter((one) => isHeld(one) && one.claim === undefined && !isKnown(one)).map(podName));
  if (ended.size === 0) return attribution;
  const kept = allocations.filter((one) => !isHeld(one) || !ended.has(podName(one)));
  // A successor of the same name is listed.
  const here = new Set(kept.map(podName));
  const isHere = (one: PodExclusiveResources): boolean => !ended.has(podName(one)) || here.has(podName(one));
  return {
    allocations: kept,
    exclusive: attribution.exclusive.filter(isHere),
    podExclusive: attribution.podExclusive.filter(isHere),
    held: new Set(kept.map(allocationKey).filter((key) => held.has(key))),
  };
}

function slotKey(allocation: Allocation): string {
  return `${containerKey(allocation)}\u0000${allocation.resource}`;
}

function deviceKey(allocation: Allocation): string {
  return `${allocation.resource}\u0000${allocation.deviceId}`;
}
