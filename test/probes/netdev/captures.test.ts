import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseIpText } from '../../../src/probes/netdev/link-source.ts';
import { areThere, skipped } from '../../support/captures.ts';
import type { MachineFile } from '../../support/machine.ts';
import { capture, machineOf, probeMachine, reportOf, SRIOV, valueIn } from './harness.ts';

describe.skipIf(!areThere)(`an Intel adapter with four functions${skipped}`, () => {
  const PF = 'sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.1/net/ens1f1';
  const golden = machineOf('flooded-functions-that-drop');
  const text = join(SRIOV, 'intel-pf-4vf/ip_-s_-d_link.txt');
  /** The golden machine with the captured text as output of the command ip, and its figures of the port in the files of the kernel. */
  const machine: MachineFile = {
    ...golden,
    files: {
      ...golden.files,
      'bin/ip': `#!/bin/sh\ncat '${text}'\n`,
      [`${PF}/address`]: 'b4:96:91:e5:c8:a9\n',
      [`${PF}/statistics/rx_bytes`]: '17496609\n',
      [`${PF}/statistics/rx_packets`]: '257835\n',
      [`${PF}/statistics/rx_dropped`]: '67\n',
      [`${PF}/statistics/multicast`]: '792\n',
    },
  };

  it.each([0, 1, 2, 3])('gives each expected figure of function %i', async (number) => {
    const report = reportOf(await probeMachine(machine).at(0), `0000:3b:0a.${number}`);
    const value = (name: string, labels = {}) => valueIn(report, `device_${name}_total`, labels);
    expect({
      bytes: [value('received_bytes'), value('transmitted_bytes')],
      packets: [value('received_packets'), value('transmitted_packets')],
      flooded: [value('netdev_received_multicast_packets'), value('netdev_received_broadcast_packets')],
      dropped: ['receive', 'transmit'].map((direction) => value('netdev_dropped_packets', { direction })),
    }).toEqual({ bytes: [14_069_717, 0], packets: [192_865, 0], flooded: [0, 192_865], dropped: [192_865, 0] });
  });

  it('gives each expected figure of the physical function', async () => {
    // The columns of ip are those of the files in /sys/class/net, which the agent reads.
    expect(readFileSync(text, 'utf8')).toMatch(/^ {4}17496609 +257835 +0 +67 +0 +792$/m);
    const report = reportOf(await probeMachine(machine).at(0), '0000:3b:00.1');
    const value = (name: string, labels = {}) => valueIn(report, `device_${name}_total`, labels);
    expect([
      value('received_bytes'),
      value('received_packets'),
      value('netdev_dropped_packets', { direction: 'receive' }),
      value('netdev_received_multicast_packets'),
    ]).toEqual([17_496_609, 257_835, 67, 792]);
  });
});

describe.skipIf(!areThere)(`an AMD adapter with RDMA devices${skipped}`, () => {
  const machine = machineOf('rdma-functions-on-demand');
  const counters = (path: string): ReadonlyMap<string, number> =>
    new Map([...capture(path).matchAll(/^\s+(\w+): (\d+)$/gm)].map(([, name, value]) => [name as string, Number(value)]));

  it('gives the counters of the function, and never those of the port', async () => {
    const expected = counters('amd-pollara/ethtool_S_enp132s0v0.txt');
    expect([expected.get('tx_packets'), expected.get('rx_bytes')]).toEqual([32_438, 310_422_278]);
    const report = reportOf(await probeMachine(machine).at(0), '0000:84:00.1');
    const values = ['received_bytes', 'received_packets', 'transmitted_bytes', 'transmitted_packets'];
    expect(values.map((name) => valueIn(report, `device_${name}_total`))).toEqual(
      ['rx_bytes', 'rx_packets', 'tx_bytes', 'tx_packets'].map((name) => expected.get(name)),
    );
    const ofPort = new Set(
      [...expected].filter(([name, value]) => /^(?:frames|octets)_/.test(name) && value > 1_000).map(([, value]) => value),
    );
    expect(ofPort).toContain(69_867_940_174);
    for (const { value } of report.read?.readings ?? []) expect(ofPort).not.toContain(value);
  });

  it('is left to the family of RDMA devices by default', async () => {
    const { reports } = await probeMachine(machine, { 'rdma-functions': 'false' }).at(0);
    expect(reports).toEqual([]);
  });

  it('printed settings of the function that the agent reads', () => {
    const [link] = parseIpText(capture('amd-pollara/ip_link_show_enp132s0.txt'));
    expect(link).toEqual({
      name: 'enp132s0',
      index: 23,
      hardwareAddress: '04:90:81:2a:2c:28',
      functions: [{ number: 0, settings: { spoofCheck: 0, trust: 0, linkState: 0 } }],
    });
  });
});
