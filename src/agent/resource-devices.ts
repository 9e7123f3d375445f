import type { ResourceDevices } from '../health/journal/ready-devices.ts';
import type { Resolver, Served } from '../join/resolve.ts';
import type { DeviceState, Snapshot } from '../model/snapshot.ts';

/**
 * Finds the devices of a Kubernetes resource. Those of a resource that this agent serves are known exactly. Of others, the kubelet lists those
 * that can be allocated, and pods name those that they hold. A plugin withholds a sick device, and the list then lacks it: so each device of
 * the same family and kind that no other resource has may be of this one.
 */
export function resourceDevices(
  resource: string,
  { devices, podResources }: Pick<Snapshot, 'devices' | 'podResources'>,
  resolver: Pick<Resolver, 'resolve'>,
  served: Served | undefined,
): ResourceDevices | undefined {
  if (served !== undefined) {
    const keys = 'pool' in served ? served.pool : [...served.byId.values()].flat();
    return { devices: new Set(keys), possible: new Set(), unresolved: 0 };
  }
  const { allocatable, allocations } = podResources;
  if (allocatable === undefined) return undefined;
  const ids = new Map<string, Set<string>>();
  const add = (name: string, id: string): void => void (ids.get(name)?.add(id) ?? ids.set(name, new Set([id])));
  for (const { resource: name, deviceIds } of allocatable.devices) for (const id of deviceIds) add(name, id);
  for (const { resource: name, deviceId, claim } of allocations) if (claim === undefined) add(name, deviceId);
  const keysOf = (name: string, deviceId: string): readonly string[] =>
    resolver.resolve({ namespace: '', pod: '', container: '', resource: name, deviceId, numaNodes: [] }).devices;
  const own = [...(ids.get(resource) ?? [])].map((id) => keysOf(resource, id));
  const found = new Set(own.flat());
  const others = new Set([...ids].filter(([name]) => name !== resource).flatMap(([name, of]) => [...of].flatMap((id) => keysOf(name, id))));
  const kinds = new Set(devices.filter(({ key }) => found.has(key)).map(kindOf));
  const possible = devices.filter((state) => kinds.has(kindOf(state)) && !found.has(state.key) && !others.has(state.key));
  return {
    devices: found,
    possible: new Set(possible.map(({ key }) => key)),
    unresolved: own.filter((keys) => keys.length === 0).length,
  };
}

const kindOf = ({ device }: DeviceState): string => `${device.family}/${device.kind}`;
