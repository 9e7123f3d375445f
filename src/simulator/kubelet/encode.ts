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

/** Between 0 (included) and 1. */
export type Random = () => number;

/** A pod as v1 tells it: sidecars first, one entry per device and NUMA node, in the random order of Go's maps. */
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

/** v1alpha1 knows app containers and ids only; an ended pod stays. */
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

/** Healthy devices, in use or not; those whose topology has no nodes are lost in the kubelet's loop over nodes. */
export function allocatable({ devices, cpus, memory }: SimulatedStock, random: Random): AllocatableResourcesResponse {
  const told = devices.filter(({ healthy, numaNodes }) => healthy !== false && numaNodes?.length !== 0);
  return { devices: shuffled(told.flatMap(perNumaNode), random), cpuIds: cpus.map(BigInt), memory: memory.map(memoryBlock) };
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

/** Node 0 is a present and empty message on the wire: the encoder leaves default values out. */
function topologyOf(nodes: readonly number[]): TopologyInfo {
  return { nodes: nodes.map((node) => ({ ID: BigInt(node) })) };
}

function memoryBlock({ type, bytes, numaNodes }: SimulatedMemory): ContainerMemory {
  return { memoryType: type, size: bytes, topology: topologyOf(numaNodes) };
}

/** The list of CDI names is built once per driver, so each entry carries those of all before it too. */
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
