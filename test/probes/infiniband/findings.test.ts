import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Finding } from '../../../src/model/health.ts';
import { family as infiniband } from '../../../src/probes/infiniband/index.ts';
import { DEVICE, findingIn, machineKeeper, PORT, type Probed, probeCase, probeMachine, reportOf, smallMachine } from './harness.ts';

const FUNCTION = 'sys/devices/pci0000:17/0000:18:00.0';
const keep = machineKeeper();

function write(machine: Probed, path: string, text: string): void {
  writeFileSync(join(machine.root, path), text);
}

function find(machine: Probed, type: string, instance?: string, id = 'mlx5_0'): Finding | undefined {
  return findingIn(reportOf(machine.collect(), id), type, instance);
}

describe('a port that goes down', () => {
  it('is down after it was up, and then up again', () => {
    const machine = keep(probeMachine(smallMachine()));
    expect(find(machine, 'PortDown', '1')).toMatchObject({ level: true, reason: 'LinkUp' });
    write(machine, `${PORT}/state`, '1: DOWN\n');
    write(machine, `${PORT}/phys_state`, '2: Polling\n');
    expect(find(machine, 'PortDown', '1')).toMatchObject({ level: false, atLeast: true, reason: 'LinkPolling' });
    write(machine, `${PORT}/phys_state`, '3: Disabled\n');
    expect(find(machine, 'PortDown', '1')).toMatchObject({ level: false, atLeast: true, reason: 'PortDisabled', remedy: 'enable-port' });
    write(machine, `${PORT}/state`, '4: ACTIVE\n');
    write(machine, `${PORT}/phys_state`, '5: LinkUp\n');
    expect(find(machine, 'PortDown', '1')).toMatchObject({ level: true, reason: 'LinkUp' });
    expect(find(machine, 'PortDown', '1')).not.toHaveProperty('remedy');
  });

  it.each([
    ['1: Sleep', 'LinkDown', 'inspect'],
    ['2: Polling', 'LinkPolling', undefined],
    ['3: Disabled', 'PortDisabled', 'enable-port'],
    ['4: PortConfigurationTraining', 'LinkDown', undefined],
    ['5: LinkUp', 'LinkDown', 'inspect'],
    ['6: LinkErrorRecovery', 'LinkDown', undefined],
    ['7: Phy Test', 'LinkDown', 'inspect'],
    ['what a newer kernel says', 'LinkDown', undefined],
  ])('asks for a look at the cable only where a cable can be to blame: %s', (physicalState, reason, remedy) => {
    const machine = keep(probeMachine(smallMachine({ [`${PORT}/state`]: '1: DOWN\n', [`${PORT}/phys_state`]: `${physicalState}\n` })));
    const finding = find(machine, 'PortDown', '1');
    expect(finding).toMatchObject({ level: false, reason });
    expect(finding?.remedy, 'undefined is the one that the condition declares').toBe(remedy);
    expect(infiniband.conditions.find(({ type }) => type === 'PortDown')?.remedy).toBe('check-cable');
  });

  it('of RoCE differs from a port without a carrier by its network interface', () => {
    const net = `${FUNCTION}/net/eth2`;
    const machine = keep(
      probeMachine(
        smallMachine(
          { [`${PORT}/link_layer`]: 'Ethernet\n', [`${net}/dev_port`]: '0\n', [`${net}/flags`]: '0x1003\n' },
          {
            links: {
              [`${FUNCTION}/infiniband/mlx5_0/device`]: '../..',
              'sys/class/net/eth2': `../../devices/pci0000:17/0000:18:00.0/net/eth2`,
            },
          },
        ),
      ),
    );
    expect(find(machine, 'PortDown', '1')).toMatchObject({ level: true, message: 'port 1 is active, physical state link_up' });
    write(machine, `${PORT}/state`, '1: DOWN\n');
    write(machine, `${PORT}/phys_state`, '3: Disabled\n');
    const pulled = find(machine, 'PortDown', '1');
    expect(pulled).toMatchObject({
      level: false,
      reason: 'LinkDown',
      message: 'port 1 is down, physical state disabled; its network interface eth2 is up and has no carrier',
    });
    expect(pulled).not.toHaveProperty('remedy');
    write(machine, `${net}/flags`, '0x1002\n');
    expect(find(machine, 'PortDown', '1'), 'seen although the port says the same as before').toMatchObject({
      reason: 'PortDisabled',
      remedy: 'enable-port',
      message: 'port 1 is down, physical state disabled; its network interface eth2 is down',
    });
    rmSync(join(machine.root, `${net}/flags`));
    expect(find(machine, 'PortDown', '1')).toMatchObject({
      reason: 'PortDisabled',
      remedy: 'inspect',
      message: 'port 1 is down, physical state disabled',
    });
  });

  it('is unknown, not healthy, while its state cannot be read', () => {
    const machine = keep(probeMachine(smallMachine()));
    machine.collect();
    write(machine, `${PORT}/state`, 'garbage\n');
    expect(find(machine, 'PortDown', '1')).toMatchObject({ status: 'unknown', reason: 'StateUnreadable' });
    expect(machine.collect().problems).toMatchObject([{ code: 'state-unreadable', device: 'mlx5_0' }]);
    write(machine, `${PORT}/state`, '4: ACTIVE\n');
    expect(find(machine, 'PortDown', '1')).toMatchObject({ level: true });
    expect(machine.collect().problems).toEqual([]);
  });

  it('is no fault when it was never up, unless it is expected to be', () => {
    const down = smallMachine({ [`${PORT}/state`]: '1: DOWN\n', [`${PORT}/phys_state`]: '2: Polling\n' });
    const told = (options: Readonly<Record<string, string>>) => find(keep(probeMachine(down, options)), 'PortDown', '1');
    expect(told({})).toMatchObject({ level: false, atLeast: false, reason: 'LinkPolling' });
    expect(told({ 'expected-ports': 'mlx5_*:1' })).toMatchObject({ level: false, atLeast: true });
    expect(told({ 'expected-ports': 'mlx5_0:2,mlx4_*:1' })).toMatchObject({ level: false, atLeast: false });
  });

  it('makes its virtual functions fail, and is the only cause for them', () => {
    const machine = keep(probeCase('pf-with-four-vfs'));
    const pf = 'sys/devices/pci0000:3a/0000:3a:01.0/0000:3b:00.0/infiniband/mlx5_0/ports/1';
    const vf = 'sys/devices/pci0000:3a/0000:3a:01.0/0000:3b:00.1/infiniband/mlx5_1/ports/1';
    for (const id of ['mlx5_0', 'mlx5_1', 'mlx5_4']) expect(find(machine, 'PortDown', '1', id), id).toMatchObject({ level: true });
    write(machine, `${vf}/state`, '1: DOWN\n');
    expect(find(machine, 'PortDown', '1', 'mlx5_1'), 'not configured').toMatchObject({ level: true });
    write(machine, `${pf}/state`, '1: DOWN\n');
    expect(find(machine, 'PortDown', '1', 'mlx5_0')).toMatchObject({ level: false, atLeast: true, reason: 'LinkDown' });
    for (const id of ['mlx5_1', 'mlx5_2', 'mlx5_3', 'mlx5_4'])
      expect(find(machine, 'PortDown', '1', id), id).toMatchObject({ level: false, atLeast: true, reason: 'ParentPortDown' });
  });

  it('gives no finding for a virtual function whose physical function is not visible', () => {
    const machine = keep(probeCase('pf-with-four-vfs', { exclude: 'mlx5_0' }));
    expect(find(machine, 'PortDown', '1', 'mlx5_1')).toBeUndefined();
  });
});

describe('a port that waits for a subnet manager', () => {
  it.each([
    ['2: INIT', '0x0', true, 'NoSubnetManager'],
    ['3: ARMED', '0x1', true, 'NotConfigured'],
    ['4: ACTIVE', '0x1', false, 'NotConfigured'],
  ])('in %s with sm_lid %s: %s', (state, smLid, status, reason) => {
    const machine = keep(probeMachine(smallMachine({ [`${PORT}/state`]: state, [`${PORT}/sm_lid`]: smLid })));
    for (const type of ['PortInitializing', 'PortNotActivated']) expect(find(machine, type, '1')).toMatchObject({ status, reason });
  });

  it('is not an iWARP port, which waits for an address', () => {
    const files = { [`${PORT}/link_layer`]: 'Ethernet', [`${PORT}/state`]: '2: INIT', [`${PORT}/sm_lid`]: '0x0' };
    const machine = keep(probeMachine(smallMachine(files)));
    expect(find(machine, 'PortInitializing', '1')).toMatchObject({ status: true, reason: 'NotConfigured', remedy: 'inspect' });
  });

  it('is not one without a link', () => {
    const machine = keep(probeMachine(smallMachine({ [`${PORT}/state`]: '2: INIT', [`${PORT}/phys_state`]: '2: Polling' })));
    expect(find(machine, 'PortInitializing', '1')).toMatchObject({ status: false });
  });
});

describe('a port that is slower than it was', () => {
  it('reports its rate for the policy to compare, and ignores the placeholder rate while it is down', () => {
    const machine = keep(probeMachine(smallMachine()));
    expect(find(machine, 'RateDegraded', '1')).toMatchObject({ level: 400 });
    write(machine, `${PORT}/rate`, '200 Gb/sec (2X NDR)\n');
    expect(find(machine, 'RateDegraded', '1')).toMatchObject({ level: 200, message: 'port 1 runs at 200 Gb/s (2X NDR)' });
    expect(find(machine, 'RateDegraded', '1')).not.toHaveProperty('status');
    write(machine, `${PORT}/state`, '1: DOWN\n');
    write(machine, `${PORT}/rate`, '10 Gb/sec (4X SDR)\n');
    expect(find(machine, 'RateDegraded', '1')).toBeUndefined();
    write(machine, `${PORT}/state`, '4: ACTIVE\n');
    write(machine, `${PORT}/rate`, '400 Gb/sec (4X NDR)\n');
    expect(find(machine, 'RateDegraded', '1')).toMatchObject({ level: 400 });
  });
});

describe('a port that reports a rate while it is down', () => {
  it('is not judged by that rate', () => {
    const machine = keep(probeMachine(smallMachine({ [`${PORT}/state`]: '1: DOWN\n' })));
    expect(find(machine, 'RateDegraded', '1')).toBeUndefined();
    write(machine, `${PORT}/state`, '4: ACTIVE\n');
    write(machine, `${PORT}/rate`, '200 Gb/sec (2X NDR)\n');
    expect(find(machine, 'RateDegraded', '1')).toMatchObject({ level: 200 });
  });
});

describe('counters', () => {
  it('go to the policy with their value and their ceiling', () => {
    const machine = keep(probeCase('mlx5-every-counter'));
    expect(find(machine, 'LinkFlapping', '1')).toMatchObject({ count: 3, ceiling: 255 });
    expect(find(machine, 'SymbolErrors', '1')).toMatchObject({ count: 1, ceiling: 65_535 });
    expect(find(machine, 'LinkErrorRecovery', '1')).toMatchObject({ count: 2, ceiling: 255 });
    expect(find(machine, 'LocalLinkIntegrity', '1')).toMatchObject({ count: 10, ceiling: 15 });
    expect(find(machine, 'BufferOverrun', '1')).toMatchObject({ count: 11, ceiling: 15 });
    expect(find(machine, 'TransportRetriesExceeded', '1')).toMatchObject({ count: 38 });
    expect(find(machine, 'LinkFlapping', '1/observed')).toMatchObject({ status: false, reason: 'CounterTells' });
  });

  it('that stopped at their ceiling are replaced by the link losses that the probe observed', () => {
    const machine = keep(probeMachine(smallMachine({ [`${PORT}/counters/link_downed`]: '255\n' })));
    expect(find(machine, 'LinkFlapping', '1/observed')).toMatchObject({ count: 0 });
    for (let round = 0; round < 3; round += 1) {
      write(machine, `${PORT}/state`, '1: DOWN\n');
      machine.collect();
      machine.collect();
      write(machine, `${PORT}/state`, '4: ACTIVE\n');
      machine.collect();
    }
    expect(find(machine, 'LinkFlapping', '1/observed')).toMatchObject({ count: 3, reason: 'PortLost' });
    expect(find(machine, 'LinkFlapping', '1')).toMatchObject({ count: 255, ceiling: 255 });
  });

  it('that cannot be read are reported, but are no fault', () => {
    expect(find(keep(probeCase('bnxt-re-counters-einval')), 'CountersUnreadable', '1', 'bnxt_re0')).toMatchObject({ status: true });
    expect(find(keep(probeCase('iwarp-no-performance-management')), 'CountersUnreadable', '1', 'i40iw0')).toMatchObject({ status: true });
    expect(find(keep(probeCase('every-way-a-counter-file-fails')), 'CountersUnreadable', '1')).toMatchObject({ status: false });
    expect(find(keep(probeCase('efa-traffic-in-hw-counters')), 'CountersUnreadable', '1', 'rdmap0s29')).toBeUndefined();
  });
});

describe('a character device', () => {
  it('that is missing while the port is up is a fault', () => {
    expect(find(keep(probeCase('sf-on-auxiliary-bus')), 'CharDeviceMissing', undefined, 'mlx5_4')).toMatchObject({
      status: true,
      reason: 'UverbsNodeMissing',
    });
    expect(find(keep(probeCase('mlx5-every-counter')), 'CharDeviceMissing')).toMatchObject({ status: false });
  });

  it('is not judged when /dev/infiniband cannot be listed', () => {
    const uverbs = { 'sys/class/infiniband_verbs/uverbs0/ibdev': 'mlx5_0\n' };
    const probe = keep(probeMachine(smallMachine(uverbs)));
    expect(find(probe, 'CharDeviceMissing')).toMatchObject({ status: 'unknown', reason: 'NodesHidden' });
    expect(probe.collect().problems.map(({ code }) => code)).toEqual(['nodes-hidden']);
    expect(keep(probeMachine(smallMachine())).collect().problems).toEqual([]);
  });
});

describe('a PCI function', () => {
  it('whose configuration reads as all ones is no longer on the bus', () => {
    const machine = keep(probeMachine(smallMachine({ [`${FUNCTION}/power_state`]: 'D0\n' })));
    const config = join(machine.root, FUNCTION, 'config');
    writeFileSync(config, Buffer.alloc(64, 0x15));
    expect(find(machine, 'PciFunctionGone')).toMatchObject({ status: false });
    writeFileSync(config, Buffer.alloc(64, 0xff));
    machine.clock.nowMs = 29_999;
    expect(find(machine, 'PciFunctionGone'), 'asked every half minute').toMatchObject({ status: false });
    machine.clock.nowMs = 30_000;
    expect(find(machine, 'PciFunctionGone')).toMatchObject({ status: true, reason: 'ConfigurationAllOnes' });
    writeFileSync(config, Buffer.alloc(64, 0x15));
    expect(find(machine, 'PciFunctionGone'), 'asked each time while it is gone').toMatchObject({ status: false });
  });

  it('with half its lanes is degraded, one at the slot’s limit is not', () => {
    const machine = keep(probeCase('mlx5-every-counter'));
    expect(find(machine, 'PcieLinkDegraded', 'width')).toMatchObject({ status: true, message: 'PCIe link x8, x16 is possible' });
    expect(find(machine, 'PcieLinkDegraded', 'speed')).toMatchObject({ status: false, severity: 'info' });
  });

  it('reports AER errors, without those of harmless probing', () => {
    const machine = keep(probeCase('mlx5-every-counter'));
    expect(find(machine, 'AerFatal')).toMatchObject({ count: 0 });
    expect(find(machine, 'AerNonfatal')).toMatchObject({ count: 1 });
    expect(find(machine, 'AerCorrectable')).toMatchObject({ count: 8 });
  });
});

describe('a device', () => {
  it('whose ports cannot be read is unreachable', () => {
    const machine = keep(
      probeMachine({ ...smallMachine(), links: { ...smallMachine().links, [`${DEVICE}/ports/2/state`]: '/sys/class/net/lo/speed' } }),
    );
    expect(find(machine, 'DeviceUnreachable'), 'one port answers').toMatchObject({ status: false });
    const mute = smallMachine();
    const { [`${PORT}/state`]: _state, ...files } = mute.files ?? {};
    const other = keep(probeMachine({ ...mute, files, links: { ...mute.links, [`${PORT}/state`]: '/sys/class/net/lo/speed' } }));
    expect(find(other, 'DeviceUnreachable')).toMatchObject({ status: true, reason: 'StateUnreadable' });
  });
});
