import type { ClaimResource, ContainerResources, ListPodResourcesResponse } from '../../generated/podresources/v1/api.ts';
import { type Allocation, allocationKey } from '../../model/allocation.ts';
import type { ExclusiveResources, PodExclusiveResources } from '../../model/pod-resources.ts';
import { podName } from '../../model/pod-resources.ts';
import { blockKey, compareText, memoryBlocks, numaNodesOf, sortedNumbers } from './topology.ts';

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
