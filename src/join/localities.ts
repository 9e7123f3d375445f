import type { ContainerLocality, DevicePair, DeviceRole } from '../model/container-locality.ts';
import { defined } from '../model/defined.ts';
import type { Device } from '../model/device.ts';
import { comparePaths, farthestPairs, placed, wayBetween } from '../model/locality.ts';
import type { ExclusiveResources } from '../model/pod-resources.ts';
import type { AllocationState } from '../model/snapshot.ts';

/** What {@link localities} knows of the node. */
export interface LocalityFacts {
  readonly device: (key: string) => Device | undefined;
  readonly roleOf: (family: string) => DeviceRole | undefined;
  readonly exclusive: readonly ExclusiveResources[];
  /** The NUMA node of each CPU. */
  readonly cpuNodes: ReadonlyMap<number, number>;
}

/** Above this number, only the farthest pair of each device is kept. */
const MOST_PAIRS = 256;

/** Devices and their ways in each container that holds a GPU and another device, in the order of the allocations. */
export function localities(allocations: readonly AllocationState[], facts: LocalityFacts): readonly ContainerLocality[] {
  const { roleOf } = facts;
  const held = new Map<string, { readonly state: AllocationState; readonly devices: Map<string, Device> }>();
  for (const state of allocations) {
    const key = containerKey(state.allocation);
    const container = held.get(key) ?? { state, devices: new Map<string, Device>() };
    held.set(key, container);
    for (const one of state.devices) {
      const device = facts.device(one);
      if (device !== undefined) container.devices.set(one, device);
    }
  }
  const cpus = new Map(facts.exclusive.map((one) => [containerKey(one), one.cpus]));
  return [...held].flatMap(([key, { state, devices }]) => {
    const own = [...devices.values()];
    if (own.length < 2 || !own.some(({ family }) => roleOf(family) === 'gpu')) return [];
    const { namespace, pod, container } = state.allocation;
    const found = localityOf([...devices].toSorted(byPlace), facts, cpus.get(key) ?? []);
    return found === undefined ? [] : [{ namespace, pod, container, ...found }];
  });
}

const containerKey = ({ namespace, pod, container }: Pick<ContainerLocality, 'namespace' | 'pod' | 'container'>): string =>
  [namespace, pod, container].join('\u0000');

type Keyed = readonly [key: string, device: Device];

/** The order of ids in the answers of the kubelet, and of ids at all, says nothing and can change: the slot can not. */
function byPlace(a: Keyed, b: Keyed): number {
  const [one, other] = [a, b].map(([key, { family, pciPath = '~', index = '' }]) =>
    [family, pciPath, index.padStart(8), key].join('\u0000'),
  );
  return (one as string) < (other as string) ? -1 : 1;
}

/** The ways between the devices of one container; undefined when it holds no GPU, or nothing but a GPU. */
function localityOf(
  known: readonly Keyed[],
  { roleOf, cpuNodes }: Pick<LocalityFacts, 'roleOf' | 'cpuNodes'>,
  cpus: readonly number[],
): Omit<ContainerLocality, 'namespace' | 'pod' | 'container'> | undefined {
  const roles = known.map((one) => ({ one, role: roleOf(one[1].family) }));
  const gpus = roles.flatMap(({ one, role }) => (role === 'gpu' ? [one] : []));
  const nics = roles.flatMap(({ one, role }) => (role === 'nic' || role === 'plain-nic' ? [one] : []));
  if (gpus.length === 0 || known.length < 2) return undefined;
  // GPUs first, so that the pair of a GPU and another device is always from the GPU.
  const devices = [...gpus, ...known.filter((one) => !gpus.includes(one))];
  const path = new Map(devices.map(([key]) => [key, new Map<string, string | undefined>()]));
  const places = devices.map(([key, device]) => ({ key, ...placed(device) }));
  const pairs = places.flatMap(({ key: from, ...a }, at) =>
    places.slice(at + 1).map(({ key: to, ...b }): DevicePair => {
      const word = wayBetween(a, b);
      path.get(from)?.set(to, word);
      path.get(to)?.set(from, word);
      return word === undefined ? { from, to } : { from, to, path: word };
    }),
  );
  const wayOf = ([from]: Keyed, [to]: Keyed): string | undefined => path.get(from)?.get(to);
  const gpuPath = worst(gpus.flatMap((a, at) => gpus.slice(at + 1).map((b) => wayOf(a, b))));
  const nicPath = nics.length === 0 ? undefined : worst(gpus.map((gpu) => nearest(nics.map((nic) => wayOf(gpu, nic)))));
  const offNode = offNodes(devices, cpus, cpuNodes);
  return {
    gpus: gpus.map(([key]) => key),
    nics: nics.map(([device, { family }]) => ({ device, hasVerbs: roleOf(family) === 'nic' })),
    pairs: pairs.length <= MOST_PAIRS ? pairs : [...new Set(farthestPairs(pairs).values())].slice(0, MOST_PAIRS),
    ...defined({ gpuPath, nicPath, offNode }),
  };
}

/** The farthest way. Undefined where there is none, or one is unknown: it may be farther. */
const worst = (paths: readonly (string | undefined)[]): string | undefined => inOrder(paths)?.at(-1);

/** The nearest way. Undefined where one is unknown: it may be nearer. */
const nearest = (paths: readonly (string | undefined)[]): string | undefined => inOrder(paths)?.[0];

const inOrder = (paths: readonly (string | undefined)[]): readonly string[] | undefined =>
  paths.includes(undefined) ? undefined : (paths as readonly string[]).toSorted(comparePaths);

/** Devices on other NUMA nodes than the CPUs of the container. Undefined without CPUs of its own, and where a node is unknown. */
function offNodes(devices: readonly Keyed[], cpus: readonly number[], cpuNodes: ReadonlyMap<number, number>): number | undefined {
  const nodes = new Set(cpus.map((cpu) => cpuNodes.get(cpu)));
  const places = devices.map(([, { numaNode }]) => numaNode);
  if (nodes.size === 0 || nodes.has(undefined) || places.includes(undefined)) return undefined;
  return places.filter((node) => !nodes.has(node)).length;
}
