import { describe, expect, it } from 'vitest';
import { Resolver } from '../../../src/join/resolve.ts';
import type { Device } from '../../../src/model/device.ts';
import { family } from '../../../src/probes/intelgpu/index.ts';

const gpu = (address: string, nodes: readonly string[], more: Partial<Device> = {}): Device => ({
  family: 'intelgpu',
  id: address,
  kind: 'gpu',
  aliases: [],
  pciAddress: address,
  pciDevice: '0xe20b',
  driver: 'xe',
  characterDevices: nodes,
  ...more,
});

const DEVICES: readonly Device[] = [
  gpu('0000:03:00.0', ['/dev/dri/card0', '/dev/dri/renderD128']),
  gpu('0000:04:00.0', ['/dev/dri/card10', '/dev/dri/renderD129']),
  gpu('0000:04:00.1', [], { kind: 'vf', parent: '0000:04:00.0', driver: 'xe-vfio-pci' }),
];

const resolver = new Resolver(DEVICES, { pools: [], families: new Map([['intelgpu', family.resolve as never]]) });

function resolved(
  deviceId: string,
  resource = 'gpu.intel.com/xe',
  claim?: { readonly driver: string; readonly device: string },
): readonly string[] {
  const whole = claim === undefined ? {} : { claim: { name: 'c', namespace: 'n', pool: 'node', ...claim } };
  const { devices } = resolver.resolve({ namespace: 'n', pod: 'p', container: 'c', resource, deviceId, numaNodes: [], ...whole });
  return devices.map((key) => key.replace('intelgpu/', ''));
}

describe('ids of device plugins', () => {
  it.each([
    ['card0-0', ['0000:03:00.0']],
    ['card0-7', ['0000:03:00.0']],
    ['card10-0', ['0000:04:00.0']],
    ['card1-0', []],
    ['card0', ['0000:03:00.0']],
    ['/dev/dri/renderD129', ['0000:04:00.0']],
    ['0000:04:00.1', ['0000:04:00.1']],
    ['00000000:03:00.0', ['0000:03:00.0']],
    ['card0-0-0', []],
    ['card-0', []],
    ['0', []],
  ])('%s is %j', (id, expected) => {
    expect(resolved(id)).toEqual(expected);
  });

  it.each(['gpu.intel.com/monitoring', 'gpu.intel.com/i915_monitoring', 'gpu.intel.com/xe_monitoring'])(
    'of %s are no GPUs, because a monitor holds none',
    (resource) => {
      expect(resolved('all', resource)).toEqual([]);
      expect(resolved('card0-0', resource)).toEqual([]);
    },
  );
});

describe('names in claims', () => {
  it.each([
    ['gpu.intel.com', '0000-03-00-0-0xe20b', ['0000:03:00.0']],
    ['gpu.intel.com', 'card10', ['0000:04:00.0']],
    ['gpu-vfio.intel.com', '0000-04-00-1-0xe20b', ['0000:04:00.1']],
    ['gpu.intel.com', '0000-03-00-0-0x0000', []],
    ['gpu.amd.com', 'card10', []],
  ])('of %s: %s is %j', (driver, device, expected) => {
    expect(resolved(`node/${device}`, driver, { driver, device })).toEqual(expected);
  });

  it('are the inverse of resolving', () => {
    for (const device of DEVICES) {
      const names = family.claimNames?.(device) ?? [];
      expect(names.length).toBeGreaterThan(0);
      for (const name of names) expect(resolved(`node/${name.device}`, name.driver, name)).toEqual([device.id]);
    }
  });

  it('begin with the address, and tell who takes the GPU into a virtual machine', () => {
    expect(DEVICES.map((device) => family.claimNames?.(device))).toEqual([
      [
        { driver: 'gpu.intel.com', device: '0000-03-00-0-0xe20b' },
        { driver: 'gpu.intel.com', device: 'card0' },
      ],
      [
        { driver: 'gpu.intel.com', device: '0000-04-00-0-0xe20b' },
        { driver: 'gpu.intel.com', device: 'card10' },
      ],
      [{ driver: 'gpu-vfio.intel.com', device: '0000-04-00-1-0xe20b' }],
    ]);
  });
});
