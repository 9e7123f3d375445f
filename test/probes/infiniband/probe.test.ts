import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { StepGuard } from '../../../src/host/fs/step-guard.ts';
import { createHost } from '../../../src/host/host.ts';
import { hours } from '../../../src/model/duration.ts';
import { defaultValues } from '../../../src/model/options.ts';
import { family } from '../../../src/probes/infiniband/index.ts';
import { toldOf } from '../../support/told.ts';
import {
  DEVICE,
  EINVAL,
  findingIn,
  HandClock,
  machineKeeper,
  PORT,
  type Probed,
  probeCase,
  probeMachine,
  reportOf,
  smallMachine,
  valueIn,
  WatchingGuard,
} from './harness.ts';

const keep = machineKeeper();

const ids = (machine: Probed): string[] => machine.collect().reports.map(({ device }) => device.id);
const unreadable = (machine: Probed) => valueIn(reportOf(machine.collect(), 'mlx5_0'), 'device_infiniband_unreadable_files');

describe('counters', () => {
  it('lose only the series whose file fails, for every kind of failure', () => {
    const machine = keep(probeCase('every-way-a-counter-file-fails'));
    const collection = machine.collect();
    const odd = reportOf(collection, 'mlx5_0');
    const sound = reportOf(collection, 'mlx5_1');
    expect(valueIn(odd, 'device_infiniband_unreadable_files')).toBe(11);
    expect(odd.readings.filter(({ metric }) => metric === 'device_errors_total').map(({ labels }) => labels?.kind)).toEqual([
      'symbol',
      'receive_switch_relay',
    ]);
    for (const report of [odd, sound]) {
      expect(valueIn(report, 'device_received_bytes_total')).toBe(44);
      expect(valueIn(report, 'device_transmitted_packets_total')).toBe(14);
      expect(valueIn(report, 'device_errors_total', { kind: 'symbol' })).toBe(15);
    }
  });

  it('keep every digit beyond 64 bits', () => {
    const report = reportOf(keep(probeCase('beyond-two-to-the-53')).collect(), 'mlx5_0');
    expect(valueIn(report, 'device_received_bytes_total')).toBe(4n * (2n ** 64n - 2n));
    expect(valueIn(report, 'device_transmitted_packets_total')).toBe(2n ** 53n + 1n);
    expect(valueIn(report, 'device_received_packets_total')).toBe(2 ** 53 - 1);
  });

  it('are absent with a problem where they hold what a failed read gives', () => {
    const machine = keep(probeCase('beyond-two-to-the-53'));
    const port = 'sys/devices/pci0000:17/0000:18:00.0/infiniband/mlx5_0/ports/1';
    writeFileSync(join(machine.root, port, 'counters/port_rcv_data'), '18446744073709551615\n');
    const collection = machine.collect();
    expect(valueIn(reportOf(collection, 'mlx5_0'), 'device_received_bytes_total')).toBeUndefined();
    expect(collection.problems).toMatchObject([
      { code: 'counter-all-ones', device: 'mlx5_0', message: 'port_rcv_data of port 1 of mlx5_0: all ones' },
    ]);
  });

  it('are marked only where they stand at their ceiling', () => {
    const report = reportOf(keep(probeCase('counters-at-their-ceiling')).collect(), 'mlx5_0');
    const marked = report.readings.filter(({ metric }) => metric === 'device_infiniband_saturated');
    expect(marked.map(({ labels }) => labels?.counter).sort()).toEqual([
      'excessive_buffer_overrun_errors',
      'link_downed',
      'port_rcv_data',
      'port_xmit_constraint_errors',
      'port_xmit_wait',
      'symbol_error',
    ]);
    expect(new Set(marked.map(({ value }) => value))).toEqual(new Set([1]));
  });

  it('come from hw_counters where counters only fails', () => {
    const report = reportOf(keep(probeCase('bnxt-re-counters-einval')).collect(), 'bnxt_re0');
    expect(valueIn(report, 'device_received_bytes_total')).toBe(309);
    expect(valueIn(report, 'device_transmitted_bytes_total')).toBe(311);
  });

  it('come from counters_ext on an old kernel, and from counters where that says N/A', () => {
    const report = reportOf(keep(probeCase('counters-ext-of-an-old-kernel')).collect(), 'mlx4_0');
    expect(valueIn(report, 'device_received_bytes_total', { port: '1' })).toBe(24_631_917 * 4);
    expect(valueIn(report, 'device_received_bytes_total', { port: '2' })).toBe(21 * 4);
  });

  it('never give two values for one series', () => {
    for (const name of readdirSync('test/probes/infiniband', { withFileTypes: true }).filter((entry) => entry.isDirectory())) {
      for (const { device, readings } of keep(probeCase(name.name)).collect().reports.map(toldOf)) {
        const series = readings.map(({ metric, labels }) => `${metric}${JSON.stringify(labels ?? {})}`);
        expect(
          series.filter((each, at) => series.indexOf(each) !== at),
          `${name.name} ${device.id}`,
        ).toEqual([]);
      }
    }
  });

  it('have exactly the labels that their metric declares', () => {
    const declared = new Map(family.metrics.map(({ name, labels }) => [name, [...labels].sort()]));
    for (const entry of readdirSync('test/probes/infiniband', { withFileTypes: true }).filter((each) => each.isDirectory())) {
      for (const { metric, labels } of keep(probeCase(entry.name))
        .collect()
        .reports.flatMap((report) => [...toldOf(report).readings])) {
        expect(Object.keys(labels ?? {}).sort(), `${entry.name} ${metric}`).toEqual(declared.get(metric));
      }
    }
  });
});

describe('files', () => {
  it('with a lasting error are not read for an hour, and then read again', () => {
    const machine = keep(probeMachine(smallMachine({}, { links: { [`${PORT}/counters/link_downed`]: EINVAL } })));
    expect(unreadable(machine)).toBe(1);
    const file = join(machine.root, PORT, 'counters/link_downed');
    rmSync(file);
    // An open of a FIFO blocks, so this shows that the file is not opened.
    execFileSync('mkfifo', [file]);
    machine.clock.nowMs = hours(1) - 1;
    expect(unreadable(machine)).toBe(1);
    rmSync(file);
    writeFileSync(file, '7\n');
    expect(valueIn(reportOf(machine.collect(), 'mlx5_0'), 'device_errors_total')).toBeUndefined();
    machine.clock.nowMs = hours(1);
    expect(valueIn(reportOf(machine.collect(), 'mlx5_0'), 'device_errors_total')).toBe(7);
    expect(unreadable(machine)).toBe(0);
  });

  it('that failed are read again when their port comes up', () => {
    const machine = keep(
      probeMachine(smallMachine({ [`${PORT}/state`]: '1: DOWN\n' }, { links: { [`${PORT}/counters/link_downed`]: EINVAL } })),
    );
    expect(unreadable(machine)).toBe(1);
    rmSync(join(machine.root, PORT, 'counters/link_downed'));
    writeFileSync(join(machine.root, PORT, 'counters/link_downed'), '3\n');
    expect(unreadable(machine)).toBe(1);
    writeFileSync(join(machine.root, PORT, 'state'), '4: ACTIVE\n');
    expect(unreadable(machine)).toBe(0);
  });

  it('with a temporary error are read again at the next collection', () => {
    const machine = keep(probeMachine(smallMachine({}, { directories: [`${PORT}/counters/link_downed`] })));
    expect(unreadable(machine)).toBe(1);
    rmSync(join(machine.root, PORT, 'counters/link_downed'), { recursive: true });
    writeFileSync(join(machine.root, PORT, 'counters/link_downed'), '3\n');
    expect(unreadable(machine)).toBe(0);
  });

  it('that were missing for a moment are read again at the next collection', () => {
    const guard = new WatchingGuard();
    const machine = keep(probeMachine(smallMachine({ [`${PORT}/counters/link_downed`]: '2\n' }), {}, guard));
    guard.before = (path) => {
      if (path.endsWith('link_downed')) rmSync(path);
    };
    guard.after = (path) => {
      if (path.endsWith('link_downed')) writeFileSync(path, '3\n');
    };
    expect(unreadable(machine)).toBe(1);
    guard.before = () => {};
    expect(valueIn(reportOf(machine.collect(), 'mlx5_0'), 'device_errors_total')).toBe(3);
  });

  it('that feed no metric are never opened', () => {
    const names = [
      'counters/vendor_counter',
      'hw_counters/vendor_counter',
      'gids/0',
      'gid_attrs/ndevs/0',
      'gid_attrs/types/0',
      'pkeys/0',
      'cap_mask',
    ];
    const machine = keep(probeMachine(smallMachine({}, { fifos: [...names.map((name) => `${PORT}/${name}`), `${DEVICE}/node_desc`] })));
    expect(ids(machine)).toEqual(['mlx5_0']);
  });

  it('of hw_counters are not opened when the option says so', () => {
    const machine = keep(
      probeMachine(smallMachine({}, { fifos: [`${PORT}/hw_counters/rx_write_requests`, `${DEVICE}/hw_counters/cmds_err`] }), {
        'hw-counters': 'false',
      }),
    );
    expect(ids(machine)).toEqual(['mlx5_0']);
  });

  it('are read in the order of their cost: rx_write_requests, the rest of its set, then one query each', () => {
    const names = ['rx_atomic_requests', 'duplicate_request', 'rx_write_requests', 'np_cnp_sent'];
    const guard = new WatchingGuard();
    const files = Object.fromEntries(names.map((name) => [`${PORT}/hw_counters/${name}`, '1\n']));
    const machine = keep(probeMachine(smallMachine(files), {}, guard));
    const read: string[] = [];
    guard.before = (path) => {
      if (path.includes('counters/')) read.push(path.replace(/^.*ports\/1\//, ''));
    };
    machine.collect();
    expect(read[0]).toBe('hw_counters/rx_write_requests');
    expect(read.slice(1, 4).every((path) => path.startsWith('hw_counters/'))).toBe(true);
    expect(read.slice(4)).toEqual(['counters/port_rcv_data']);
  });

  it('that appear later are found at the next sweep', () => {
    const machine = keep(probeMachine(smallMachine()));
    machine.collect();
    writeFileSync(join(machine.root, PORT, 'counters/symbol_error'), '5\n');
    writeFileSync(join(machine.root, DEVICE, 'fw_ver'), '28.42.1000\n');
    machine.clock.nowMs = 59_999;
    expect(reportOf(machine.collect(), 'mlx5_0').device.firmware).toBe('28.41.1000');
    machine.clock.nowMs = 60_000;
    const report = reportOf(machine.collect(), 'mlx5_0');
    expect(report.device.firmware).toBe('28.42.1000');
    expect(valueIn(report, 'device_errors_total', { kind: 'symbol' })).toBe(5);
  });
});

describe('devices', () => {
  it('that are excluded are not touched, though their files would hang', () => {
    const machine = keep(probeCase('excluded-device-would-hang'));
    expect(machine.collect()).toMatchObject({ problems: [] });
    expect(ids(machine)).toEqual(['mlx5_0']);
  });

  it('are those that are not excluded', () => {
    expect(ids(keep(probeCase('pf-with-four-vfs', { exclude: 'mlx5_1,*_2,mlx*4' })))).toEqual(['mlx5_0', 'mlx5_3']);
    expect(ids(keep(probeCase('pf-with-four-vfs', { exclude: '*' })))).toEqual([]);
    expect(ids(keep(probeCase('pf-with-four-vfs', { exclude: 'mlx5_0,mlx5' })))).toEqual(['mlx5_1', 'mlx5_2', 'mlx5_3', 'mlx5_4']);
  });

  it('are none, without a problem, on a machine without RDMA', () => {
    expect(keep(probeCase('no-hardware')).collect()).toEqual({ reports: [], problems: [], listing: 'absent' });
  });

  it('are unknown where the class directory cannot be read', () => {
    expect(keep(probeCase('class-directory-unreadable')).collect()).toMatchObject({
      reports: [],
      listing: 'partial',
      problems: [{ code: 'class-unreadable' }],
    });
  });

  it('whose link has no target cause a problem only for themselves', () => {
    const collection = keep(probeCase('class-link-to-a-device-that-is-gone')).collect();
    expect(collection.problems).toMatchObject([{ code: 'device-vanished', device: 'mlx5_1' }]);
    expect(collection.listing).toBe('complete');
    expect(collection.reports.map(({ device }) => device.id)).toEqual(['mlx5_0']);
  });

  it('that vanish while they are read give no incomplete report', () => {
    const guard = new WatchingGuard();
    const machine = keep(probeMachine(smallMachine(), {}, guard));
    guard.after = (path) => {
      if (path.endsWith('port_rcv_data')) rmSync(join(machine.root, 'sys/devices'), { recursive: true, force: true });
    };
    expect(machine.collect()).toMatchObject({ reports: [], problems: [{ code: 'device-vanished', device: 'mlx5_0' }] });
    rmSync(join(machine.root, 'sys/class/infiniband/mlx5_0'));
    expect(machine.collect()).toEqual({ reports: [], problems: [], listing: 'complete' });
  });

  it('that are removed while they are read are no problem', () => {
    const guard = new WatchingGuard();
    const machine = keep(probeMachine(smallMachine(), {}, guard));
    guard.after = (path) => {
      if (!path.endsWith('port_rcv_data')) return;
      rmSync(join(machine.root, 'sys/class/infiniband/mlx5_0'), { force: true });
      rmSync(join(machine.root, 'sys/devices'), { recursive: true, force: true });
    };
    expect(machine.collect()).toEqual({ reports: [], problems: [], listing: 'complete' });
  });

  it('that return under the same name are read again', () => {
    const machine = keep(probeMachine(smallMachine()));
    machine.collect();
    const device = join(machine.root, DEVICE);
    renameSync(device, `${device}-old`);
    mkdirSync(join(device, 'ports/2/counters'), { recursive: true });
    writeFileSync(join(device, 'fw_ver'), '99.0\n');
    writeFileSync(join(device, 'ports/2/state'), '2: INIT\n');
    writeFileSync(join(device, 'ports/2/counters/port_rcv_data'), '8\n');
    const report = reportOf(machine.collect(), 'mlx5_0');
    expect(report.device.firmware).toBe('99.0');
    expect(valueIn(report, 'device_received_bytes_total')).toBe(32);
  });

  it('that appear are found at the next read, with their character devices', () => {
    const machine = keep(probeMachine(smallMachine()));
    machine.collect();
    mkdirSync(join(machine.root, 'sys/devices/pci0000:17/0000:19:00.0/infiniband/mlx5_7/ports/1'), { recursive: true });
    mkdirSync(join(machine.root, 'sys/class/infiniband_verbs/uverbs7'), { recursive: true });
    writeFileSync(join(machine.root, 'sys/class/infiniband_verbs/uverbs7/ibdev'), 'mlx5_7\n');
    symlinkSync('../../devices/pci0000:17/0000:19:00.0/infiniband/mlx5_7', join(machine.root, 'sys/class/infiniband/mlx5_7'));
    expect(reportOf(machine.collect(), 'mlx5_7').device.aliases).toEqual(['0000:19:00.0', 'uverbs7']);
  });

  it('get their character devices, although the kernel lists those before it creates `ibdev`', () => {
    const machine = keep(probeMachine(smallMachine({}, { directories: ['sys/class/infiniband_verbs/uverbs0'] })));
    expect(reportOf(machine.collect(), 'mlx5_0').device.aliases).toEqual(['0000:18:00.0']);
    writeFileSync(join(machine.root, 'sys/class/infiniband_verbs/uverbs0/ibdev'), 'mlx5_0\n');
    machine.clock.nowMs = 60_000;
    expect(reportOf(machine.collect(), 'mlx5_0').device.aliases).toEqual(['0000:18:00.0', 'uverbs0']);
  });

  it('that swap their names keep the memory of their ports', () => {
    const other = DEVICE.replaceAll('18:00.0', '19:00.0').replace('mlx5_0', 'mlx5_1');
    const machine = keep(
      probeMachine(
        smallMachine(
          { [`${other}/ports/1/state`]: '1: DOWN\n', [`${other}/ports/1/phys_state`]: '3: Disabled\n' },
          { links: { 'sys/class/infiniband/mlx5_1': '../../devices/pci0000:17/0000:19:00.0/infiniband/mlx5_1' } },
        ),
      ),
    );
    const neverUp = { level: false, atLeast: false };
    const down = (id: string) => findingIn(reportOf(machine.collect(), id), 'PortDown', '1');
    expect(down('mlx5_0')).toMatchObject({ level: true });
    expect(down('mlx5_1')).toMatchObject(neverUp);
    for (const [from, to] of [
      ['18:00.0', 'mlx5_1'],
      ['19:00.0', 'mlx5_0'],
    ] as const) {
      const place = join(machine.root, `sys/devices/pci0000:17/0000:${from}/infiniband`);
      renameSync(join(place, readdirSync(place)[0] as string), join(place, to));
      rmSync(join(machine.root, `sys/class/infiniband/${to}`));
      symlinkSync(`../../devices/pci0000:17/0000:${from}/infiniband/${to}`, join(machine.root, `sys/class/infiniband/${to}`));
    }
    expect(down('mlx5_1')).toMatchObject({ level: true });
    expect(down('mlx5_0')).toMatchObject(neverUp);
    expect(findingIn(reportOf(machine.collect(), 'mlx5_0'), 'LinkFlapping', '1/observed')).toMatchObject({ count: 0 });
  });

  it('that hung are reported by name and not read; the others are read', () => {
    const machine = keep(probeCase('pf-with-four-vfs'));
    const guard = new StepGuard([join(machine.root, 'sys/class/infiniband/mlx5_0')]);
    const roots = { sysfs: join(machine.root, 'sys'), procfs: '/proc', dev: join(machine.root, 'dev'), kmsg: '' };
    const host = createHost(roots, new HandClock(), { guard });
    const collection = family.createProbe(host, defaultValues(family.options)).collect() as ReturnType<Probed['collect']>;
    expect(collection.problems).toMatchObject([{ code: 'device-hangs', device: 'mlx5_0' }]);
    expect(findingIn(reportOf(collection, 'mlx5_0'), 'DeviceUnreachable')).toMatchObject({ status: true, reason: 'ReadsHang' });
    expect(findingIn(reportOf(collection, 'mlx5_1'), 'PortDown', '1')).toMatchObject({ status: 'unknown' });
    expect(valueIn(reportOf(collection, 'mlx5_1'), 'device_received_bytes_total')).toBe(40);
    expect(reportOf(collection, 'mlx5_1').device.parent).toBe('mlx5_0');
  });

  it.each([
    ['pf-with-four-vfs', 'mlx5_0', { kind: 'pf', pciAddress: '0000:3b:00.0', numaNode: 1, uuid: 'a088:c203:00aa:b000' }],
    ['pf-with-four-vfs', 'mlx5_3', { kind: 'vf', pciAddress: '0000:3b:00.3', parent: 'mlx5_0', driver: 'mlx5_core', vfIndex: 2 }],
    ['sf-on-auxiliary-bus', 'mlx5_4', { kind: 'sf', parent: 'mlx5_0', aliases: ['mlx5_core.sf.4', 'uverbs4'], sfNumber: 88 }],
    ['hfi1-without-hca-type', 'hfi1_0', { kind: 'pf', pciAddress: '0000:01:00.0', vendor: 'Intel' }],
    ['efa-traffic-in-hw-counters', 'rdmap0s29', { kind: 'pf', vendor: 'Amazon', pciAddress: '0000:00:1d.0' }],
    ['iwarp-no-performance-management', 'i40iw0', { kind: 'function', model: 'I40IW', firmware: '0.2' }],
    ['roce-gid-attributes-would-hang', 'mlx5_bond_0', { netdevs: ['eth2', 'eth3'] }],
    ['irdma-counts-ip-packets', 'rocep49s0', { netdevs: ['ens49f0'] }],
  ])('of %s: %s is known by its parents', (name, id, device) => {
    expect(reportOf(keep(probeCase(name)).collect(), id).device).toMatchObject(device);
  });

  it('without a GUID have no uuid, without a NUMA node none', () => {
    expect(reportOf(keep(probeCase('pf-with-four-vfs')).collect(), 'mlx5_4').device).not.toHaveProperty('uuid');
    expect(reportOf(keep(probeCase('hfi1-without-hca-type')).collect(), 'hfi1_0').device).not.toHaveProperty('numaNode');
  });

  it('in the network namespace of a container are reported without a read', () => {
    const machine = keep(probeCase('pf-with-four-vfs'));
    const vf = join(machine.root, 'sys/devices/pci0000:3a/0000:3a:01.0/0000:3b:00.1');
    const take = (netnsMode: string): string[] => {
      mkdirSync(join(machine.root, 'sys/module/ib_core/parameters'), { recursive: true });
      writeFileSync(join(machine.root, 'sys/module/ib_core/parameters/netns_mode'), netnsMode);
      return ids(machine).sort();
    };
    machine.collect();
    renameSync(join(vf, 'infiniband'), join(machine.root, 'taken'));
    rmSync(join(machine.root, 'sys/class/infiniband/mlx5_1'));
    expect(take('N\n')).toContain('mlx5_1');
    const report = reportOf(machine.collect(), 'mlx5_1');
    expect(report.device).toMatchObject({ kind: 'vf', parent: 'mlx5_0', pciAddress: '0000:3b:00.1' });
    expect(report.readings.map(({ metric }) => metric)).toEqual(['device_infiniband_info']);
    expect(report.findings.filter(({ reason }) => reason !== 'LogUnread')).toMatchObject([{ type: 'PortDown', level: true }]);
    renameSync(join(machine.root, 'taken'), join(vf, 'infiniband'));
    symlinkSync('../../devices/pci0000:3a/0000:3a:01.0/0000:3b:00.1/infiniband/mlx5_1', join(machine.root, 'sys/class/infiniband/mlx5_1'));
    expect(valueIn(reportOf(machine.collect(), 'mlx5_1'), 'device_received_bytes_total')).toBe(40);
    renameSync(join(vf, 'infiniband'), join(machine.root, 'taken'));
    rmSync(join(machine.root, 'sys/class/infiniband/mlx5_1'));
    expect(take('Y\n'), 'shared mode: gone is gone').not.toContain('mlx5_1');
  });

  it('in the network namespace of a container disappear with their PCI function', () => {
    const machine = keep(probeCase('pf-with-four-vfs'));
    mkdirSync(join(machine.root, 'sys/module/ib_core/parameters'), { recursive: true });
    writeFileSync(join(machine.root, 'sys/module/ib_core/parameters/netns_mode'), 'N\n');
    machine.collect();
    rmSync(join(machine.root, 'sys/class/infiniband/mlx5_1'));
    rmSync(join(machine.root, 'sys/devices/pci0000:3a/0000:3a:01.0/0000:3b:00.1/infiniband'), { recursive: true });
    expect(ids(machine)).toContain('mlx5_1');
    rmSync(join(machine.root, 'sys/devices/pci0000:3a/0000:3a:01.0/0000:3b:00.1'), { recursive: true });
    expect(ids(machine)).not.toContain('mlx5_1');
  });

  it('in another network namespace show no counters, which is reported as a problem', () => {
    expect(keep(probeCase('counters-hidden-by-network-namespace')).collect().problems).toMatchObject([{ code: 'counters-hidden' }]);
    const soft = keep(probeCase('soft-roce-counts-in-software'));
    for (const name of readdirSync(join(soft.root, 'sys/class/infiniband')))
      rmSync(join(soft.root, 'sys/class/infiniband', name, 'ports/1/hw_counters'), { recursive: true });
    expect(soft.collect().problems).toMatchObject([{ code: 'counters-hidden' }]);
    expect(keep(probeCase('rate-einval')).collect().problems).toMatchObject([{ code: 'no-counters' }]);
    expect(keep(probeCase('efa-traffic-in-hw-counters', { 'hw-counters': 'false' })).collect().problems).toEqual([]);
  });

  it('say how many counters feed no metric, which is no problem', () => {
    const collection = keep(probeCase('bnxt-re-counters-einval')).collect();
    expect(valueIn(reportOf(collection, 'bnxt_re0'), 'device_infiniband_unmapped_counters')).toBe(1);
    expect(collection.problems).toEqual([]);
  });

  it('that sleep are not read', () => {
    const report = reportOf(keep(probeCase('sleeping-function')).collect(), 'mlx5_0');
    expect(valueIn(report, 'device_link_up')).toBeUndefined();
    expect(report.device.firmware).toBe('28.41.1000');
  });
});
