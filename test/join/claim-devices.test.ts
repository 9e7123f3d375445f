import { describe, expect, it } from 'vitest';
import { ProblemLog } from '../../src/agent/log-lines.ts';
import { findOwners, type ResolveRules, Resolver } from '../../src/join/resolve.ts';
import { podResourcesOptions } from '../../src/kubelet/options.ts';
import { createChangeLog } from '../../src/log/changes.ts';
import { createLogger } from '../../src/log/logger.ts';
import type { Allocation, Claim } from '../../src/model/allocation.ts';
import { type ClaimHardware, claimDeviceKey } from '../../src/model/claim-hardware.ts';
import type { Device } from '../../src/model/device.ts';
import type { AllocationState, Snapshot } from '../../src/model/snapshot.ts';
import { resolve as nvidiaNames } from '../../src/probes/nvidia/devices.ts';
import { family as nvidia } from '../../src/probes/nvidia/index.ts';
import { ClaimTree, claimOf } from '../kubelet/claims/claim-tree.ts';
import { allocation, device, podResources } from '../support/snapshots.ts';

const COMMON = ['/dev/nvidiactl', '/dev/nvidia-uvm'];
const gpu = (minor: number): Device =>
  device({
    family: 'nvidia',
    id: `GPU-${minor}`,
    uuid: `GPU-${minor}`,
    kind: 'gpu',
    minor,
    pciAddress: `0000:3${minor}:00.0`,
    characterDevices: [...COMMON, `/dev/nvidia${minor}`],
  });
const mig = (parent: Device, instance: number): Device => ({
  ...parent,
  id: `MIG-${parent.minor}-${instance}`,
  uuid: `MIG-${parent.minor}-${instance}`,
  kind: 'mig',
  parent: parent.id,
  characterDevices: [...(parent.characterDevices ?? []), `/dev/nvidia-caps/nvidia-cap${(parent.minor ?? 0) * 10 + instance}`],
});
const hca = device({
  family: 'infiniband',
  id: 'mlx5_0',
  pciAddress: '0000:17:00.0',
  netdevs: ['eth5'],
  characterDevices: ['/dev/infiniband/rdma_cm', '/dev/infiniband/uverbs0'],
});
const hca1 = device({
  family: 'infiniband',
  id: 'mlx5_1',
  pciAddress: '0000:18:00.0',
  netdevs: ['eth6'],
  characterDevices: ['/dev/infiniband/rdma_cm', '/dev/infiniband/uverbs1'],
});
const sf = device({ family: 'infiniband', id: 'mlx5_2', kind: 'sf', sfNumber: 7, pciAddress: '0000:18:00.0' });
const gpu0 = gpu(0);
const gpu1 = gpu(1);
const DEVICES = [gpu0, gpu1, mig(gpu1, 1), mig(gpu1, 2), hca, hca1, sf];

const claimed = (part: Partial<Claim> = {}): Allocation & { claim: Claim } => {
  const claim: Claim = { name: 'c', namespace: 'ml', driver: 'gpu.nvidia.com', pool: 'node', device: 'x', ...part };
  return { ...allocation({ resource: claim.driver, deviceId: `${claim.pool}/${claim.device}` }), claim };
};

function owned(claim: Partial<Claim>, hardware: readonly ClaimHardware[], rules: Partial<ResolveRules> = {}): AllocationState {
  const one = claimed(claim);
  const claims = new Map([[claimDeviceKey(one.claim), hardware]]);
  const resolver = new Resolver(DEVICES, {
    pools: [],
    families: new Map([['nvidia', nvidiaNames]]),
    claims,
    withoutHardware: [...podResourcesOptions['without-hardware'].default, ...(nvidia.withoutHardware ?? [])],
    ...rules,
  });
  return findOwners(podResources([one]), resolver, () => false).allocations[0] as AllocationState;
}

const devicesOf = (...hardware: readonly ClaimHardware[]): readonly string[] => owned({}, hardware).devices;
const metadata = (part: Omit<ClaimHardware, 'by'>): ClaimHardware => ({ by: 'metadata', ...part });
const cdi = (...deviceNodes: readonly string[]): ClaimHardware => ({ by: 'cdi', deviceNodes });
const part = { isPartition: true } as const;

describe('metadata of a driver', () => {
  it.each([
    ['the PCI address', { pciAddress: '0000:30:00.0' }, ['nvidia/GPU-0']],
    ['the UUID, in any case', { uuid: 'gpu-0' }, ['nvidia/GPU-0']],
    ['both', { uuid: 'GPU-0', pciAddress: '0000:30:00.0' }, ['nvidia/GPU-0']],
    ['a UUID and the address of another device', { uuid: 'GPU-0', pciAddress: '0000:31:00.0' }, []],
    ['a UUID that no device has, at the address of one that has another', { uuid: 'GPU-9', pciAddress: '0000:30:00.0' }, []],
    ['a UUID where the probe knows none', { uuid: 'serial-1', pciAddress: '0000:17:00.0' }, ['infiniband/mlx5_0']],
    ['the UUID of an instance', { ...part, uuid: 'MIG-1-2', pciAddress: '0000:31:00.0' }, ['nvidia/MIG-1-2']],
    ['an instance that is not known yet', { ...part, uuid: 'MIG-1-3', pciAddress: '0000:31:00.0' }, []],
    ['an instance without a UUID', { ...part, pciAddress: '0000:31:00.0' }, []],
    ['the whole of a device with instances', { pciAddress: '0000:31:00.0' }, ['nvidia/GPU-1']],
    ['an address that a scalable function shares', { pciAddress: '0000:18:00.0' }, ['infiniband/mlx5_1']],
    ['the network interface', { interfaceName: 'eth6' }, ['infiniband/mlx5_1']],
    ['an unknown network interface', { interfaceName: 'eth9' }, []],
  ] as const)('names hardware by %s', (_, hardware, expected) => {
    expect(devicesOf(metadata(hardware))).toEqual(expected);
  });
});

describe('device nodes of CDI specs', () => {
  it.each([
    ['the node of a GPU, with nodes that all share', ['/dev/nvidia0', ...COMMON, '/dev/dri/renderD128'], ['nvidia/GPU-0']],
    ['only nodes that all share', COMMON, []],
    ['nodes of two devices', ['/dev/nvidia0', '/dev/nvidia1'], []],
    ['one node of several', ['/dev/infiniband/uverbs1'], ['infiniband/mlx5_1']],
    ['a shared node beside it', ['/dev/infiniband/uverbs1', '/dev/infiniband/rdma_cm'], ['infiniband/mlx5_1']],
    ['the whole GPU', ['/dev/nvidia1', ...COMMON], ['nvidia/GPU-1']],
    ['nodes that nobody knows', ['/dev/tpu0'], []],
  ])('name hardware by %s', (_, nodes, expected) => {
    expect(devicesOf(cdi(...nodes))).toEqual(expected);
  });

  it('name nothing by a shared node where there is only one device', () => {
    const one = claimed();
    const claims = new Map([[claimDeviceKey(one.claim), [cdi('/dev/nvidiactl', '/dev/nvidia-caps-imex-channels/channel0')]]]);
    expect(new Resolver([gpu0], { pools: [], families: new Map(), claims }).resolve(one).devices).toEqual([]);
  });

  it('name an instance by its own node, and never its GPU', () => {
    const all = [...COMMON, '/dev/nvidia1', '/dev/nvidia-caps/nvidia-cap12'];
    expect(devicesOf({ ...cdi(...all), ...part })).toEqual(['nvidia/MIG-1-2']);
    expect(devicesOf({ ...cdi(...COMMON, '/dev/nvidia1', '/dev/nvidia-caps/nvidia-cap19'), ...part })).toEqual([]);
  });

  it('name hardware by the PCI address of the node', () => {
    expect(devicesOf({ ...cdi('/dev/vfio/12'), pciAddress: '0000:17:00.0' })).toEqual(['infiniband/mlx5_0']);
    expect(devicesOf({ ...cdi('/dev/nvidia0'), pciAddress: '0000:31:00.0' })).toEqual(['nvidia/GPU-1']);
  });
});

/** An A100 with two compute instances in one GPU instance, and an instance alone. */
const a100 = gpu(5);
const inA100 = (id: string, ...caps: readonly number[]): Device => ({
  ...mig(a100, 0),
  id,
  uuid: id,
  characterDevices: [...(a100.characterDevices ?? []), ...caps.map(capOf)],
});
const capOf = (cap: number): string => `/dev/nvidia-caps/nvidia-cap${cap}`;
const SPLIT = [a100, inA100('MIG-3-0', 30, 31), inA100('MIG-3-1', 30, 32), inA100('MIG-9-0', 84, 85)];

function joinedWith(nodes: readonly string[], more: Partial<ResolveRules> = {}, devices: readonly Device[] = SPLIT): readonly string[] {
  const one = claimed({ device: 'gpu-5' });
  const claims = new Map([
    [claimDeviceKey(one.claim), [{ ...cdi(...nodes), isPartition: nodes.some((node) => node.includes('caps')) } as ClaimHardware]],
  ]);
  return new Resolver(devices, { pools: [], families: new Map([['nvidia', nvidiaNames]]), claims, ...more }).resolve(one).devices;
}

describe('nodes of an instance', () => {
  it.each([
    ['with those of its GPU', ['/dev/nvidia5', capOf(84), capOf(85)], ['nvidia/MIG-9-0']],
    ['alone', [capOf(84), capOf(85)], ['nvidia/MIG-9-0']],
    ['one of two in a GPU instance', [capOf(30), capOf(32)], ['nvidia/MIG-3-1']],
    ['with those of another GPU', ['/dev/nvidia6', capOf(84), capOf(85)], []],
    ['the GPU instance alone', [capOf(30)], []],
    ['a compute instance that is not known', ['/dev/nvidia5', capOf(30), capOf(33)], []],
  ])('%s', (_, nodes, expected) => {
    expect(joinedWith(nodes, { families: new Map() })).toEqual(expected);
  });
});

describe('a name or a rule', () => {
  const all = { pools: [{ resource: 'gpu.nvidia.com', devices: ['MIG-*'] }], families: new Map() };

  it('gives no instance that the nodes exclude', () => {
    expect(joinedWith(['/dev/nvidia5', capOf(66), capOf(67)], all)).toEqual([]);
    expect(joinedWith([capOf(30), capOf(33)], all)).toEqual([]);
    expect(joinedWith(['/dev/dri/renderD128'], all)).toHaveLength(3);
  });

  it('gives no GPU whose nodes or address differ', () => {
    expect(joinedWith(['/dev/nvidia6'])).toEqual([]);
    expect(joinedWith(['/dev/nvidia5', capOf(66), capOf(67)])).toEqual([]);
    expect(joinedWith(['/dev/dri/renderD128'])).toEqual(['nvidia/GPU-5']);
  });
});

describe('a device that is missing', () => {
  const again = inA100('MIG-again', 84, 85);
  const node = ['/dev/nvidia5', capOf(84), capOf(85)];
  const missing = (...ids: readonly string[]): Partial<ResolveRules> => ({
    sightOf: (key) => ({ isMissing: ids.some((id) => key === `nvidia/${id}`), firstMs: 1, lastMs: 2 }),
  });

  it('gives its nodes to the one that was made after it', () => {
    expect(joinedWith(node, missing('MIG-9-0'), [...SPLIT, again])).toEqual(['nvidia/MIG-again']);
  });

  it('gives its place to the one that replaced it', () => {
    const other = { ...a100, id: 'GPU-other', uuid: 'GPU-other' };
    expect(joinedWith(['/dev/nvidia5'], missing('GPU-5'), [a100, other])).toEqual(['nvidia/GPU-other']);
    expect(joinedWith([], missing('GPU-5'), [a100, other])).toEqual(['nvidia/GPU-other']);
    expect(joinedWith(['/dev/nvidia5'], missing('GPU-5'))).toEqual(['nvidia/GPU-5']);
  });
});

describe('the times of an instance and of a claim', () => {
  const at = (firstMs: number | undefined, lastMs: number | undefined, claim: readonly [number, number], isMissing = false) => ({
    sightOf: () => ({ isMissing, firstMs, lastMs }),
    claimTimes: new Map([[claimDeviceKey(claimed({ device: 'gpu-5' }).claim), { firstMs: claim[0], lastMs: claim[1] }]]),
  });

  it.each([
    ['both were seen with the other', at(10, 20, [15, 16]), ['nvidia/MIG-9-0']],
    ['the instance was last read before the claim was seen', at(10, 20, [21, 30]), []],
    ['the instance was first seen after the last read of the claim', at(10, 20, [5, 9]), []],
    ['an instance that this run has not read', at(undefined, undefined, [5, 9]), []],
    ['an instance that is gone, of a claim that had it', at(10, 20, [15, 30], true), ['nvidia/MIG-9-0']],
    ['an instance that is gone, of a later claim', at(10, 20, [25, 30], true), []],
  ] as const)('%s', (_, times, expected) => {
    expect(joinedWith(['/dev/nvidia5', capOf(84), capOf(85)], { ...times, families: new Map() })).toEqual(expected);
  });

  it('tell when another read of the claim would decide', () => {
    const one = claimed({ device: 'gpu-5' });
    const claims = new Map([[claimDeviceKey(one.claim), [{ ...cdi(capOf(84), capOf(85)), isPartition: true } as ClaimHardware]]]);
    const resolver = new Resolver(SPLIT, { pools: [], families: new Map(), claims, ...at(10, 20, [5, 9]) });
    expect(findOwners(podResources([one]), resolver, () => false)).toMatchObject({ unconfirmedMs: 10 });
  });
});

describe('the order of the ways', () => {
  const rule = { pools: [{ resource: 'gpu.nvidia.com', devices: ['mlx5_1'] }] };
  const gpuName = { device: 'gpu-1' };

  it('is metadata, CDI, name, rule, and the state tells which', () => {
    const all = [metadata({ uuid: 'GPU-0' }), cdi('/dev/infiniband/uverbs0')];
    expect(owned(gpuName, all, rule)).toMatchObject({ devices: ['nvidia/GPU-0'], by: 'metadata' });
    expect(owned(gpuName, all.slice(1), rule)).toMatchObject({ devices: ['infiniband/mlx5_0'], by: 'cdi' });
    expect(owned(gpuName, [], rule)).toMatchObject({ devices: ['nvidia/GPU-1'], by: 'name' });
    expect(owned({}, [], rule)).toMatchObject({ devices: ['infiniband/mlx5_1'], by: 'rule' });
    expect(owned({}, [])).toMatchObject({ devices: [], unresolved: 'no-device' });
  });

  it('asks no other way when metadata names hardware that no probe finds', () => {
    expect(owned(gpuName, [metadata({ pciAddress: '0000:99:00.0' })])).toMatchObject({ devices: [], unresolved: 'no-device' });
  });

  it('has no contradiction when a pool contains the device', () => {
    const pool = { pools: [{ resource: 'gpu.nvidia.com', devices: ['GPU-*'] }] };
    expect(owned({}, [metadata({ uuid: 'GPU-0' })], pool)).not.toHaveProperty('contradiction');
  });

  it('is told once in the log when two ways disagree', () => {
    const lines: string[] = [];
    const logger = createLogger({ level: 'info', format: 'text' }, { write: (line) => lines.push(line) });
    const log = new ProblemLog(createChangeLog(logger), []);
    const one = owned({}, [metadata({ uuid: 'GPU-0' }), cdi('/dev/nvidia1')]);
    const snapshot = (allocations: readonly AllocationState[]): Snapshot =>
      ({ families: [], podResources: podResources([]), allocations }) as unknown as Snapshot;
    for (let round = 0; round < 3; round++) log.update(snapshot([one, { ...one, allocation: { ...one.allocation, pod: 'other' } }]));
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(/different hardware.*metadata says nvidia\/GPU-0; cdi says nvidia\/GPU-1/);
    log.update(snapshot([]));
    expect(lines).toHaveLength(2);
  });
});

describe('a node whose driver writes no metadata', () => {
  const ofNode = { driver: 'gpu.nvidia.com', pool: 'node' };
  const specOf = (minor: number, name: string): string =>
    JSON.stringify({
      cdiVersion: '0.6.0',
      kind: 'k8s.gpu.nvidia.com/claim',
      containerEdits: { deviceNodes: COMMON.map((path) => ({ path })) },
      devices: [{ name, containerEdits: { deviceNodes: [{ path: `/dev/nvidia${minor}` }] } }],
    });

  it('joins claims by the CDI specs of the driver, and by names without them', async () => {
    const tree = new ClaimTree();
    tree.write('run-cdi/k8s.gpu.nvidia.com-claim_uid-1.json', specOf(1, 'uid-1-gpu-1'));
    const claim = claimOf({ ...ofNode, device: 'gpu-1', cdiDevices: ['k8s.gpu.nvidia.com/claim=uid-1-gpu-1'] });
    expect(owned(claim, await tree.of(claim))).toMatchObject({ devices: ['nvidia/GPU-1'], by: 'cdi' });
    const unspecified = claimOf({ ...ofNode, device: 'gpu-0' });
    expect(owned(unspecified, await tree.of(unspecified))).toMatchObject({ devices: ['nvidia/GPU-0'], by: 'name' });
    const unknown = claimOf({ ...ofNode, device: 'accelerator-a' });
    expect(owned(unknown, await tree.of(unknown))).toMatchObject({ devices: [], unresolved: 'no-device' });
  });

  it('takes the spec, not the name, when the driver numbers its devices anew', async () => {
    const tree = new ClaimTree();
    tree.write('run-cdi/k8s.gpu.nvidia.com-claim_uid-1.json', specOf(1, 'uid-1-gpu-0'));
    const claim = claimOf({ ...ofNode, device: 'gpu-0', cdiDevices: ['k8s.gpu.nvidia.com/claim=uid-1-gpu-0'] });
    expect(owned(claim, await tree.of(claim))).toMatchObject({ devices: ['nvidia/GPU-1'], by: 'cdi' });
  });
});

describe('claims for something that is no device', () => {
  it.each([
    ['CPUs', 'dra.cpu', []],
    ['memory', 'dra.memory', []],
    ['channels and daemons of a compute domain', 'compute-domain.nvidia.com', []],
    ['something that metadata names no hardware for', 'other.example.com', [metadata({})]],
  ] as const)('of %s raise no alarm', (_, driver, hardware) => {
    expect(owned({ driver }, hardware)).toMatchObject({ devices: [] });
    expect(owned({ driver }, hardware)).not.toHaveProperty('unresolved');
  });

  it('do raise one when CDI nodes are given that no probe knows', () => {
    expect(owned({ driver: 'other.example.com' }, [metadata({}), cdi('/dev/tpu0')])).toMatchObject({ unresolved: 'no-device' });
  });
});
