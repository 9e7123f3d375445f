import { describe, expect, it } from 'vitest';
import { AllocatableResourcesResponse } from '../../src/generated/podresources/v1/api.ts';
import { allocatableFrom } from '../../src/kubelet/allocations/allocations.ts';

const numa = (...nodes: number[]) => ({ nodes: nodes.map((ID) => ({ ID })) });
const gpu = (...deviceIds: string[]) => ({ resourceName: 'vendor.com/gpu', deviceIds });

describe('a GetAllocatableResources answer', () => {
  it('is merged per resource, sorted, each device once', () => {
    const response = AllocatableResourcesResponse.fromPartial({
      devices: [
        { ...gpu('b'), topology: numa(0) },
        { ...gpu('b'), topology: numa(1) },
        { resourceName: 'a.com/nic', deviceIds: ['n1', 'n0'] },
        gpu('a'),
      ],
      cpuIds: [3, 1, 2],
      memory: [{ memoryType: 'memory', size: 7, topology: numa(0) }],
    });
    expect(allocatableFrom(response)).toEqual({
      devices: [
        { resource: 'a.com/nic', deviceIds: ['n0', 'n1'] },
        { resource: 'vendor.com/gpu', deviceIds: ['a', 'b'] },
      ],
      cpus: [1, 2, 3],
      memory: [{ type: 'memory', bytes: 7n, numaNodes: [0] }],
    });
  });
});
