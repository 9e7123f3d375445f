import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { StepGuard } from '../../../src/host/fs/step-guard.ts';
import { family } from '../../../src/probes/netdev/index.ts';
import { machineOf, type Probed, probeMachine, reportOf, valueIn } from './harness.ts';

const RECEIVED = 'device_received_bytes_total';
const PF = 'sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0';

/** Replaces the numbers of the functions in what the machine's `ip` prints. */
function print({ root }: Probed, functions: readonly (readonly [received: number, transmitted: number])[]): void {
  const lines = functions.flatMap(([received, transmitted], number) => [
    `    vf ${number}     link/ether 6e:cc:c3:fe:ad:7f brd ff:ff:ff:ff:ff:ff, spoof checking on, link-state auto, trust off`,
    '    RX: bytes  packets  mcast   bcast',
    `    ${received} 0 0 0`,
    '    TX: bytes  packets',
    `    ${transmitted} 0`,
  ]);
  const text = ['5: ens1f0: <UP> mtu 1500', '    link/ether b4:96:91:e5:c8:a9 brd ff:ff:ff:ff:ff:ff', ...lines].join('\n');
  writeFileSync(join(root, 'bin/ip'), `#!/bin/sh\ncat <<'EOF'\n${text}\nEOF\n`);
}

describe('counters that the kernel gives', () => {
  const received = async (probed: Probed, ms: number) => {
    const collection = await probed.at(ms);
    return ['0000:3b:10.0', '0000:3b:10.2'].map((id) => valueIn(reportOf(collection, id), RECEIVED));
  };
  /** The first function has an interface of its own with 500 bytes; the second has none. */
  const machine = () => probeMachine(machineOf('driver-that-counts-nothing'));

  it('are unknown while all are 0, and known from the first that is not', async () => {
    const probed = machine();
    expect(await received(probed, 0)).toEqual([500, undefined]);
    print(probed, [
      [700, 0],
      [0, 9],
    ]);
    expect(await received(probed, 10_000), 'the first function keeps its own interface').toEqual([500, 0]);
  });

  it('take the place of an interface that a container got', async () => {
    const probed = machine();
    await received(probed, 0);
    rmSync(join(probed.root, 'sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:10.0/net'), { recursive: true });
    expect(await received(probed, 10_000)).toEqual([undefined, undefined]);
    print(probed, [
      [700, 0],
      [0, 0],
    ]);
    expect(await received(probed, 20_000)).toEqual([700, 0]);
  });

  it('are unknown when all fall to 0, because the firmware did not answer', async () => {
    const probed = machine();
    rmSync(join(probed.root, 'sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:10.0/net'), { recursive: true });
    print(probed, [
      [700, 1],
      [30, 0],
    ]);
    expect(await received(probed, 0)).toEqual([700, 30]);
    print(probed, [
      [0, 0],
      [31, 0],
    ]);
    expect(await received(probed, 10_000)).toEqual([undefined, 31]);
    print(probed, [
      [4, 0],
      [31, 0],
    ]);
    expect(await received(probed, 20_000)).toEqual([4, 31]);
  });

  it('are unknown while the command fails, and never those of another source', async () => {
    const probed = machine();
    print(probed, [
      [700, 1],
      [30, 0],
    ]);
    expect(await received(probed, 0)).toEqual([700, 30]);
    writeFileSync(join(probed.root, 'bin/ip'), '#!/bin/sh\nexit 1\n');
    const collection = await probed.at(10_000);
    expect(valueIn(reportOf(collection, '0000:3b:10.2'), RECEIVED)).toBeUndefined();
    expect(collection.problems.map(({ code, device }) => [code, device])).toEqual([['ip-unusable', '0000:3b:00.0']]);
    expect(collection.listing).toBe('complete');
  });
});

describe('the probe', () => {
  it('finds functions at once when the administrator creates them', async () => {
    const probed = probeMachine(machineOf('ports-that-nobody-hands-out'));
    expect((await probed.at(0)).reports).toEqual([]);
    const port = join(probed.root, 'sys/devices/pci0000:00/0000:00:1c.0');
    mkdirSync(join(port, '0000:01:10.0'));
    writeFileSync(join(port, '0000:01:10.0/class'), '0x020000\n');
    symlinkSync('../0000:01:00.0', join(port, '0000:01:10.0/physfn'));
    symlinkSync('../0000:01:10.0', join(port, '0000:01:00.0/virtfn0'));
    symlinkSync('../../../devices/pci0000:00/0000:00:1c.0/0000:01:10.0', join(probed.root, 'sys/bus/pci/devices/0000:01:10.0'));
    const { reports, listing } = await probed.at(1_000);
    expect([reports.map(({ device }) => [device.id, device.kind, device.parent, device.vfIndex]), listing]).toEqual([
      [
        ['0000:01:00.0', 'pf', undefined, undefined],
        ['0000:01:10.0', 'vf', '0000:01:00.0', 0],
      ],
      'complete',
    ]);
  });

  it('keeps a card whose last function was taken away, because their number changes by way of 0', async () => {
    const probed = probeMachine(machineOf('functions-of-dpdk'));
    await probed.at(0);
    for (const [number, address] of ['0000:3b:01.0', '0000:3b:01.1'].entries()) {
      rmSync(join(probed.root, PF, `virtfn${number}`));
      rmSync(join(probed.root, 'sys/bus/pci/devices', address));
    }
    const collection = await probed.at(1_000);
    expect([collection.reports.map(({ device }) => [device.id, device.kind]), collection.listing]).toEqual([
      [
        ['0000:3b:00.0', 'pf'],
        ['0000:5e:00.0', 'function'],
      ],
      'complete',
    ]);
    expect(valueIn(reportOf(collection, '0000:3b:00.0'), 'device_netdev_virtual_functions')).toBe(0);
    rmSync(join(probed.root, 'sys/bus/pci/devices/0000:3b:00.0'));
    expect((await probed.at(2_000)).reports.map(({ device }) => device.id)).toEqual(['0000:5e:00.0']);
  });

  it('names the node of VFIO, which is another one on a machine without an IOMMU', async () => {
    const probed = probeMachine(machineOf('functions-of-dpdk'));
    const groups = join(probed.root, 'sys/kernel/iommu_groups');
    mkdirSync(join(groups, '61'), { recursive: true });
    writeFileSync(join(groups, '61/name'), 'vfio-noiommu\n');
    const collection = await probed.at(0);
    const nodes = ['0000:3b:01.0', '0000:3b:01.1'].map((id) => reportOf(collection, id).device.characterDevices);
    expect(nodes).toEqual([
      ['/dev/vfio/60', '/dev/vfio/vfio'],
      ['/dev/vfio/noiommu-61', '/dev/vfio/vfio'],
    ]);
  });

  it('follows the link of a port, and asks for its speed again when it comes back', async () => {
    const probed = probeMachine(machineOf('functions-of-dpdk'));
    const write = (file: string, text: string): void => writeFileSync(join(probed.root, PF, 'net/ens1f0', file), `${text}\n`);
    const linkOf = async (ms: number) => {
      const report = reportOf(await probed.at(ms), '0000:3b:01.1');
      return [valueIn(report, 'device_link_up'), valueIn(report, 'device_link_speed_bytes_per_second')];
    };
    expect(await linkOf(0)).toEqual([1, 12_500_000_000]);
    write('carrier', '0');
    write('carrier_changes', '2');
    expect(await linkOf(1_000)).toEqual([0, undefined]);
    write('carrier', '1');
    write('carrier_changes', '3');
    write('speed', '25000');
    expect(await linkOf(2_000)).toEqual([1, 3_125_000_000]);
  });

  it('reads an interface at once under another name', async () => {
    const probed = probeMachine(machineOf('driver-that-counts-nothing'));
    await probed.at(0);
    renameSync(join(probed.root, PF, 'net/ens1f0'), join(probed.root, PF, 'net/uplink'));
    writeFileSync(join(probed.root, PF, 'net/uplink/carrier'), '0\n');
    const { read } = reportOf(await probed.at(10_000), '0000:3b:00.0');
    expect(read?.findings.find(({ type }) => type === 'PortDown')).toMatchObject({ level: false });
  });

  it('reads no file of an interface that hangs, and leaves the card and its functions unread', async () => {
    const guard = new StepGuard();
    const probed = probeMachine(machineOf('functions-of-dpdk'), {}, guard);
    await probed.at(0);
    guard.leftOut = [join(probed.root, 'sys/bus/pci/devices/0000:3b:00.0')];
    const { reports, problems } = await probed.at(10_000);
    expect(reports.map(({ device, read }) => [device.id, read !== undefined])).toEqual([
      ['0000:3b:00.0', false],
      ['0000:3b:01.0', false],
      ['0000:3b:01.1', false],
      ['0000:5e:00.0', true],
    ]);
    expect(problems.map(({ code, device }) => [code, device])).toEqual([['interface-hangs', '0000:3b:00.0']]);
  });

  it('asks netlink for a real interface only, and says that it is another one', async () => {
    const probed = probeMachine(machineOf('functions-of-dpdk'), { source: 'netlink' });
    const { problems } = await probed.at(0);
    expect(problems).toEqual([
      {
        code: 'other-network-namespace',
        message: 'the network namespace of the agent does not have the interface ens1f0',
        device: '0000:3b:00.0',
      },
    ]);
  });

  it('needs no interface and no driver', async () => {
    const probed = probeMachine(machineOf('functions-of-dpdk'));
    await probed.at(0);
    renameSync(join(probed.root, PF, 'net'), join(probed.root, PF, 'net-of-a-container'));
    const { reports, listing } = await probed.at(61_000);
    expect([reports.length, listing]).toEqual([4, 'complete']);
    expect(valueIn(reportOf({ reports, problems: [], listing }, '0000:3b:01.0'), 'device_link_up')).toBeUndefined();
  });
});

describe('the family', () => {
  const isPresent = (name: string, options = {}): boolean | undefined => {
    const { host } = probeMachine(machineOf(name));
    return family.isPresent?.(host, { all: false, ...options } as never);
  };

  it.each([
    ['flooded-functions-that-drop', true],
    ['functions-of-dpdk', true],
    ['functions-with-rdma-devices', true],
    ['every-function-on-demand', false],
    ['ports-that-nobody-hands-out', false],
    ['no-hardware', false],
  ])('on the machine %s is there: %s', (name, there) => {
    expect(isPresent(name)).toBe(there);
  });

  it('is there when all functions are wanted', () => {
    expect(isPresent('every-function-on-demand', { all: true })).toBe(true);
  });
});
