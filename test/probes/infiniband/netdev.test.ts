import { afterEach, describe, expect, it } from 'vitest';
import { PORT, type Probed, probeMachine, reportOf, smallMachine } from './harness.ts';

const NET = 'sys/devices/pci0000:17/0000:18:00.0/net';

const machines: Probed[] = [];
afterEach(() => {
  for (const machine of machines.splice(0)) machine.remove();
});

/** Returns the interface name of port 1 for a function with these interfaces (name to `phys_port_name`). */
function netdevOf(interfaces: Readonly<Record<string, string | undefined>>): string | undefined {
  const files = Object.entries(interfaces).flatMap(([name, portName]) => [
    [`${NET}/${name}/dev_port`, '0\n'],
    ...(portName === undefined ? [] : [[`${NET}/${name}/phys_port_name`, `${portName}\n`]]),
  ]);
  const machine = probeMachine(
    smallMachine(
      { [`${PORT}/link_layer`]: 'Ethernet\n', ...Object.fromEntries(files) },
      { links: { 'sys/devices/pci0000:17/0000:18:00.0/infiniband/mlx5_0/device': '../..' } },
    ),
  );
  machines.push(machine);
  return reportOf(machine.collect(), 'mlx5_0').device.netdevs?.join();
}

describe('the network interface of a port', () => {
  it('is the uplink among the representors of virtual and scalable functions', () => {
    expect(netdevOf({ eth2: 'p0', eth3: 'pf0vf0', eth4: 'pf0vf1', eth5: 'c1pf0vf3', eth6: 'pf0sf88' })).toBe('eth2');
    expect(netdevOf({ enp24s0f0np0: 'p0', enp24s0f0npf0vf0: 'pf0vf0' })).toBe('enp24s0f0np0');
  });

  it('is the one without a port name when an older driver names only the representors, by number', () => {
    expect(netdevOf({ ens1f0: undefined, ens1f0_0: '0', ens1f0_1: '1' })).toBe('ens1f0');
  });

  it('is unknown when two interfaces match', () => {
    expect(netdevOf({ eth0: undefined, eth1: undefined })).toBeUndefined();
    expect(netdevOf({ eth0: 'pf0vf0', eth1: 'pf0vf1' })).toBeUndefined();
  });
});
