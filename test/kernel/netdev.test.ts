import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { seriesValue } from '../support/serve.ts';
import { injectErrors, MALFORMED_TLP } from './support/aer.ts';
import { findKernel } from './support/kernel-package.ts';
import { KernelMachine, readingsOf } from './support/machine.ts';

/**
 * Intel's 82576 behind a port of its own, with a wire to the emulator's network, where 10.0.2.2 answers. An IOMMU, so that `vfio-pci` takes
 * functions. It remaps no interrupts: the kernel then tests its timer, and stops when an emulated machine is too slow for the test.
 */
const DEVICES = [
  ...['-device', 'intel-iommu,intremap=off'],
  ...['-device', 'pcie-root-port,id=slot1,bus=pcie.0,chassis=1,slot=1,addr=0x5'],
  ...['-netdev', 'user,id=wire', '-device', 'igb,bus=slot1,id=card,netdev=wire'],
];
const PF = '0000:01:00.0';
const PORT = '0000:00:05.0';
const CONFIG = `
refresh: { interval: 500ms, timeout: 2m }
refresh: { facts: 0s }
health: { conditions: { netdev.PortDown: { for: 1s, recovery: 1s } } }`;
const PINGS = 20;
const PAYLOAD = 1_000;
/** Headers of Ethernet, IPv4 and ICMP. */
const FRAME = PAYLOAD + 14 + 20 + 8;

const found = findKernel(['ip'], ['igb']);
if ('missing' in found) process.stderr.write(`skipped: SR-IOV on a stock kernel, ${found.missing}\n`);

interface LinkSettings {
  readonly vlan_list?: readonly { readonly vlan: number }[];
  readonly spoofchk: boolean;
  readonly trust: string;
  readonly link_state: string;
  readonly rate: { readonly max_tx: number };
  readonly stats: Readonly<Record<'rx' | 'tx', Readonly<Record<string, number>>>>;
}

describe.skipIf('missing' in found)("the agent on QEMU's igb, an 82576 with SR-IOV, and a kernel's own drivers", () => {
  let machine: KernelMachine;
  let port: string;
  /** Addresses of the virtual functions, as the kernel links them from the physical function. */
  let functions: readonly string[];

  const sysfs = async (path: string): Promise<string> => (await machine.run(`cat /sys/bus/pci/devices/${path}`)).trim();
  const interfaceOf = async (address: string): Promise<string> => (await machine.run(`ls /sys/bus/pci/devices/${address}/net`)).trim();
  const settings = async (): Promise<readonly LinkSettings[]> => {
    const [link] = JSON.parse(await machine.run(`ip -j -s -d link show dev ${port}`)) as [
      { readonly vfinfo_list: readonly LinkSettings[] },
    ];
    return link.vfinfo_list;
  };
  const bind = async (address: string, driver: string): Promise<void> => {
    const directory = `/sys/bus/pci/devices/${address}`;
    await machine.run(`echo ${driver} > ${directory}/driver_override; echo ${address} > ${directory}/driver/unbind`);
    if (driver !== '') await machine.run(`echo ${address} > /sys/bus/pci/drivers_probe`);
  };
  const numbers = (page: string, device: string) =>
    ['received_packets', 'received_bytes', 'transmitted_packets', 'transmitted_bytes'].map((name) =>
      seriesValue(page, `device_${name}_total`, { device, port: '1' }),
    );

  beforeAll(async () => {
    if ('missing' in found) return;
    machine = new KernelMachine(found.kernel, DEVICES, ['intel_iommu=on', 'ipv6.disable=1']);
    await machine.start();
    await machine.run('modprobe -a igb igbvf vfio-pci aer_inject');
    port = await interfaceOf(PF);
    await machine.run(
      `ip link set ${port} up && for _ in $(seq 300); do grep -q 1 /sys/class/net/${port}/carrier && exit 0; sleep 0.1; done; exit 1`,
    );
    await machine.run(`echo 3 > /sys/bus/pci/devices/${PF}/sriov_numvfs`);
    const links = await machine.run(`for n in 0 1 2; do basename $(readlink /sys/bus/pci/devices/${PF}/virtfn$n); done`);
    functions = links.trim().split('\n');
    await machine.startAgent(CONFIG);
    await machine.until('the functions', (page) => seriesValue(page, 'device_present', { device: functions[2] as string }) === 1);
  });

  afterAll(async () => {
    await machine?.stop();
  });

  it('finds the physical function and its virtual functions by the addresses that plugins hand out', async () => {
    const { devices } = JSON.parse((await machine.fetch('http://127.0.0.1:9835/api/v1/devices')).output);
    const told = devices
      .filter(({ family }: Record<string, unknown>) => family === 'netdev')
      .map(({ id, kind, parent, vfIndex, driver, netdevs }: Record<string, unknown>) => ({
        id,
        kind,
        parent,
        vfIndex,
        driver,
        netdevs,
      }));
    expect(told).toEqual([
      { id: PF, kind: 'pf', driver: 'igb', netdevs: [port] },
      ...(await Promise.all(
        functions.map(async (id, vfIndex) => ({
          id,
          kind: 'vf',
          parent: PF,
          vfIndex,
          driver: 'igbvf',
          netdevs: [await interfaceOf(id)],
        })),
      )),
    ]);
    const page = await machine.page();
    expect(seriesValue(page, 'device_netdev_virtual_functions', { device: PF })).toBe(Number(await sysfs(`${PF}/sriov_numvfs`)));
    expect(seriesValue(page, 'device_netdev_max_virtual_functions', { device: PF })).toBe(Number(await sysfs(`${PF}/sriov_totalvfs`)));
  });

  it('tells link, speed and settings as the kernel does', async () => {
    await machine.run(`ip link set ${port} vf 1 vlan 100 spoofchk off trust on && ip link set ${port} vf 2 max_tx_rate 100`);
    const page = await machine.refreshed('netdev');
    expect(await sysfs(`${PF}/net/${port}/speed`)).toBe('1000');
    for (const device of [PF, ...functions]) {
      expect(seriesValue(page, 'device_link_up', { device, port: '1' })).toBe(1);
      expect(seriesValue(page, 'device_link_speed_bytes_per_second', { device, port: '1' })).toBe(125_000_000);
    }
    const told = await settings();
    expect(told).toHaveLength(3);
    expect(told[1]).toMatchObject({ spoofchk: false });
    for (const [number, device] of functions.entries()) {
      const one = told[number] as LinkSettings;
      expect(seriesValue(page, 'device_netdev_vf_spoof_check', { device })).toBe(one.spoofchk ? 1 : 0);
      expect(seriesValue(page, 'device_netdev_vf_trusted', { device })).toBe(number === 1 ? 1 : 0);
      expect(seriesValue(page, 'device_netdev_vf_vlan', { device })).toBe(number === 1 ? 100 : 0);
      expect(seriesValue(page, 'device_netdev_vf_link_state', { device, state: one.link_state })).toBe(1);
      const limit = one.rate.max_tx === 0 ? undefined : one.rate.max_tx * 125_000;
      expect(seriesValue(page, 'device_netdev_vf_transmit_limit_bytes_per_second', { device })).toBe(limit);
    }
    expect(told[2]?.rate.max_tx).toBe(100);
  });

  it('counts what a virtual function sends and gets by its own interface, because igb keeps no counters of functions', async () => {
    const [device] = functions as [string];
    const name = await interfaceOf(device);
    const counters = 'rx_packets rx_bytes tx_packets tx_bytes';
    const kernel = async () =>
      (await machine.run(`cd /sys/class/net/${name}/statistics && cat ${counters}`)).trim().split('\n').map(Number);
    await machine.run(`ip link set ${port} vf 0 mac 02:00:00:00:00:10 && ip link set ${name} address 02:00:00:00:00:10`);
    await machine.run(`ip link set ${name} up && ip addr add 10.0.2.16/24 dev ${name}`);
    await machine.run(`for _ in $(seq 100); do busybox ping -I ${name} -c 1 -W 1 10.0.2.2 && exit 0; done; exit 1`);
    const before = await kernel();
    await machine.run(`busybox ping -I ${name} -c ${PINGS} -i 0.1 -s ${PAYLOAD} 10.0.2.2`);
    // The driver brings its counters up to date every two seconds.
    const page = await machine.until('what was sent', async (text) => {
      const told = numbers(text, device);
      return (told[0] ?? 0) >= (before[0] ?? 0) + PINGS && (told[2] ?? 0) >= (before[2] ?? 0) + PINGS;
    });
    const [receivedPackets, receivedBytes, sentPackets, sentBytes] = numbers(page, device).map(
      (count, at) => (count as number) - (before[at] as number),
    );
    for (const packets of [receivedPackets, sentPackets]) {
      expect(packets).toBeGreaterThanOrEqual(PINGS);
      expect(packets, 'echoes and few others').toBeLessThan(PINGS + 5);
    }
    for (const bytes of [receivedBytes, sentBytes]) {
      expect(bytes).toBeGreaterThanOrEqual(PINGS * FRAME);
      expect(bytes).toBeLessThan((PINGS + 1) * FRAME);
    }
    await machine.until('what the kernel tells', async (text) => isDeepStrictEqual(numbers(text, device), await kernel()));
    const { stats } = (await settings())[0] as LinkSettings;
    expect(Object.values(stats).flatMap(Object.values), 'the answer of a driver that keeps none').toEqual(Array(8).fill(0));
  });

  it('gives no counters, not 0, of a function whose interface went to a container', async () => {
    const [device] = functions as [string];
    const name = await interfaceOf(device);
    await machine.run(`ip netns add pod && ip link set ${name} netns pod`);
    const page = await machine.until(
      'no interface',
      (text) => seriesValue(text, 'device_netdev_info', { device, interface: name }) === undefined,
    );
    expect(Number(await machine.run(`ip netns exec pod cat /sys/class/net/${name}/statistics/tx_packets`))).toBeGreaterThan(PINGS);
    expect(numbers(page, device)).toEqual([undefined, undefined, undefined, undefined]);
    expect(seriesValue(page, 'device_link_up', { device, port: '1' })).toBe(1);
    expect(seriesValue(page, 'device_healthy', { device })).toBe(1);
  });

  it('keeps a function that vfio-pci has, and one that no driver has, with the link of the card', async () => {
    const [, taken, free] = functions as [string, string, string];
    await bind(taken, 'vfio-pci');
    await bind(free, '');
    const page = await machine.until('the drivers', (text) => {
      const without = new RegExp(`^device_info\\{device="${free}",(?!.*driver=).*\\} 1$`, 'm');
      return without.test(text) && seriesValue(text, 'device_info', { device: taken, driver: 'vfio-pci' }) === 1;
    });
    for (const device of [taken, free]) {
      expect(seriesValue(page, 'device_present', { device })).toBe(1);
      expect(seriesValue(page, 'device_link_up', { device, port: '1' })).toBe(1);
      expect(numbers(page, device)).toEqual([undefined, undefined, undefined, undefined]);
    }
    expect(seriesValue(page, 'device_netdev_vf_vlan', { device: taken })).toBe(100);
    const { characterDevices } = JSON.parse((await machine.fetch(`http://127.0.0.1:9835/api/v1/devices/netdev/${taken}`)).output);
    expect(characterDevices).toHaveLength(2);
    for (const path of characterDevices) await machine.run(`test -c ${path}`);
  });

  it('judges card and functions when the wire is lost, and when it is back', async () => {
    const all = [PF, ...functions];
    await machine.monitor('set_link card off');
    const down = await machine.until('unhealthy', (page) => all.every((device) => seriesValue(page, 'device_healthy', { device }) === 0));
    expect(await sysfs(`${PF}/net/${port}/carrier`)).toBe('0');
    for (const device of all) {
      expect(seriesValue(down, 'device_link_up', { device, port: '1' })).toBe(0);
      expect(seriesValue(down, 'device_link_speed_bytes_per_second', { device })).toBeUndefined();
      const reason = device === PF ? 'LinkDown' : 'ParentPortDown';
      expect(seriesValue(down, 'device_health_condition', { device, condition: 'PortDown', reason })).toBe(1);
    }
    await machine.monitor('set_link card on');
    const up = await machine.until('healthy', (page) => all.every((device) => seriesValue(page, 'device_healthy', { device }) === 1));
    for (const device of all) expect(seriesValue(up, 'device_link_up', { device, port: '1' })).toBe(1);
    const losses = seriesValue(up, 'device_netdev_carrier_losses_total', { device: PF });
    expect(losses).toBe(Number(await sysfs(`${PF}/net/${port}/carrier_down_count`)));
  });

  it('only tells it when an administrator takes the card down', async () => {
    await machine.run(`ip link set ${port} down`);
    const down = await machine.until(
      'down',
      (page) => seriesValue(page, 'device_health_condition', { device: PF, reason: 'PortDisabled' }) === 1,
    );
    const disabled = { device: functions[1] as string, condition: 'PortDown', reason: 'ParentPortDisabled' };
    expect(seriesValue(down, 'device_health_condition', disabled)).toBe(1);
    for (const device of [PF, ...functions]) {
      expect(seriesValue(down, 'device_link_up', { device, port: '1' })).toBe(0);
      expect(seriesValue(down, 'device_healthy', { device })).toBe(1);
    }
    await machine.run(`ip link set ${port} up`);
    await machine.until('up', (page) => seriesValue(page, 'device_link_up', { device: PF, port: '1' }) === 1);
  });

  it('misses the functions that are taken away, keeps the card, and follows another number of them', async () => {
    await machine.run(`echo 0 > /sys/bus/pci/devices/${PF}/sriov_numvfs`);
    const gone = await machine.until('none', (page) => functions.every((device) => seriesValue(page, 'device_present', { device }) === 0));
    for (const device of functions) expect(readingsOf(gone, device)).toEqual([]);
    expect(seriesValue(gone, 'device_present', { device: PF })).toBe(1);
    expect(seriesValue(gone, 'device_netdev_virtual_functions', { device: PF })).toBe(0);
    expect(seriesValue(gone, 'device_agent_probe_success', { family: 'netdev' })).toBe(1);
    await machine.run(`echo 2 > /sys/bus/pci/devices/${PF}/sriov_numvfs`);
    const [first, second, third] = functions as [string, string, string];
    const back = await machine.until('two', (page) =>
      [first, second].every((device) => seriesValue(page, 'device_present', { device }) === 1),
    );
    expect(seriesValue(back, 'device_present', { device: third })).toBe(0);
    expect(seriesValue(back, 'device_netdev_virtual_functions', { device: PF })).toBe(2);
  });

  it('judges card and functions when the card has a fatal error, which the kernel counts at the port above', async () => {
    const present = functions.slice(0, 2);
    const fatal = { condition: 'AerFatal', part: PORT, reason: 'CounterGrows', severity: 'fatal' };
    // The driver resets the port when the number of functions changes, so the card itself may be known to flap.
    await machine.until('healthy functions', (page) => present.every((device) => seriesValue(page, 'device_healthy', { device }) === 1));
    await injectErrors(machine, MALFORMED_TLP, 0);
    const broken = await machine.until('the error', (page) =>
      [PF, ...present].every((device) => seriesValue(page, 'device_health_condition', { device, ...fatal }) === 1),
    );
    for (const device of present) expect(seriesValue(broken, 'device_healthy', { device })).toBe(0);
    expect(await sysfs(`${PORT}/aer_rootport_total_err_fatal`)).toBe('1');
    expect(seriesValue(broken, 'device_pcie_errors_total', { device: PF, severity: 'fatal', kind: 'RootPort' })).toBe(1);
  });
});
