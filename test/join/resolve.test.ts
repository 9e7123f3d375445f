import { describe, expect, it } from 'vitest';
import { findOwners, Resolver } from '../../src/join/resolve.ts';
import { podResourcesOptions } from '../../src/kubelet/options.ts';
import { allocationKey } from '../../src/model/allocation.ts';
import type { Device } from '../../src/model/device.ts';
import { allocation, device, podResources } from '../support/snapshots.ts';

const gpu = device({ family: 'gpu', id: 'GPU-a', aliases: ['0000:3b:00.0'] });
const hca0 = device({ family: 'ib', id: 'mlx5_0', aliases: ['0000:17:00.0'] });
const hca1 = device({ family: 'ib', id: 'mlx5_1', aliases: ['0000:18:00.0'] });
const none = { pools: [], families: new Map() };

describe('resolving an allocation', () => {
  it('finds a device by its id and by each alias, ignoring case', () => {
    const resolver = new Resolver([gpu, hca0], none);
    expect(resolver.resolve(allocation({ deviceId: 'gpu-A' })).devices).toEqual(['gpu/GPU-a']);
    expect(resolver.resolve(allocation({ deviceId: '0000:17:00.0' })).devices).toEqual(['ib/mlx5_0']);
    expect(resolver.resolve(allocation({ deviceId: '0000:99:00.0' })).devices).toEqual([]);
  });

  it('asks a family only when id and aliases do not match', () => {
    let asked = 0;
    const resolve = (): string[] => {
      asked++;
      return ['GPU-a'];
    };
    const resolver = new Resolver([gpu, hca0], { pools: [], families: new Map([['gpu', resolve]]) });
    expect(resolver.resolve(allocation({ deviceId: 'GPU-a' })).devices).toEqual(['gpu/GPU-a']);
    expect(asked).toBe(0);
    expect(resolver.resolve(allocation({ deviceId: 'GPU-a::3' })).devices).toEqual(['gpu/GPU-a']);
    expect(asked).toBe(1);
  });

  it('means the part when a part has the id of its whole, and both when a board has the name of its part', () => {
    const card = device({ family: 'amd', id: '0000:c1:00.0' });
    const partition = device({ family: 'amd', id: '0000:c1:00.0-xcp0', parent: card.id, aliases: [card.id] });
    const board = device({ family: 'fpga', id: '0010:21:00.0', aliases: ['dfl-port.0'] });
    const port = device({ family: 'fpga', id: '0010:21:00.0-port0', parent: board.id, aliases: ['dfl-port.0'] });
    const resolver = new Resolver([card, partition, board, port], none);
    expect(resolver.resolve(allocation({ deviceId: '0000:C1:00.0' })).devices).toEqual(['amd/0000:c1:00.0-xcp0']);
    expect(resolver.resolve(allocation({ deviceId: 'dfl-port.0' })).devices).toEqual(['fpga/0010:21:00.0', 'fpga/0010:21:00.0-port0']);
  });

  it('never treats a bare number as an index', () => {
    const indexed = device({ id: 'x', aliases: ['0'] });
    const resolver = new Resolver([indexed], { pools: [], families: new Map([['toy', () => ['x']]]) });
    expect(resolver.resolve(allocation({ deviceId: '0' })).devices).toEqual([]);
  });

  it('takes a number for an IOMMU group where a virtual machine has it, whatever the resource and the family are', () => {
    const away = device({ family: 'gaudi', id: '0000:19:00.0', characterDevices: ['/dev/vfio/vfio', '/dev/vfio/42'] });
    const vf = device({
      family: 'netdev',
      id: '0000:8a:05.0',
      parent: '0000:8a:00.0',
      characterDevices: ['/dev/vfio/43', '/dev/vfio/vfio'],
    });
    const resolver = new Resolver([gpu, away, vf], none);
    const machine = { pod: 'virt-launcher-vm1-x7', container: 'compute', resource: 'intel.com/gaudi' };
    expect(['42', '43', '4', '7'].map((deviceId) => resolver.resolve(allocation({ ...machine, deviceId })).devices)).toEqual([
      ['gaudi/0000:19:00.0'],
      ['netdev/0000:8a:05.0'],
      [],
      [],
    ]);
    for (const other of [{ pod: 'trainer' }, { container: 'guest-console-log' }])
      expect(resolver.resolve(allocation({ ...machine, ...other, deviceId: '42' })).devices).toEqual([]);
  });

  it('gives a configured pool its devices, by pattern and alias, for any id of that resource alone', () => {
    const resolver = new Resolver([gpu, hca0, hca1], { pools: [{ resource: 'rdma/shared', devices: ['mlx5_*'] }], families: new Map() });
    expect(resolver.resolve(allocation({ resource: 'rdma/shared', deviceId: '0' })).devices).toEqual(['ib/mlx5_0', 'ib/mlx5_1']);
    expect(resolver.resolve(allocation({ resource: 'rdma/other', deviceId: '0' })).devices).toEqual([]);
  });

  it.each([
    'devices.kubevirt.io/kvm',
    'devices.kubevirt.io/tun',
    'devices.kubevirt.io/vhost-net',
    'smarter-devices/fuse',
    'vpc.amazonaws.com/pod-eni',
  ])('knows that %s is no hardware, and that a device of this name is', (resource) => {
    const rules = { ...none, withoutHardware: podResourcesOptions['without-hardware'].default };
    const { allocations } = findOwners(
      podResources([allocation({ resource, deviceId: 'kvm-17' })]),
      new Resolver([gpu], rules),
      () => false,
    );
    expect(allocations).toHaveLength(1);
    expect(allocations[0]).not.toHaveProperty('unresolved');
    const named = device({ family: 'own', id: 'kvm-17' });
    expect(new Resolver([named], rules).resolve(allocation({ resource, deviceId: 'kvm-17' }))).toEqual({
      devices: ['own/kvm-17'],
      ambiguous: false,
    });
    expect(new Resolver([gpu], rules).resolve(allocation({ resource: 'nvidia.com/gpu', deviceId: 'kvm-17' }))).not.toHaveProperty(
      'isDeviceless',
    );
  });

  it('finds the device of a replica that is no longer served, in any form of its id', () => {
    const resolver = new Resolver([gpu, hca0], none);
    expect(resolver.resolve(allocation({ deviceId: 'mlx5_0::1' })).devices).toEqual(['ib/mlx5_0']);
    expect(resolver.resolve(allocation({ deviceId: '0000:17:00.0::12' })).devices).toEqual(['ib/mlx5_0']);
    expect(resolver.resolve(allocation({ deviceId: '0::1' })).devices).toEqual([]);
    expect(resolver.resolve(allocation({ deviceId: 'mlx5_9::1' })).devices).toEqual([]);
  });

  it('treats pattern characters other than the star as text', () => {
    const resolver = new Resolver([device({ id: 'a.b' }), device({ id: 'axb' })], {
      pools: [{ resource: 'r/x', devices: ['a.b'] }],
      families: new Map(),
    });
    expect(resolver.resolve(allocation({ resource: 'r/x', deviceId: '1' })).devices).toEqual(['toy/a.b']);
  });
});

describe('finding owners', () => {
  it('assigns an id that two families claim to neither', () => {
    const twin = device({ family: 'other', id: 'twin', aliases: ['0000:3b:00.0'] });
    const claimed = allocation({ deviceId: '0000:3b:00.0' });
    const owners = findOwners(podResources([claimed]), new Resolver([gpu, twin], none), () => false);
    expect(owners.allocations).toEqual([
      { allocation: claimed, devices: [], candidates: ['gpu/GPU-a', 'other/twin'], unresolved: 'ambiguous', held: false },
    ]);
    expect(owners.holders.size).toBe(0);
  });

  it('keeps an allocation that no family knows, with the reason', () => {
    const unknown = allocation({ deviceId: 'tpu-7' });
    const owners = findOwners(podResources([unknown]), new Resolver([gpu], none), () => false);
    expect(owners.allocations[0]).toMatchObject({ devices: [], unresolved: 'no-device' });
  });

  it('says of a claim for a part whether its device has no parts, or some of which nothing tells the one that is meant', () => {
    const whole = device({ family: 'gpu', id: 'GPU-0', minor: 0 });
    const part = device({ family: 'gpu', id: 'MIG-1', parent: 'GPU-0', kind: 'mig' });
    const claimNames = new Map([
      ['gpu', ({ parent, minor }: Device) => (parent === undefined ? [{ driver: 'gpu.example', device: `gpu-${minor}` }] : [])],
    ]);
    const claimed = (name: string, driver = 'gpu.example') =>
      allocation({ deviceId: `node/${name}`, resource: driver, claim: { name: 'c', namespace: 'n', driver, pool: 'node', device: name } });
    const [of] = [claimed('gpu-0-mig-1g10gb-19-0')];
    const stateOf = (devices: readonly Device[], one = of) =>
      findOwners(podResources([one]), new Resolver(devices, { ...none, claimNames }), () => false).allocations[0];
    expect(stateOf([whole])).toMatchObject({ devices: [], unresolved: 'no-part', whole: 'gpu/GPU-0' });
    expect(stateOf([whole, part])).toMatchObject({ devices: [], unresolved: 'unknown-part', whole: 'gpu/GPU-0' });
    expect(stateOf([whole], claimed('gpu-01-mig-1g10gb-19-0'))).toMatchObject({ unresolved: 'no-device' });
    expect(stateOf([whole], claimed('gpu-0-mig-1g10gb-19-0', 'other.example'))).toMatchObject({ unresolved: 'no-device' });
    expect(findOwners(podResources([of]), new Resolver([whole], { ...none, claimNames }), () => false).holders.size).toBe(0);
  });

  it('reports that the device of an allocation is missing, and keeps the holder', () => {
    const lost = allocation({ deviceId: 'GPU-a' });
    const owners = findOwners(podResources([lost]), new Resolver([gpu], none), () => true);
    expect(owners.allocations[0]).toMatchObject({ devices: ['gpu/GPU-a'], unresolved: 'missing-device' });
    expect(owners.holders.get('gpu/GPU-a')).toEqual([lost]);
  });

  it('marks allocations that are kept over a restart of the kubelet', () => {
    const kept = allocation({ deviceId: 'GPU-a' });
    const answer = podResources([kept, allocation({ deviceId: 'mlx5_0' })], { held: new Set([allocationKey(kept)]) });
    const owners = findOwners(answer, new Resolver([gpu, hca0], none), () => false);
    expect(owners.allocations.map((state) => state.held)).toEqual([true, false]);
  });

  it('joins ten thousand allocations with a thousand devices', () => {
    const devices = Array.from({ length: 1000 }, (_, n) => device({ id: `d-${n}` }));
    const allocations = Array.from({ length: 10_000 }, (_, n) => allocation({ deviceId: `d-${n % 1000}`, pod: `p-${n}` }));
    const owners = findOwners(podResources(allocations), new Resolver(devices, none), () => false);
    expect(owners.holders.get('toy/d-999')?.length).toBe(10);
  });
});
