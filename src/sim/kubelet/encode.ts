import type {
  AllocatableResourcesResponse,
  ContainerDevices,
  ContainerMemory,
  ContainerResources,
  DynamicResource,
  PodResources,
  TopologyInfo,
} from '../../generated/podresources/v1/api.ts';
import type { PodResources as PodResourcesV1alpha1 } from '../../generated/podresources/v1alpha1/api.ts';
import type { SimulatedClaim, SimulatedContainer, SimulatedDevice, SimulatedMemory, SimulatedPod, SimulatedStock } from './pods.ts';

/** Returns a number from 0 (inclusive) to 1 (exclusive). */
export type Random = () => number;

/** Encodes a pod for v1: sidecars first, one entry per device and NUMA node, in the random order of Go's maps. */
export function podV1(pod: SimulatedPod, random: Random): PodResources {
  const listed = pod.containers.filter(({ kind }) => kind !== 'init');
  const containers = [...listed.filter(({ kind }) => kind === 'sidecar'), ...listed.filter(({ kind }) => kind !== 'sidecar')];
  return {
    name: pod.name,
    namespace: pod.namespace,
    containers: containers.map((container) => containerV1(container, random)),
    cpuIds: (pod.podCpus ?? []).map(BigInt),
    memory: [],
  };
}

/** Encodes a pod for v1alpha1, which has only app containers and ids, and keeps ended pods. */
export function podV1alpha1(pod: SimulatedPod, random: Random): PodResourcesV1alpha1 {
  const containers = pod.containers.filter(({ kind }) => kind === undefined || kind === 'app');
  return {
    name: pod.name,
    namespace: pod.namespace,
    containers: containers.map(({ name, devices = [] }) => ({
      name,
      devices: shuffled(devices.flatMap(perNumaNode), random).map(({ resourceName, deviceIds }) => ({
        resourceName,
        deviceIds,
      })),
    })),
  };
}

/** Returns healthy devices, in use or not. The kubelet loops over NUMA nodes, so it omits devices whose topology has no nodes. */
export function allocatable({ devices, cpus, memory }: SimulatedStock, random: Random): AllocatableResourcesResponse {
  const listed = devices.filter(({ healthy, numaNodes }) => healthy !== false && numaNodes?.length !== 0);
  return { devices: shuffled(listed.flatMap(perNumaNode), random), cpuIds: cpus.map(BigInt), memory: memory.map(memoryBlock) };
}

function containerV1({ name, devices = [], cpus = [], memory = [], claims = [] }: SimulatedContainer, random: Random): ContainerResources {
  return {
    name,
    devices: shuffled(devices.flatMap(perNumaNode), random),
    cpuIds: cpus.map(BigInt),
    memory: memory.map(memoryBlock),
    dynamicResources: claims.map(dynamicResource),
  };
}

function perNumaNode({ resource, id, numaNodes }: SimulatedDevice): ContainerDevices[] {
  const entry = { resourceName: resource, deviceIds: [id], topology: undefined };
  if (numaNodes === undefined || numaNodes.length === 0) return [entry];
  return numaNodes.map((node) => ({ ...entry, topology: topologyOf([node]) }));
}

/** The encoder omits default values, so node 0 is an empty message on the wire. */
function topologyOf(nodes: readonly number[]): TopologyInfo {
  return { nodes: nodes.map((node) => ({ ID: BigInt(node) })) };
}

function memoryBlock({ type, bytes, numaNodes }: SimulatedMemory): ContainerMemory {
  return { memoryType: type, size: bytes, topology: topologyOf(numaNodes) };
}

/** The kubelet builds the list of CDI names once per driver, so each entry also contains the names of all earlier entries. */
function dynamicResource({ name, namespace, devices }: SimulatedClaim): DynamicResource {
  const names = new Map<string, string[]>();
  const claimResources = devices.map(({ driver, pool, device, shareId }) => {
    const soFar = [...(names.get(driver) ?? []), `${driver}/device=${device}`];
    names.set(driver, soFar);
    const cdiDevices = soFar.map((cdi) => ({ name: cdi }));
    return { cdiDevices, driverName: driver, poolName: pool, deviceName: device, shareId };
  });
  return { claimName: name, claimNamespace: namespace, claimResources };
}

export function shuffled<T>(items: readonly T[], random: Random): T[] {
  const result = [...items];
  for (let last = result.length - 1; last > 0; last -= 1) {
    const other = Math.floor(random() * (last + 1));
    [result[last], result[other]] = [result[other] as T, result[last] as T];
  }
  return result;
}
