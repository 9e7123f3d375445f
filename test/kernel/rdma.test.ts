import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { seriesValue } from '../support/serve.ts';
import { findKernel } from './support/kernel-package.ts';
import { KernelMachine, readingsOf } from './support/machine.ts';
import { askKernel, COUNTERS } from './support/rdma.ts';

const CONFIG = `
refresh: { interval: 500ms, timeout: 2m }
probe: { fpga: { enabled: false }, nvidia: { enabled: false } }
health: { conditions: { infiniband.PortDown: { for: 1s, recovery: 1s } } }`;
const CYCLES = 20;
const found = findKernel(['ip', 'rdma', 'ibv_rc_pingpong']);
if ('missing' in found) process.stderr.write(`skipped: the kernel's own RDMA devices, ${found.missing}\n`);

describe.skipIf('missing' in found)("the agent on a kernel's own RDMA devices", () => {
  let machine: KernelMachine;

  const add = (at: number): Promise<string> => machine.run(`rdma link add rxe${at} type rxe netdev d${at}`);
  const isThere = (page: string, device: string): boolean =>
    seriesValue(page, 'device_present', { device }) === 1 && seriesValue(page, 'device_link_up', { device }) === 1;
  const expectSameCounters = async (page: string, device: string): Promise<void> => {
    const { counters } = await askKernel(machine, device);
    const told = Object.entries(COUNTERS).map(([file, [metric, labels]]) => [
      file,
      seriesValue(page, metric, { device, port: '1', ...labels }),
    ]);
    const { ack_deferred: _, ...rest } = counters;
    expect(Object.fromEntries(told)).toEqual(rest);
  };

  beforeAll(async () => {
    if ('missing' in found) return;
    machine = new KernelMachine(found.kernel);
    await machine.start();
    await machine.startAgent(CONFIG);
  });

  afterAll(async () => {
    await machine?.stop();
  });

  it('rests where there is none, and finds them as soon as a driver brings them', async () => {
    const runs = (page: string): number | undefined => seriesValue(page, 'device_agent_probe_runs_total', { family: 'infiniband' });
    const isLookedFor = (page: string): boolean => seriesValue(page, 'device_agent_probe_success', { family: 'infiniband' }) === 1;
    await machine.until('the agent serves', isLookedFor);
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    expect(runs(await machine.page()), 'runs while there is nothing').toBeUndefined();
    await machine.run(
      'modprobe -a rdma_rxe crc32_generic veth && ip link add d0 type veth peer name d1 && ip link set d0 up && ip link set d1 up',
    );
    await add(0);
    await add(1);
    await machine.until('both devices', (page) => isThere(page, 'rxe0') && isThere(page, 'rxe1'));
  });

  it('tells of each what the kernel tells', async () => {
    const page = await machine.refreshed();
    for (const device of ['rxe0', 'rxe1']) {
      const { files, link } = await askKernel(machine, device);
      expect([files['ports/1/state'], link.state]).toEqual(['4: ACTIVE', 'ACTIVE']);
      expect(seriesValue(page, 'device_infiniband_port_state', { device, state: 'active' })).toBe(1);
      expect([files['ports/1/phys_state'], link.physical_state]).toEqual(['5: LinkUp', 'LINK_UP']);
      expect(seriesValue(page, 'device_infiniband_port_physical_state', { device, state: 'link_up' })).toBe(1);
      const [, gigabits, lanes, speed] = /^(\d+) Gb\/sec \((\d+)X (\w+)\)$/.exec(files['ports/1/rate'] ?? '') ?? [];
      expect(seriesValue(page, 'device_link_speed_bytes_per_second', { device })).toBe(Number(gigabits) * 125e6);
      expect(seriesValue(page, 'device_infiniband_link_width_lanes', { device })).toBe(Number(lanes));
      const labels = { link_layer: files['ports/1/link_layer'] ?? '', netdev: link.netdev, rate: `${lanes}X ${speed}` };
      expect(seriesValue(page, 'device_infiniband_port_info', { device, ...labels, lid: '0', sm_lid: '0' })).toBe(1);
      const guids = { node_guid: files.node_guid ?? '', sys_image_guid: files.sys_image_guid ?? '' };
      expect(seriesValue(page, 'device_infiniband_info', { device, ...guids, node_type: 'CA' })).toBe(1);
      expect(seriesValue(page, 'device_infiniband_unreadable_files', { device })).toBe(0);
      await expectSameCounters(page, device);
    }
  });

  it('counts traffic as the kernel does', async () => {
    await machine.run('bash test/kernel/guest/traffic.sh rxe0 d0 rxe1 d1');
    const page = await machine.refreshed();
    for (const device of ['rxe0', 'rxe1']) {
      expect(seriesValue(page, 'device_infiniband_transmitted_requests_total', { device })).toBeGreaterThanOrEqual(200);
      await expectSameCounters(page, device);
    }
  });

  it('judges a link that goes down, and one that comes back', async () => {
    const downed = { device: 'rxe0', kind: 'link_downed' };
    const before = seriesValue(await machine.page(), 'device_errors_total', downed) as number;
    await machine.run('ip link set d0 down');
    const down = await machine.until('unhealthy', (page) => seriesValue(page, 'device_healthy', { device: 'rxe0' }) === 0);
    expect((await askKernel(machine, 'rxe0')).files['ports/1/state']).toBe('1: DOWN');
    expect(seriesValue(down, 'device_link_up', { device: 'rxe0' })).toBe(0);
    expect(seriesValue(down, 'device_infiniband_port_state', { device: 'rxe0', state: 'down' })).toBe(1);
    expect(seriesValue(down, 'device_health_condition', { device: 'rxe0', condition: 'PortDown', reason: 'PortDisabled' })).toBe(1);
    expect(seriesValue(down, 'device_errors_total', downed)).toBe(before + 1);
    await expectSameCounters(down, 'rxe0');
    await machine.run('ip link set d0 up');
    const up = await machine.until('healthy', (page) => seriesValue(page, 'device_healthy', { device: 'rxe0' }) === 1);
    expect(isThere(up, 'rxe0')).toBe(true);
    expect(seriesValue(up, 'device_health_condition', { device: 'rxe0', condition: 'PortDown' })).toBeUndefined();
  });

  it('tells nothing of a device that was taken away while its files are open, and counts from 0 when it is back', async () => {
    expect(await machine.keptFiles('rxe0')).toBeGreaterThan(Object.keys(COUNTERS).length);
    const kept = await machine.run(
      'exec 9< /sys/class/infiniband/rxe0/ports/1/hw_counters/rcvd_pkts; rdma link delete rxe0; cat <&9 2>&1 || true',
    );
    expect(kept).toContain('No such device');
    const page = await machine.refreshed();
    expect(readingsOf(page, 'rxe0')).toEqual([]);
    expect(seriesValue(page, 'device_present', { device: 'rxe0' })).toBe(0);
    expect(await machine.keptFiles('rxe0')).toBe(0);
    const lines = (await machine.log()).filter(({ device, condition }) => device === 'infiniband/rxe0' && condition === 'DeviceMissing');
    expect(lines.filter(({ to }) => to === undefined)).toHaveLength(1);
    await add(0);
    const again = await machine.until('back', (text) => isThere(text, 'rxe0'));
    expect(seriesValue(again, 'device_received_packets_total', { device: 'rxe0' })).toBe(0);
    await expectSameCounters(again, 'rxe0');
    await expectSameCounters(again, 'rxe1');
  });

  it('follows a device that is given another name', async () => {
    await machine.run('rdma dev set rxe1 name mlx5_7');
    const page = await machine.until('the new name', (text) => isThere(text, 'mlx5_7'));
    expect(readingsOf(page, 'rxe1')).toEqual([]);
    await expectSameCounters(page, 'mlx5_7');
    await machine.run('rdma dev set mlx5_7 name rxe1');
    const back = await machine.until('the old name', (text) => isThere(text, 'rxe1'));
    expect(readingsOf(back, 'mlx5_7')).toEqual([]);
    await expectSameCounters(back, 'rxe1');
  });

  it('keeps no descriptor of devices that come and go', async () => {
    await machine.refreshed();
    const [before, kept] = [await machine.descriptors(), await machine.keptFiles()];
    for (let cycle = 0; cycle < CYCLES; cycle += 1) {
      await machine.run('rdma link delete rxe0');
      if (cycle % 3 === 0) await machine.refreshed();
      await add(0);
      if (cycle % 5 === 0) await machine.refreshed();
    }
    await machine.refreshed();
    expect(await machine.keptFiles()).toBe(kept);
    // A read that goes on has some more open.
    await expect.poll(() => machine.descriptors(), { interval: 500 }).toBeLessThanOrEqual(before);
  });

  it('sees the whole of a device in the namespace that has it, and says so where it sees less', async () => {
    const list = 'ip netns exec other "$node" dist-bundle/main.js list --output=json --no-probe.fpga --no-probe.nvidia';
    await machine.run('ip netns add other');
    expect(await machine.run('ip netns exec other ls /sys/class/infiniband/rxe0/ports/1')).not.toContain('counters');
    expect(await machine.run(list)).toContain('counters-hidden');
    // The mode cannot be changed while there are other namespaces, and the kernel takes its time to remove one.
    const change = 'for _ in $(seq 100); do rdma system set netns exclusive 2> /dev/null && exit 0; sleep 0.1; done; exit 1';
    await machine.run(`rdma link delete rxe0; rdma link delete rxe1; ip netns del other; ${change}`);
    await machine.run('ip netns add other');
    await add(0);
    await add(1);
    const page = await machine.until('both devices', (text) => isThere(text, 'rxe0') && isThere(text, 'rxe1'));
    await expectSameCounters(page, 'rxe0');
    expect(await machine.run('ip netns exec other ls /sys/class/infiniband')).toBe('');
  });

  it('follows a driver that is unloaded and loaded again', async () => {
    await machine.run('rmmod rdma_rxe ib_uverbs rdma_cm iw_cm ib_cm ib_core 2>&1 || true');
    expect(await machine.run('ls /sys/class')).not.toMatch(/^infiniband$/m);
    const gone = await machine.refreshed();
    // The family was there before, so a node that shows nothing of it is a problem, not a sound answer. What was read before stays for a minute.
    expect(seriesValue(gone, 'device_agent_probe_success', { family: 'infiniband' })).toBe(0);
    expect(await machine.keptFiles()).toBe(0);
    await machine.run('modprobe rdma_rxe');
    await add(0);
    const page = await machine.until('one device', (text) => isThere(text, 'rxe0'));
    await expectSameCounters(page, 'rxe0');
    expect(readingsOf(page, 'rxe1')).toEqual([]);
  });
});
