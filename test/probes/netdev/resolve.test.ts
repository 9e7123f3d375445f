import { describe, expect, it } from 'vitest';
import { Resolver } from '../../../src/join/resolve.ts';
import type { Allocation } from '../../../src/model/allocation.ts';
import { claimNames, family, resolve } from '../../../src/probes/netdev/index.ts';
import { machineOf, probeMachine, reportOf } from './harness.ts';

const devices = async (name: string) => (await probeMachine(machineOf(name)).at(0)).reports.map(({ device }) => device);

describe('an id of the SR-IOV device plugin', () => {
  it.each([
    ['0000:3b:01.0', ['0000:3b:01.0']],
    ['0000:3B:01.0', ['0000:3b:01.0']],
    ['00000000:3b:01.0', ['0000:3b:01.0']],
    ['0000:5e:00.0', ['0000:5e:00.0']],
    ['0000:3b:07.7', []],
    ['3b:01', []],
    ['ens1f0', []],
    ['0', []],
    ['', []],
  ])('%j names %j', async (deviceId, ids) => {
    expect(resolve({ resource: 'intel.com/any_pool', deviceId }, await devices('functions-of-dpdk'))).toEqual(ids);
  });
});

describe('a claim', () => {
  it.each([
    ['dra.net', 'pci-0000-3b-01-0', ['0000:3b:01.0']],
    ['dra.net', 'ens1f0', ['0000:3b:00.0']],
    ['sriovnetwork.k8snetworkplumbingwg.io', '0000-3b-01-1', ['0000:3b:01.1']],
    ['sriovnetwork.k8snetworkplumbingwg.io', '0000-3b-09-1', []],
    ['cni.dra.networking.x-k8s.io', '0000-3b-01-1', []],
    ['gpu.example.com', 'pci-0000-3b-01-0', []],
  ])('of %s for %j names %j', async (driver, device, ids) => {
    const claim = { name: 'net', namespace: 'web', driver, pool: 'node-1', device };
    expect(resolve({ resource: driver, deviceId: `node-1/${device}`, claim }, await devices('functions-of-dpdk'))).toEqual(ids);
  });

  it('finds each name that the family gives', async () => {
    const all = await devices('functions-of-dpdk');
    const names = all.flatMap((device) => claimNames(device).map((name) => [device.id, name] as const));
    expect(names.length).toBe(7);
    for (const [id, { driver, device }] of names) {
      const claim = { name: 'net', namespace: 'web', driver, pool: 'node-1', device };
      expect(resolve({ resource: driver, deviceId: `node-1/${device}`, claim }, all)).toEqual([id]);
    }
  });
});

it('a function with an RDMA device has one holder, whichever family reports it', async () => {
  const rdma = { family: 'infiniband', id: 'mlx5_1', kind: 'vf', aliases: ['0000:3b:00.1'], pciAddress: '0000:3b:00.1' };
  const resolver = new Resolver([rdma, ...(await devices('functions-with-rdma-devices'))], {
    pools: [],
    families: new Map([['netdev', resolve]]),
  });
  const allocation = (deviceId: string): Allocation => ({
    ...{ namespace: 'ml', pod: 'p', container: 'c', resource: 'nvidia.com/vfs', numaNodes: [] },
    deviceId,
  });
  expect(resolver.resolve(allocation('0000:3b:00.1'))).toEqual({ devices: ['infiniband/mlx5_1'], ambiguous: false });
  expect(resolver.resolve(allocation('0000:3b:00.2'))).toEqual({ devices: ['netdev/0000:3b:00.2'], ambiguous: false });
});

describe('a container', () => {
  it('gets the nodes of a function that it drives itself, and the address', async () => {
    const collection = await probeMachine(machineOf('functions-of-dpdk')).at(0);
    expect(family.access?.(reportOf(collection, '0000:3b:01.1').device)).toEqual({
      deviceNodes: [
        { path: '/dev/vfio/61', permissions: 'rw' },
        { path: '/dev/vfio/vfio', permissions: 'rw' },
      ],
      env: { 'PCIDEVICE_{RESOURCE}': '0000:3b:01.1' },
    });
    expect(family.access?.(reportOf(collection, '0000:3b:00.0').device)?.deviceNodes).toEqual([]);
  });
});
