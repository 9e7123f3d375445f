import type { ClaimResource, ContainerResources, ListPodResourcesResponse, PodResources } from '../generated/podresources/v1/api.ts';
import { type Allocation, allocationKey } from '../model/allocation.ts';
import type { ExclusiveResources } from '../model/pod-resources.ts';
import { blockKey, compareText, memoryBlocks, numaNodesOf, sortedNumbers } from './topology.ts';

/** What one `List` says, in an order that does not depend on the kubelet's. */
export interface Attribution {
  readonly allocations: readonly Allocation[];
  readonly exclusive: readonly ExclusiveResources[];
}

/** What is said of one pod: its part of an attribution, in the same order. */
export interface PodPart extends Attribution {
  /** Namespace and name. */
  readonly pod: string;
}

type Container = Pick<Allocation, 'namespace' | 'pod' | 'container'>;

/**
 * Reads a `List` answer. The kubelet sends one entry per device and NUMA node in random order, so entries are merged by
 * container, resource and id. Pod-level CPUs and memory overlap with those of the containers and are not read.
 */
export function attributionFrom(response: ListPodResourcesResponse): Attribution {
  return attributionOf(response.podResources.map(podPart));
}

export function podPart({ namespace, name, containers }: PodResources): PodPart {
  const allocations = new Map<string, Allocation>();
  const exclusive = new Map<string, ExclusiveResources>();
  for (const resources of containers) {
    const container = { namespace, pod: name, container: resources.name };
    addDevices(allocations, container, resources);
    addClaims(allocations, container, resources);
    addExclusive(exclusive, container, resources);
  }
  return { pod: `${namespace}\u0000${name}`, allocations: inOrder(allocations), exclusive: inOrder(exclusive) };
}

/** Puts the pods into order and their parts together. A pod that comes twice is an ended one and its successor. */
export function attributionOf(parts: readonly PodPart[]): Attribution {
  const byPod = new Map<string, PodPart>();
  for (const part of parts) {
    const known = byPod.get(part.pod);
    byPod.set(part.pod, known === undefined ? part : together(known, part));
  }
  const allocations: Allocation[] = [];
  const exclusive: ExclusiveResources[] = [];
  // Keys of allocations and containers begin with that of their pod, so all are in order when the pods are.
  for (const pod of [...byPod.keys()].sort()) {
    const part = byPod.get(pod) as PodPart;
    for (const allocation of part.allocations) allocations.push(allocation);
    for (const entry of part.exclusive) exclusive.push(entry);
  }
  return { allocations, exclusive };
}

function together(a: PodPart, b: PodPart): PodPart {
  const allocations = new Map<string, Allocation>();
  for (const allocation of [...a.allocations, ...b.allocations]) add(allocations, allocation);
  const exclusive = new Map(a.exclusive.map((entry) => [containerKey(entry), entry]));
  for (const entry of b.exclusive) addEntry(exclusive, entry);
  return { pod: a.pod, allocations: inOrder(allocations), exclusive: inOrder(exclusive) };
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

/** CDI names are cumulative within a driver, so they tell nothing here; before 1.31 there was nothing but them. */
function addClaims(into: Map<string, Allocation>, container: Container, { dynamicResources }: ContainerResources): void {
  const claims = [...dynamicResources].sort((a, b) => compareText(claimKey(a), claimKey(b)));
  for (const { claimName: name, claimNamespace: namespace, claimResources } of claims) {
    for (const resource of claimResources) {
      const allocation = claimed(container, { name, namespace }, resource);
      if (allocation !== undefined) add(into, allocation);
    }
  }
}

function claimed(container: Container, claim: { name: string; namespace: string }, resource: ClaimResource): Allocation | undefined {
  const { driverName: driver, poolName: pool, deviceName: device, shareId } = resource;
  if (driver === '' || device === '') return undefined;
  const share = shareId === undefined || shareId === '' ? {} : { shareId };
  return {
    ...container,
    resource: driver,
    deviceId: `${pool}/${device}`,
    numaNodes: [],
    claim: { ...claim, driver, pool, device, ...share },
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

function addExclusive(into: Map<string, ExclusiveResources>, container: Container, resources: ContainerResources): void {
  const cpus = sortedNumbers(resources.cpuIds);
  const memory = memoryBlocks(resources.memory);
  if (cpus.length === 0 && memory.length === 0) return;
  addEntry(into, { ...container, cpus, memory });
}

function addEntry(into: Map<string, ExclusiveResources>, entry: ExclusiveResources): void {
  const key = containerKey(entry);
  const known = into.get(key);
  into.set(key, known === undefined ? entry : merged(known, entry.cpus, entry.memory));
}

/** An ended pod and its successor of the same name are told apart by nothing: what both have counts once. */
function merged(known: ExclusiveResources, cpus: readonly number[], memory: ExclusiveResources['memory']): ExclusiveResources {
  const blocks = new Map([...known.memory, ...memory].map((block) => [blockKey(block), block]));
  return { ...known, cpus: [...new Set([...known.cpus, ...cpus])].sort((a, b) => a - b), memory: inOrder(blocks) };
}

export function containerKey({ namespace, pod, container }: Container): string {
  return `${namespace}\u0000${pod}\u0000${container}`;
}

export function inOrder<T>(entries: ReadonlyMap<string, T>): T[] {
  if (entries.size < 2) return [...entries.values()];
  // By code unit, as sorting does without being told how.
  return [...entries.keys()].sort().map((key) => entries.get(key) as T);
}

function claimKey(claim: { readonly claimNamespace: string; readonly claimName: string }): string {
  return `${claim.claimNamespace}\u0000${claim.claimName}`;
}
