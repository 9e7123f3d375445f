import { describe, expect, it } from 'vitest';
import type { Claim } from '../../../src/model/allocation.ts';
import type { Device } from '../../../src/model/device.ts';
import { resolve } from '../../../src/probes/nvidia/devices.ts';

const A = 'GPU-0000000a-0000-4000-8000-000000000000';
const B = 'GPU-0000000b-0000-4000-8000-000000000000';
const SPLIT = 'MIG-0000000b-0000-5000-8000-000000000001';
const OTHER = 'MIG-0000000b-0000-5000-8000-000000000002';

/** The minors are not the indexes: the first GPU in PCI order is /dev/nvidia3. */
const devices: readonly Device[] = [
  gpu(A, '0000:3b:00.0', '3'),
  gpu(B, '0008:01:00.0', '0'),
  instance(SPLIT, '1', '0', '1g.10gb+me'),
  instance(OTHER, '2', '0', '3g.40gb'),
];

function gpu(id: string, pciAddress: string, minor: string): Device {
  const printed = `0000${pciAddress}`.toUpperCase().toLowerCase();
  return { family: 'nvidia', id, kind: 'gpu', aliases: [pciAddress, printed], pciAddress, uuid: id, minor: Number(minor) };
}

function instance(id: string, gpuInstance: string, computeInstance: string, profile: string): Device {
  return {
    family: 'nvidia',
    id,
    kind: 'mig',
    parent: B,
    aliases: [`MIG-${B}/${gpuInstance}/${computeInstance}`],
    minor: 0,
    gpuInstance: Number(gpuInstance),
    computeInstance: Number(computeInstance),
    profile: profile,
  };
}

const ids = (resource: string, deviceId: string): readonly string[] => resolve({ resource, deviceId }, devices);

describe('an id of a device plugin', () => {
  it.each<[string, string, string, readonly string[]]>([
    ['a whole GPU', 'nvidia.com/gpu', A, [A]],
    ['a renamed resource', 'nvidia.com/a100-80gb', A, [A]],
    ['a resource of another vendor’s plugin', 'example.com/gpu', A, [A]],
    ['in other case', 'nvidia.com/gpu', A.toUpperCase(), [A]],
    ['a replica of time slicing', 'nvidia.com/gpu.shared', `${A}::7`, [A]],
    ['a replica with a large number', 'nvidia.com/gpu', `${B}::11`, [B]],
    ['a MIG instance, strategy mixed', 'nvidia.com/mig-1g.10gb.me', SPLIT, [SPLIT]],
    ['one with all media engines', 'nvidia.com/mig-1g.24gb.me.all', SPLIT, [SPLIT]],
    ['one without media engines', 'nvidia.com/mig-1g.12gb-me', SPLIT, [SPLIT]],
    ['one with graphics', 'nvidia.com/mig-1g.24gb.gfx', SPLIT, [SPLIT]],
    ['a replica of one with all media engines', 'nvidia.com/mig-1g.24gb.me.all.shared', `${OTHER}::0`, [OTHER]],
    ['a MIG instance, strategy single', 'nvidia.com/gpu', OTHER, [OTHER]],
    ['a replica of a MIG instance', 'nvidia.com/mig-3g.40gb.shared', `${OTHER}::0`, [OTHER]],
    ['a MIG instance of a driver before 470', 'nvidia.com/mig-1g.10gb', `MIG-${B}/1/0`, [SPLIT]],
    ['a replica of one', 'nvidia.com/mig-1g.10gb', `MIG-${B}/2/0::1`, [OTHER]],
    ['GKE, by minor', 'nvidia.com/gpu', 'nvidia3', [A]],
    ['GKE, the other minor', 'nvidia.com/gpu', 'nvidia0', [B]],
    ['GKE, time sharing', 'nvidia.com/gpu', 'nvidia3/vgpu2', [A]],
    ['GKE, MIG', 'nvidia.com/gpu', 'nvidia0/gi1', [SPLIT]],
    ['GKE, MIG and time sharing', 'nvidia.com/gpu', 'nvidia0/gi2/vgpu4', [OTHER]],
    ['WSL', 'nvidia.com/gpu', 'all', [A, B]],
    ['a PCI address of sysfs', 'nvidia.com/GH100_H100_SXM5_80GB', '0000:3b:00.0', [A]],
    ['a PCI address of NVML', 'nvidia.com/gpu', '00000000:3B:00.0', [A]],
    ['a PCI address without domain', 'nvidia.com/gpu', '3b:00.0', [A]],
    ['a PCI address in a domain', 'nvidia.com/gpu', '00000008:01:00.0', [B]],

    ['an instance of a lost GPU, which has none', 'nvidia.com/gpu', `MIG-${A}/1/0`, [A]],
    ['a GPU that is not there', 'nvidia.com/gpu', 'GPU-0000000c-0000-4000-8000-000000000000', []],
    ['an instance that is not there', 'nvidia.com/gpu', `MIG-${B}/9/0`, []],
    ['a minor that is not there', 'nvidia.com/gpu', 'nvidia7', []],
    ['a GPU instance that is not there', 'nvidia.com/gpu', 'nvidia0/gi7', []],
    ['an instance of a GPU without any', 'nvidia.com/gpu', 'nvidia3/gi1', []],
    ['all of another resource', 'example.com/things', 'all', []],
    ['tegra beside other GPUs', 'nvidia.com/gpu', 'tegra', []],
    ['a bare number', 'nvidia.com/pgpu', '12', []],
    ['an mdev UUID', 'nvidia.com/GRID_T4-4Q', '0000000a-0000-4000-8000-000000000000', []],
    ['another function of the board', 'nvidia.com/gpu', '0000:3b:00.1', []],
    ['nothing', 'nvidia.com/gpu', '', []],
    ['a suffix alone', 'nvidia.com/gpu', '::0', []],
    ['a name with the UUID in it', 'nvidia.com/gpu', `x${A}`, []],
  ])('%s: %s %s', (_, resource, deviceId, expected) => {
    expect(ids(resource, deviceId)).toEqual(expected);
  });

  it('resolves to the only GPU of a Jetson', () => {
    expect(resolve({ resource: 'nvidia.com/gpu', deviceId: 'tegra' }, devices.slice(0, 1))).toEqual([A]);
  });
});

describe('a device of a resource claim', () => {
  const claimed = (device: string, driver = 'gpu.nvidia.com'): readonly string[] => {
    const claim: Claim = { name: 'c', namespace: 'n', driver, pool: 'node-1', device };
    return resolve({ resource: driver, deviceId: `node-1/${device}`, claim }, devices);
  };

  it.each<[string, readonly string[]]>([
    ['gpu-3', [A]],
    ['gpu-0', [B]],
    ['gpu-0-mig-1g10gbme-20-4', []],
    ['gpu-1', []],
    ['gpu-vfio-0', []],
    ['channel-1', []],
  ])('%s', (device, expected) => {
    expect(claimed(device)).toEqual(expected);
  });

  it('of another driver does not resolve, whatever its name', () => {
    expect(claimed('channel-3', 'compute-domain.nvidia.com')).toEqual([]);
    expect(claimed('gpu-3', 'gpu.example.com')).toEqual([]);
  });
});
