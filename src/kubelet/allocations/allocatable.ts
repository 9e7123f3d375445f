import type { AllocatableResourcesResponse } from '../../generated/podresources/v1/api.ts';
import type { Allocatable } from '../../model/pod-resources.ts';
import { compareText, memoryBlocks, sortedNumbers } from './topology.ts';

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
