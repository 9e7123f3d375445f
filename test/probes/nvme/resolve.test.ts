import { afterEach, describe, expect, it } from 'vitest';
import { Resolver } from '../../../src/join/resolve.ts';
import { family } from '../../../src/probes/nvme/index.ts';
import { devicesOf, emptyMachine, type ProbedMachine, simulatedMachine } from './harness.ts';

const FIRST = '0050:10:00.0';
const DISK = 'eui.36524e5a000000000025384500000001';

let machine: ProbedMachine;
afterEach(() => machine.end());

const resolved = (deviceId: string, more: object = {}): readonly string[] => {
  const devices = devicesOf(machine.collect());
  const families = new Map([['nvme', family.resolve as never]]);
  const allocation = { namespace: 'a', pod: 'b', container: 'c', resource: 'example.com/drive', deviceId, numaNodes: [], ...more };
  return new Resolver(devices, { pools: [], families }).resolve(allocation as never).devices;
};

describe('an id of a plugin', () => {
  it.each([
    ['/dev/nvme0n1', DISK],
    ['nvme0n1', DISK],
    [DISK, DISK],
    [DISK.toUpperCase(), DISK],
    [`/dev/disk/by-id/nvme-${DISK}`, DISK],
    ['/dev/disk/by-id/nvme-SAMSUNG_MZQL23T8HCLS-00A07_S64FNE0R100000', DISK],
    ['nvme-SAMSUNG_MZQL23T8HCLS-00A07_S64FNE0R100000_1', DISK],
    [`/dev/disk/by-path/pci-${FIRST}-nvme-1`, DISK],
    ['/dev/nvme0', FIRST],
    ['nvme0', FIRST],
    [FIRST, FIRST],
    ['00000050:10:00.0', FIRST],
  ])('%s names one device', (id, device) => {
    machine = simulatedMachine(2);
    expect(resolved(id)).toEqual([`nvme/${device}`]);
  });

  it.each(['/dev/nvme0n1p1', 'nvme7', '0050:10:00', '0', '', '/dev/', '/dev/sda', 'nvme'])('%s names none', (id) => {
    machine = simulatedMachine(2);
    expect(resolved(id)).toEqual([]);
  });

  it('of a claim is not guessed', () => {
    machine = simulatedMachine(1);
    const claim = { name: 'x', namespace: 'a', driver: 'drives.example.com', pool: 'node', device: 'drive-0' };
    expect(resolved('node/drive-0', { claim })).toEqual([]);
  });
});

describe('the nodes of a device', () => {
  it('are those of the namespace, and for a controller those of all its namespaces', () => {
    machine = simulatedMachine(1);
    machine.write('sys/class/nvme-generic/ng0n1/dev', '240:0\n');
    const nodes = devicesOf(machine.collect()).map((device) => family.access?.(device).deviceNodes.map(({ path }) => path));
    expect(nodes).toEqual([
      ['/dev/nvme0', '/dev/nvme0n1', '/dev/ng0n1'],
      ['/dev/nvme0n1', '/dev/ng0n1'],
    ]);
  });

  it('are names of a namespace that udev writes, with blanks and unusual characters replaced', () => {
    machine = emptyMachine();
    machine.write('sys/class/nvme/nvme0/state', 'live\n');
    machine.write('sys/class/nvme/nvme0/address', '0000:01:00.0\n');
    machine.write('sys/class/nvme/nvme0/model', 'Odd  Drive (2 TB)\u0000\u0000\n');
    machine.write('sys/class/nvme/nvme0/serial', 'S/1\n');
    machine.write('sys/class/nvme/nvme0/nvme0n2/nsid', '2\n');
    expect(devicesOf(machine.collect())[1]?.aliases).toEqual(['nvme0n2', 'nvme-Odd_Drive__2_TB__S_1_2', 'pci-0000:01:00.0-nvme-2']);
  });
});
