import { describe, expect, it } from 'vitest';
import { AllocatableResourcesResponse, ListPodResourcesResponse } from '../../src/generated/podresources/v1/api.ts';
import {
  ALLOCATABLE_SHAPE,
  areSameEntries,
  ENTRY_LIMITS,
  entriesIn,
  LIST_SHAPE,
  limitEntries,
} from '../../src/kubelet/client/entry-limits.ts';
import { type Choose, seeded } from '../support/seeded.ts';
import { gpuPod, makeNode } from './support/node.ts';

const many = <T>(count: number, make: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at));
const topology = { nodes: [{ ID: 0n }, { ID: 1n }] };
const device = (deviceIds: string[]) => ({ resourceName: 'vendor.com/gpu', deviceIds, topology });
const pod = (name: string, ids: number, choose: Choose = () => 1) => ({
  name,
  namespace: 'default',
  containers: [
    {
      name: 'main',
      devices: many(ids, (at) => device([`${name}-${at}`])),
      cpuIds: many(choose(9), (at) => BigInt(at)),
      memory: many(choose(3), () => ({ memoryType: 'memory', size: 1_024n, topology })),
      dynamicResources: many(choose(3), (at) => ({
        claimName: `claim-${at}`,
        claimNamespace: 'default',
        claimResources: [{ cdiDevices: [{ name: 'a/b=c' }], driverName: 'gpu.vendor.com', poolName: 'node', deviceName: `gpu-${at}` }],
      })),
    },
  ],
});
const list = (pods: ReturnType<typeof pod>[]): Uint8Array =>
  ListPodResourcesResponse.encode(ListPodResourcesResponse.fromPartial({ podResources: pods })).finish();
const names = (bytes: Uint8Array): string[] => ListPodResourcesResponse.decode(bytes).podResources.map(({ name }) => name);

describe('the entries of an answer', () => {
  it.each(many(20, (seed) => seed + 1))('are the same when no entry came, went or changed (seed %i)', (seed) => {
    const choose = seeded(seed);
    const pods = many(1 + choose(6), (at) => pod(`p${at}`, choose(3), choose));
    const entries = (all: typeof pods) => entriesIn(Buffer.from(list(all)));
    const same = (all: typeof pods): boolean => areSameEntries(entries(pods), entries(all));
    expect(same([...pods].sort(() => choose(3) - 1))).toBe(true);
    expect([same(pods.slice(1)), same([...pods, pod('p0', 1)])]).toEqual([false, false]);
    expect(same([pod('other', 0), ...pods.slice(1)])).toBe(false);
  });
});

describe('the limits of an answer', () => {
  it('leave an answer within them as it is', () => {
    const choose = seeded(7);
    for (let round = 0; round < 100; round++) {
      const bytes = list(many(choose(20), (at) => pod(`p${at}`, choose(20), choose)));
      expect(limitEntries(bytes, LIST_SHAPE)).toEqual({ bytes, dropped: 0 });
    }
  });

  it('count device ids, and devices of claims', () => {
    const ids = (name: string): string[] => many(1_000, (at) => `${name}-${at}`);
    const wide = (name: string) => ({ ...pod(name, 0), containers: [{ ...pod(name, 0).containers[0]!, devices: [device(ids(name))] }] });
    const bytes = list(many(30, (at) => wide(`p${at}`)));
    const { bytes: kept, dropped } = limitEntries(bytes, LIST_SHAPE);
    // Each pod has 1,000 ids and one claim.
    expect(names(kept)).toEqual(many(19, (at) => `p${at}`));
    expect(dropped).toBe(11);
  });

  it('leave out one oversized pod and keep those after it', () => {
    const bytes = list([pod('before', 1), pod('huge', 20_001), pod('after', 1)]);
    const { bytes: kept, dropped } = limitEntries(bytes, LIST_SHAPE);
    expect(names(kept)).toEqual(['before', 'after']);
    expect(dropped).toBe(1);
  });

  it('count pods without a name', () => {
    const bytes = Buffer.alloc(2 * 1_000_000, Buffer.from([0x0a, 0x00]));
    const { bytes: kept, dropped } = limitEntries(bytes, LIST_SHAPE);
    expect(names(kept)).toHaveLength(ENTRY_LIMITS.fields);
    expect(dropped).toBe(900_000);
  });

  it('count packed CPU ids', () => {
    const cpus = { name: 'cpus', namespace: '', containers: [{ name: 'c', cpuIds: many(1_000_001, () => 1n) }] };
    const bytes = ListPodResourcesResponse.encode(ListPodResourcesResponse.fromPartial({ podResources: [cpus, pod('next', 1)] })).finish();
    const { bytes: kept, dropped } = limitEntries(bytes, LIST_SHAPE);
    expect(names(kept)).toEqual(['next']);
    expect(dropped).toBe(1);
  });

  it('hold for the capacity too', () => {
    const devices = many(25, (resource) => ({
      resourceName: `vendor.com/r${resource}`,
      deviceIds: many(1_000, (at) => `d${at}`),
      topology,
    }));
    const bytes = AllocatableResourcesResponse.encode(AllocatableResourcesResponse.fromPartial({ devices, cpuIds: [0n, 1n] })).finish();
    const { bytes: kept, dropped } = limitEntries(bytes, ALLOCATABLE_SHAPE);
    const answer = AllocatableResourcesResponse.decode(kept);
    expect(dropped).toBe(5);
    expect(answer.devices).toHaveLength(20);
    expect(answer.cpuIds).toEqual([0n, 1n]);
  });

  it('reject bytes that are no message', () => {
    const whole = list([pod('p', 3)]);
    for (let length = 1; length < whole.length; length++)
      expect(() => limitEntries(whole.subarray(0, length), LIST_SHAPE), `${length} bytes`).toThrow();
  });
});

describe('a kubelet that lists more than the agent reads', () => {
  it('is told as too-many-entries, and what was read counts', async () => {
    const node = makeNode();
    await node.kubelet.start();
    const ids = many(20_001, (at) => `d${at}`);
    node.kubelet.admitPod(gpuPod('huge', ...ids));
    node.kubelet.admitPod(gpuPod('train', 'gpu-0'));
    const poller = node.poller();
    await poller.refresh();
    expect(poller.current().problem).toMatchObject({
      reason: 'too-many-entries',
      message: expect.stringContaining('1 pods were not read'),
    });
    expect(poller.current().allocations).toMatchObject([{ pod: 'train', deviceId: 'gpu-0' }]);
    node.kubelet.removePod('ml', 'huge');
    await poller.refresh();
    expect(poller.current().problem).toBeUndefined();
  });
});
