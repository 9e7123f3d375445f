import { describe, expect, it } from 'vitest';
import { Resolver } from '../../../src/join/resolve.ts';
import type { Allocation } from '../../../src/model/allocation.ts';
import type { Device } from '../../../src/model/device.ts';
import { family } from '../../../src/probes/amdgpu/index.ts';

const gpu = (address: string, nodes: readonly string[]): Device => ({
  family: 'amdgpu',
  id: address,
  kind: 'gpu',
  aliases: [],
  pciAddress: address,
  characterDevices: nodes,
});
const partition = (parent: string, number: number, alias: string, nodes: readonly string[]): Device => ({
  ...gpu(parent, nodes),
  id: `${parent}-xcp${number}`,
  kind: 'partition',
  aliases: [alias],
  parent,
});

const DEVICES: readonly Device[] = [
  gpu('0000:19:00.0', ['/dev/kfd', '/dev/dri/card1', '/dev/dri/renderD128']),
  gpu('0000:05:00.0', []),
  partition('0000:05:00.0', 0, '0000:05:00.0', ['/dev/kfd', '/dev/dri/card2', '/dev/dri/renderD129']),
  partition('0000:05:00.0', 1, 'amdgpu_xcp_30', ['/dev/kfd', '/dev/dri/card3', '/dev/dri/renderD130']),
];

const resolver = new Resolver(DEVICES, { pools: [], families: new Map([['amdgpu', family.resolve as never]]) });
const resolved = (deviceId: string, claim?: Partial<Allocation['claim']>): readonly string[] =>
  resolver
    .resolve({
      namespace: 'n',
      pod: 'p',
      container: 'c',
      resource: 'amd.com/gpu',
      deviceId,
      numaNodes: [],
      ...(claim === undefined ? {} : { claim: { name: 'c', namespace: 'n', driver: 'gpu.amd.com', pool: 'node', device: '', ...claim } }),
    })
    .devices.map((key) => key.replace('amdgpu/', ''));

describe('ids of device plugins', () => {
  it.each([
    ['0000:19:00.0', ['0000:19:00.0']],
    ['00000000:19:00.0', ['0000:19:00.0']],
    ['0000:05:00.0', ['0000:05:00.0-xcp0']],
    ['00000000:05:00.0', ['0000:05:00.0-xcp0']],
    ['amdgpu_xcp_30', ['0000:05:00.0-xcp1']],
    ['/dev/dri/renderD130', ['0000:05:00.0-xcp1']],
    ['card1', ['0000:19:00.0']],
    ['amdgpu_xcp_31', []],
    ['0000:05:00', []],
    ['0', []],
    ['renderD1', []],
  ])('%s is %j', (id, expected) => {
    expect(resolved(id)).toEqual(expected);
  });
});

describe('names of the DRA driver', () => {
  it.each([
    ['gpu-1-128', 'gpu.amd.com', ['0000:19:00.0']],
    ['gpu-3-130', 'gpu.amd.com', ['0000:05:00.0-xcp1']],
    ['gpu-1-129', 'gpu.amd.com', []],
    ['gpu-1-128', 'gpu.example.com', []],
  ])('%s of %s is %j', (device, driver, expected) => {
    expect(resolved(`node/${device}`, { device, driver })).toEqual(expected);
  });

  it('are what claimNames gives, and a card with partitions has none', () => {
    expect(DEVICES.map((device) => family.claimNames?.(device).map((name) => name.device))).toEqual([
      ['gpu-1-128'],
      [],
      ['gpu-2-129'],
      ['gpu-3-130'],
    ]);
  });
});

describe('access', () => {
  it('gives the compute node and the nodes of the GPU, for reading and writing', () => {
    expect(family.access?.(DEVICES[0] as Device)).toEqual({
      deviceNodes: ['/dev/kfd', '/dev/dri/card1', '/dev/dri/renderD128'].map((path) => ({ path, permissions: 'rw' })),
    });
  });
});
