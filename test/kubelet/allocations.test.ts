import { describe, expect, it } from 'vitest';
import { type DeepPartial, ListPodResourcesResponse } from '../../src/generated/podresources/v1/api.ts';
import { attributionFrom, carriedAllocations } from '../../src/kubelet/allocations/allocations.ts';

type Pods = NonNullable<DeepPartial<ListPodResourcesResponse>['podResources']>;
type Containers = NonNullable<Pods[number]['containers']>;

/** Over the wire and back, so that default values are elided as by the kubelet. */
function list(podResources: Pods): ListPodResourcesResponse {
  return ListPodResourcesResponse.decode(ListPodResourcesResponse.encode(ListPodResourcesResponse.fromPartial({ podResources })).finish());
}

function onePod(containers: Containers) {
  return attributionFrom(list([{ namespace: 'ml', name: 'train', containers }]));
}

const numa = (...nodes: number[]) => ({ nodes: nodes.map((ID) => ({ ID })) });
const gpu = (...deviceIds: string[]) => ({ resourceName: 'vendor.com/gpu', deviceIds });
const ids = (attribution: ReturnType<typeof attributionFrom>) => attribution.allocations.map(({ deviceId }) => deviceId);

describe('devices in a List answer', () => {
  it('come one per entry or many in one entry', () => {
    expect(ids(onePod([{ name: 'main', devices: [gpu('b'), gpu('a'), gpu('d', 'c')] }]))).toEqual(['a', 'b', 'c', 'd']);
  });

  it('are one allocation when the id is repeated per NUMA node', () => {
    const { allocations } = onePod([
      {
        name: 'main',
        devices: [
          { ...gpu('a'), topology: numa(1) },
          { ...gpu('a'), topology: numa(0) },
        ],
      },
    ]);
    expect(allocations).toEqual([
      { namespace: 'ml', pod: 'train', container: 'main', resource: 'vendor.com/gpu', deviceId: 'a', numaNodes: [0, 1] },
    ]);
  });

  it.each([
    ['NUMA node 0, which is an empty message on the wire', numa(0), [0]],
    ['no topology', undefined, []],
    ['a topology without nodes', numa(), []],
    ['-1, as kubelets of 1.21 say', numa(-1), []],
    ['two nodes in one entry', numa(1, 0), [0, 1]],
  ])('tell %s', (_, topology, expected) => {
    const { allocations } = onePod([{ name: 'main', devices: [{ ...gpu('a'), ...(topology === undefined ? {} : { topology }) }] }]);
    expect(allocations.map(({ numaNodes }) => numaNodes)).toEqual([expected]);
  });

  it('keep apart what differs in resource, container, pod or namespace', () => {
    const containers = [{ name: 'main', devices: [gpu('0'), { resourceName: 'vendor.com/nic', deviceIds: ['0'] }] }];
    const { allocations } = attributionFrom(
      list([
        { namespace: 'b', name: 'p', containers },
        { namespace: 'a', name: 'q', containers },
        { namespace: 'a', name: 'p', containers: [...containers, { name: 'side', devices: [gpu('1')] }] },
      ]),
    );
    expect(allocations.map((a) => `${a.namespace}/${a.pod}/${a.container} ${a.resource} ${a.deviceId}`)).toEqual([
      'a/p/main vendor.com/gpu 0',
      'a/p/main vendor.com/nic 0',
      'a/p/side vendor.com/gpu 1',
      'a/q/main vendor.com/gpu 0',
      'a/q/main vendor.com/nic 0',
      'b/p/main vendor.com/gpu 0',
      'b/p/main vendor.com/nic 0',
    ]);
  });

  it('come out alike whatever the order they came in', () => {
    const devices = ['e', 'b', 'a', 'd', 'c'].map((id) => gpu(id));
    const forth = onePod([
      { name: 'main', devices },
      { name: 'second', devices: [gpu('z')] },
    ]);
    const back = onePod([
      { name: 'second', devices: [gpu('z')] },
      { name: 'main', devices: devices.toReversed() },
    ]);
    expect(back).toEqual(forth);
  });

  it('are nothing for containers without any, and for entries without a name', () => {
    expect(onePod([{ name: 'main' }, { name: 'odd', devices: [gpu(''), { resourceName: '', deviceIds: ['a'] }] }])).toEqual({
      allocations: [],
      exclusive: [],
      podExclusive: [],
    });
  });
});

describe('claims in a List answer', () => {
  const resource = (deviceName: string, more = {}) => ({ driverName: 'gpu.vendor.com', poolName: 'node-1', deviceName, ...more });
  const claim = (claimName: string, ...claimResources: object[]) => ({ claimName, claimNamespace: 'ml', claimResources });

  it('are told by driver, pool and device', () => {
    expect(onePod([{ name: 'main', dynamicResources: [claim('c', resource('gpu-0'))] }]).allocations).toEqual([
      {
        namespace: 'ml',
        pod: 'train',
        container: 'main',
        resource: 'gpu.vendor.com',
        deviceId: 'node-1/gpu-0',
        numaNodes: [],
        claim: { name: 'c', namespace: 'ml', driver: 'gpu.vendor.com', pool: 'node-1', device: 'gpu-0' },
      },
    ]);
  });

  it('are no allocation before their driver has prepared a device', () => {
    expect(onePod([{ name: 'main', dynamicResources: [claim('c')] }]).allocations).toEqual([]);
  });

  it('count a device once, however often a retried preparation repeated it', () => {
    const repeated = Array.from({ length: 50 }, () => resource('gpu-0'));
    expect(ids(onePod([{ name: 'main', dynamicResources: [claim('c', ...repeated), claim('c', ...repeated)] }]))).toEqual(['node-1/gpu-0']);
  });

  it('have their own CDI names, although the kubelet repeats those of the entries before', () => {
    const cdi = (...names: string[]) => ({ cdiDevices: names.map((name) => ({ name })) });
    const other = { ...cdi('o/c=0'), driverName: 'other.vendor.com' };
    const claimResources = [
      resource('gpu-0', cdi('v/c=0', 'v/all=1')),
      resource('o-0', other),
      resource('gpu-1', cdi('v/c=0', 'v/all=1', 'v/c=1')),
      resource('gpu-2', cdi('v/c=0', 'v/all=1', 'v/c=1')),
      resource('gpu-3', cdi('v/c=3')),
    ];
    const { allocations } = onePod([{ name: 'main', dynamicResources: [claim('c', ...claimResources)] }]);
    expect(Object.fromEntries(allocations.map((one) => [one.claim?.device, one.claim?.cdiDevices]))).toEqual({
      'gpu-0': ['v/c=0', 'v/all=1'],
      'gpu-1': ['v/c=1'],
      'gpu-2': undefined,
      'gpu-3': ['v/c=3'],
      'o-0': ['o/c=0'],
    });
  });

  it('give no device for CDI names, which are cumulative', () => {
    const cdi = (...names: string[]) => ({ cdiDevices: names.map((name) => ({ name })) });
    const claimResources = [resource('gpu-0', cdi('v/c=0')), resource('gpu-1', cdi('v/c=0', 'v/c=1')), cdi('v/c=9')];
    expect(ids(onePod([{ name: 'main', dynamicResources: [claim('c', ...claimResources)] }]))).toEqual(['node-1/gpu-0', 'node-1/gpu-1']);
  });

  it('have an owner in each container that shares them', () => {
    const dynamicResources = [claim('shared', resource('gpu-0'))];
    const { allocations } = onePod([
      { name: 'b', dynamicResources },
      { name: 'a', dynamicResources },
    ]);
    expect(allocations.map(({ container, deviceId }) => `${container} ${deviceId}`)).toEqual(['a node-1/gpu-0', 'b node-1/gpu-0']);
  });

  it('keep the shares of one device apart', () => {
    const shares = [resource('gpu-0', { shareId: 's2' }), resource('gpu-0', { shareId: 's1' })];
    const { allocations } = onePod([{ name: 'main', dynamicResources: [claim('c', ...shares)] }]);
    expect(allocations.map((allocation) => allocation.claim?.shareId)).toEqual(['s1', 's2']);
  });
});

describe('exclusive CPUs and memory in a List answer', () => {
  it('are told per container and, apart from them, for the pod as a whole, sorted', () => {
    const answer = list([
      {
        namespace: 'ml',
        name: 'train',
        cpuIds: [1, 2, 3, 4],
        memory: [{ memoryType: 'memory', size: 9 }],
        containers: [
          { name: 'plain' },
          { name: 'main', cpuIds: [10, 2, 2], memory: [{ memoryType: 'hugepages-2Mi', size: 4, topology: numa(1) }] },
        ],
      },
    ]);
    expect(attributionFrom(answer).exclusive).toEqual([
      {
        namespace: 'ml',
        pod: 'train',
        container: 'main',
        cpus: [2, 10],
        memory: [{ type: 'hugepages-2Mi', bytes: 4n, numaNodes: [1] }],
      },
    ]);
    expect(attributionFrom(answer).podExclusive).toEqual([
      { namespace: 'ml', pod: 'train', cpus: [1, 2, 3, 4], memory: [{ type: 'memory', bytes: 9n, numaNodes: [] }] },
    ]);
  });

  it('keep every byte of a size beyond 2^53, and a block over two nodes whole', () => {
    const size = 2n ** 60n + 1n;
    const { exclusive } = onePod([{ name: 'main', memory: [{ memoryType: 'memory', size, topology: numa(0, 1) }] }]);
    expect(exclusive[0]?.memory).toEqual([{ type: 'memory', bytes: size, numaNodes: [0, 1] }]);
  });

  it('count once what an ended pod and its successor of the same name both have', () => {
    const pod = {
      namespace: 'ml',
      name: 'train',
      containers: [{ name: 'main', cpuIds: [1], memory: [{ memoryType: 'memory', size: 5 }] }],
    };
    expect(attributionFrom(list([pod, pod])).exclusive).toEqual([
      { namespace: 'ml', pod: 'train', container: 'main', cpus: [1], memory: [{ type: 'memory', bytes: 5n, numaNodes: [] }] },
    ]);
  });
});

describe('allocations of the answer before', () => {
  const answer = (node: number) => onePod([{ name: 'main', devices: [{ ...gpu('a'), topology: numa(node) }, gpu('b')] }]).allocations;

  it('are the same list while the answer has the same ones', () => {
    const before = answer(0);
    expect(carriedAllocations(before, answer(0))).toBe(before);
  });

  it('are other objects where they differ', () => {
    const before = answer(0);
    const kept = carriedAllocations(before, answer(1));
    expect(kept.map(({ numaNodes }) => numaNodes)).toEqual([[1], []]);
    expect(kept[1]).toBe(before[1]);
  });
});
