import { describe, expect, it } from 'vitest';
import type { Device } from '../../../src/model/device.ts';
import { family, resolve } from '../../../src/probes/infiniband/index.ts';
import { dranetName } from '../../../src/probes/kit/network.ts';
import { probeCase, reportOf } from './harness.ts';

const device = (part: Partial<Device> & Pick<Device, 'id'>): Device => ({ family: 'infiniband', kind: 'pf', aliases: [], ...part });

const DEVICES: readonly Device[] = [
  device({
    id: 'mlx5_0',
    pciAddress: '0000:3b:00.0',
    aliases: ['0000:3b:00.0', 'uverbs0'],
    netdevs: ['ib0'],
  }),
  device({ id: 'mlx5_3', kind: 'vf', pciAddress: '0000:3b:02.6', aliases: ['0000:3b:02.6', 'uverbs3'], parent: 'mlx5_0' }),
  device({
    id: 'mlx5_4',
    kind: 'sf',
    pciAddress: '0000:3b:00.0',
    aliases: ['mlx5_core.sf.4', 'uverbs4'],
    netdevs: ['eth4', 'eth5'],
  }),
  device({ id: 'mlx5_9', pciAddress: '10000:01:00.0', aliases: ['10000:01:00.0'] }),
  device({ id: 'rxe0', kind: 'function', netdevs: ['eth_int'] }),
  device({ id: 'rxe1', kind: 'function', netdevs: ['net-mv2gqorq'] }),
  device({ id: 'bare', kind: 'function' }),
];

describe('a device id', () => {
  it.each([
    ['0000:3b:00.0', ['mlx5_0']],
    ['0000:3B:00.0', ['mlx5_0']],
    ['00000000:3B:00.0', ['mlx5_0']],
    ['3b:00.0', ['mlx5_0']],
    ['0000:3b:02.6', ['mlx5_3']],
    ['10000:01:00.0', ['mlx5_9']],
    ['00010000:01:00.0', ['mlx5_9']],
    ['0000:3b:07.7', []],
    ['mlx5_core.sf.4', ['mlx5_4']],
    ['mlx5_0', ['mlx5_0']],
    ['mlx5_4', ['mlx5_4']],
    ['MLX5_9', ['mlx5_9']],
    ['uverbs3', ['mlx5_3']],
    ['/dev/infiniband/uverbs3', ['mlx5_3']],
    ['/dev/infiniband/uverbs33', []],
    ['0', []],
    ['4', []],
    ['63', []],
    ['', []],
    ['mlx5', []],
    ['3b:00', []],
    ['ib0', []],
    ['pci-0000-3b-00-0', []],
  ])('%j names %j', (deviceId, ids) => {
    expect(resolve({ resource: 'example.com/rdma', deviceId }, DEVICES)).toEqual(ids);
  });

  it.each([
    ['pci-0000-3b-00-0', ['mlx5_0']],
    ['pci-0000-3B-02-6', ['mlx5_3']],
    ['pci-10000-01-00-0', ['mlx5_9']],
    ['pci-0000-99-00-0', []],
    ['ib0', ['mlx5_0']],
    ['eth5', ['mlx5_4']],
    ['net-mv2gqx3jnz2a', ['rxe0']],
    ['NET-MV2GQX3JNZ2A', []],
    ['eth_int', []],
    ['net-mv2gqorq', ['rxe1']],
    ['net-', []],
    ['', []],
    ['0', []],
  ])('of a DRANET claim for %j names %j', (name, ids) => {
    const claim = { name: 'rdma', namespace: 'ml', driver: 'dra.net', pool: 'node-1', device: name };
    expect(resolve({ resource: 'dra.net', deviceId: `node-1/${name}`, claim }, DEVICES)).toEqual(ids);
  });
});

describe('the name that DRANET gives to an interface', () => {
  it.each([
    ['eth0', 'eth0'],
    ['my-device-1', 'my-device-1'],
    ['eth:0', 'net-mv2gqorq'],
    ['ETH0', 'net-ivkeqma'],
    ['eth_int', 'net-mv2gqx3jnz2a'],
    ['-a', 'net-fvqq'],
    ['ünï', 'net-yo6g5q5p'],
  ])('%j is %j', (netdev, name) => {
    expect(dranetName(netdev)).toBe(name);
  });
});

describe('access', () => {
  it('gives the character devices of the function and of the connection manager', () => {
    const machine = probeCase('mlx5-every-counter');
    try {
      expect(family.access?.(reportOf(machine.collect(), 'mlx5_0').device)).toEqual({
        deviceNodes: ['uverbs0', 'umad0', 'issm0', 'rdma_cm'].map((name) => ({ path: `/dev/infiniband/${name}`, permissions: 'rw' })),
        env: { 'PCIDEVICE_{RESOURCE}': '0000:18:00.0' },
      });
    } finally {
      machine.remove();
    }
  });

  it('gives nothing for a device without any', () => {
    expect(family.access?.(device({ id: 'mlx5_0' }))).toEqual({ deviceNodes: [] });
  });
});
