import { describe, expect, it } from 'vitest';
import { ListPodResourcesResponse } from '../../src/generated/podresources/v1/api.ts';
import { areSameEntries, entriesIn } from '../../src/kubelet/client/entries.ts';
import { type Choose, seeded } from '../support/seeded.ts';

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
