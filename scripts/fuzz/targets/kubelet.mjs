import assert from 'node:assert/strict';
import { AllocatableResourcesResponse, ListPodResourcesResponse } from '../../../dist/generated/podresources/v1/api.js';
import { systemClock } from '../../../dist/host/clock.js';
import { allocatableFrom, attributionFrom } from '../../../dist/kubelet/allocations/allocations.js';
import { parseCheckpoint } from '../../../dist/kubelet/checkpoint/checkpoint.js';
import { entriesIn } from '../../../dist/kubelet/client/entries.js';
import { PluginService } from '../../../dist/plugin/service.js';
import { mutate, mutateBytes, pick, randomText } from '../random.mjs';

const CHECKPOINT = JSON.stringify({
  Data: {
    PodDeviceEntries: [
      {
        PodUID: 'u1',
        ContainerName: 'main',
        ResourceName: 'nvidia.com/gpu',
        DeviceIDs: { '-1': ['GPU-1'], 0: ['GPU-2', 'GPU-3'] },
        AllocResp: 'CgA=',
      },
      { PodUID: 'u2', ContainerName: 'side', ResourceName: 'rdma/hca', DeviceIDs: ['mlx5_0'], AllocResp: '' },
    ],
    RegisteredDevices: { 'nvidia.com/gpu': ['GPU-1', 'GPU-2', 'GPU-3'] },
  },
  Checksum: 12345,
});

export const checkpoint = () => ({
  make: (choose) => mutate(choose, CHECKPOINT),
  check(text) {
    const entries = parseCheckpoint(text);
    if (entries === undefined) return;
    const strings = new Set();
    JSON.parse(text, (key, value) => {
      strings.add(key);
      if (typeof value === 'string') strings.add(value);
      return value;
    });
    for (const { podUid, container, resource, deviceIds } of entries)
      for (const word of [podUid, container, resource, ...deviceIds])
        assert.ok(word !== '' && strings.has(word), `${word} is not in the file`);
  },
});

const topology = { nodes: [{ ID: 0n }, { ID: 1n }] };
const memory = [{ memoryType: 'memory', size: 1_024n, topology }];
const devices = [
  { resourceName: 'nvidia.com/gpu', deviceIds: ['GPU-1', 'GPU-2'], topology },
  { resourceName: 'rdma/hca', deviceIds: ['mlx5_0'] },
];
const claim = {
  claimName: 'c',
  claimNamespace: 'n',
  claimResources: [{ cdiDevices: [{ name: 'v/c=d' }], driverName: 'gpu.v.com', poolName: 'p', deviceName: 'd', shareId: 's' }],
};
const containers = [{ name: 'main', devices, cpuIds: [1n, 2n, 300n], memory, dynamicResources: [claim] }];
const LIST = ListPodResourcesResponse.encode(
  ListPodResourcesResponse.fromPartial({
    podResources: [
      { name: 'a', namespace: 'n', containers, cpuIds: [1n], memory },
      { name: 'b', namespace: 'n', containers },
    ],
  }),
).finish();
const ALLOCATABLE = AllocatableResourcesResponse.encode(
  AllocatableResourcesResponse.fromPartial({ devices, cpuIds: [0n, 1n], memory }),
).finish();

/** Bytes of an answer: rejected, or read as something that is in them. */
export const list = () => ({
  make: (choose) => `${choose(2) === 0 ? 'L' : 'A'}${mutateBytes(choose, choose(2) === 0 ? LIST : ALLOCATABLE).toString('hex')}`,
  check(input) {
    const bytes = Buffer.from(input.slice(1), 'hex');
    const isList = input.startsWith('L');
    let message;
    try {
      entriesIn(bytes);
      message = isList ? ListPodResourcesResponse.decode(bytes) : AllocatableResourcesResponse.decode(bytes);
    } catch (error) {
      // The gRPC library turns what a decoder throws into a failed call.
      assert.ok(error instanceof Error);
      return;
    }
    const isInBytes = (word) => word.includes('\uFFFD') || bytes.includes(Buffer.from(word));
    if (isList) {
      const { allocations, exclusive } = attributionFrom(message);
      for (const { namespace, pod, container, deviceId, claim } of allocations)
        for (const word of [namespace, pod, container, ...(claim === undefined ? [deviceId] : [claim.device, claim.pool])])
          assert.ok(isInBytes(word), word);
      for (const { cpus } of exclusive) for (const cpu of cpus) assert.ok(Number.isInteger(cpu) && cpu >= 0, `cpu ${cpu}`);
    } else {
      for (const { resource, deviceIds } of allocatableFrom(message).devices)
        for (const word of [resource, ...deviceIds]) assert.ok(isInBytes(word), word);
    }
  },
});

const state = (id, verdict) => ({
  key: `toy/${id}`,
  device: { family: 'toy', id, kind: 'toy', aliases: [] },
  verdict: { state: verdict, sinceMs: 0, conditions: [] },
});
const offer = (id, health) => ({
  id,
  baseId: id,
  health,
  why: health === 'Healthy' ? '' : 'it is broken',
  devices: [state(id, health === 'Healthy' ? 'healthy' : 'unhealthy')],
  numaNodes: [],
});

/** Calls of the plugin: an answer with devices that are offered and healthy, or a refusal of at most 1 KiB. */
export function plugin() {
  const offered = [
    ...Array.from({ length: 8 }, (_, at) => offer(`d${at}`, 'Healthy')),
    ...Array.from({ length: 4 }, (_, at) => offer(`s${at}`, 'Unhealthy')),
  ];
  const healthy = new Set(offered.filter(({ health }) => health === 'Healthy').map(({ id }) => id));
  const resource = { resource: 'example.com/toy', select: { family: 'toy' }, preStart: true, preferredAllocation: 'numa' };
  const offers = { resource, current: () => offered, onChange: () => () => {} };
  const access = (device) => ({ deviceNodes: [{ path: `/dev/${device.id}`, permissions: 'rw' }] });
  const healthOf = ({ state }) => (state === 'healthy' ? 'Healthy' : 'Unhealthy');
  const { methods } = new PluginService({ offers, access, healthOf, clock: systemClock });
  const ids = [...offered.map(({ id }) => id), '', 'unknown', 'x'.repeat(1_000), '\0', '__proto__', '💥'.repeat(300)];
  const some = (choose) =>
    Array.from({ length: choose(choose(10) === 0 ? 3_000 : 6) }, () => (choose(8) === 0 ? randomText(choose, 30) : pick(choose, ids)));
  const requests = (choose) => ({
    allocate: { containerRequests: Array.from({ length: choose(4) }, () => ({ devicesIds: some(choose) })) },
    preStartContainer: { devicesIds: some(choose) },
    getPreferredAllocation: {
      containerRequests: Array.from({ length: choose(3) }, () => ({
        availableDeviceIDs: some(choose),
        mustIncludeDeviceIDs: some(choose),
        allocationSize: pick(choose, [0, 1, 2, 8, -1, 2 ** 31 - 1, -(2 ** 31)]),
      })),
    },
  });
  return {
    make(choose) {
      const all = requests(choose);
      const method = pick(choose, Object.keys(all));
      return JSON.stringify({ method, request: all[method] });
    },
    async check(input) {
      const { method, request } = JSON.parse(input);
      const { error, answer } = await new Promise((resolve) =>
        methods[method]({ request }, (failed, value) => resolve({ error: failed, answer: value })),
      );
      if (error !== null && error !== undefined) {
        assert.ok(Buffer.byteLength(error.details) <= 1_024, `a refusal of ${Buffer.byteLength(error.details)} bytes`);
        assert.notEqual(error.code, 13, `internal error: ${error.details}`);
        return;
      }
      if (method === 'allocate')
        for (const [at, { devices }] of answer.containerResponses.entries()) {
          const asked = new Set(request.containerRequests[at].devicesIds);
          for (const { hostPath } of devices)
            assert.ok(healthy.has(hostPath.slice(5)) && asked.has(hostPath.slice(5)), `granted ${hostPath}`);
        }
      if (method === 'getPreferredAllocation')
        for (const [at, { deviceIDs }] of answer.containerResponses.entries()) {
          const { availableDeviceIDs, mustIncludeDeviceIDs } = request.containerRequests[at];
          const allowed = new Set([...availableDeviceIDs, ...mustIncludeDeviceIDs]);
          for (const id of deviceIDs) assert.ok(allowed.has(id), `prefers ${id}`);
        }
      if (method === 'preStartContainer') for (const id of request.devicesIds) assert.ok(healthy.has(id), `starts with ${id}`);
    },
  };
}
