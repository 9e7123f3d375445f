import { describe, expect, it } from 'vitest';
import { Resolver } from '../../../src/join/resolve.ts';
import { family, resolve } from '../../../src/probes/fpga/index.ts';
import { probeMachine } from './harness.ts';

const devices = ['n3000-bare-zeros', 'port-on-virtual-function', 'alveo-u250-in-use', 'zynqmp-manager-only'].flatMap((name) => {
  const { machine, collect } = probeMachine(name);
  const found = collect().reports.map(({ device }) => device);
  machine.remove();
  // On one machine the class numbers are unique.
  return name === 'port-on-virtual-function'
    ? found.map((device) => ({
        ...device,
        aliases: device.aliases.map((alias) => alias.replace(/\d+$/, (digit) => `${Number(digit) + 3}`)),
      }))
    : found;
});

const ids = (deviceId: string, resource = 'vendor.com/kind'): readonly string[] => [...resolve({ resource, deviceId }, devices)];

describe('device ids of plugins', () => {
  it.each([
    ['dfl-port.0', ['0000:05:00.0', '0000:05:00.0-port0']],
    ['/dev/dfl-port.0', ['0000:05:00.0', '0000:05:00.0-port0']],
    ['dfl-fme.0', ['0000:05:00.0']],
    ['dfl-port.4', ['0000:3b:00.1-port1']],
    ['dfl-port.3', ['0000:3b:00.0-port0']],
    ['dfl-port.99', []],
    ['0000:05:00.0', ['0000:05:00.0']],
    ['05:00.0', ['0000:05:00.0']],
    ['00000000:B3:00.1', ['0000:b3:00.1']],
    ['0000:b3:00.1-0', ['0000:b3:00.1']],
    ['0000:b3:00.1-17', ['0000:b3:00.1']],
    ['0000:b3:00.1--2', ['0000:b3:00.1']],
    ['0000:b3:00.0', ['0000:b3:00.1']],
    ['pci-0000-b3-00-1', ['0000:b3:00.1']],
    ['0000:3b:00.1', ['0000:3b:00.1-port1']],
    ['0000:3b:00.0', ['0000:3b:00.0']],
    ['fpga0', ['firmware:zynqmp-firmware:pcap']],
    ['0', []],
    ['5', []],
    ['-1', []],
    ['', []],
    ['0000:b3:00', []],
    ['mlx5_0', []],
    ['GPU-4cf8db2d-06c0-7d70-1a51-e59b25b2c16c', []],
  ])('%j names %j', (id, expected) => expect(ids(id)).toEqual(expected));

  it('of claims name the device behind the pool', () => {
    const claim = { name: 'c', namespace: 'n', driver: 'd', pool: 'node', device: 'dfl-port.4' };
    expect(resolve({ resource: 'd', deviceId: 'node/dfl-port.4', claim }, devices)).toEqual(['0000:3b:00.1-port1']);
  });

  it('are found the same way by the join', () => {
    const resolver = new Resolver(devices, {
      pools: [],
      families: new Map([['fpga', family.resolve as NonNullable<typeof family.resolve>]]),
    });
    const find = (deviceId: string): readonly string[] =>
      resolver.resolve({ namespace: 'n', pod: 'p', container: 'c', resource: 'amd.com/x', deviceId, numaNodes: [] }).devices;
    expect(find('B3:00.1-4')).toEqual(['fpga/0000:b3:00.1']);
    expect(find('dfl-port.0')).toEqual(['fpga/0000:05:00.0', 'fpga/0000:05:00.0-port0']);
    expect(find('3')).toEqual([]);
  });
});
