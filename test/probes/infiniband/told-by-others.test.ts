import { readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Device } from '../../../src/model/device.ts';
import { hours, minutes } from '../../../src/model/duration.ts';
import { countsAsDevice } from '../../../src/model/expected.ts';
import { selectDevices } from '../../../src/plugin/offers/inventory.ts';
import { classicCounters } from '../../../src/probes/infiniband/counters.ts';
import {
  DEVICE,
  EINVAL,
  findingIn,
  machineKeeper,
  PORT,
  probeCase,
  probeMachine,
  reportOf,
  smallMachine,
  valueIn,
  WatchingGuard,
} from './harness.ts';

const keep = machineKeeper();

/** The classic counters that exist on mlx5, and two files beside them. */
const CLASSIC = classicCounters()
  .filter(({ set }) => set === 'counters')
  .map(({ file }) => file);

describe('counters that the firmware refuses', () => {
  /** The function of leptonai/gpud#1164: each read of a counter adds a line to the kernel log. */
  const refused = (guard: WatchingGuard) => {
    const { files, ...machine } = smallMachine({ [`${PORT}/state`]: '1: DOWN\n', [`${PORT}/phys_state`]: '3: Disabled\n' });
    const links = Object.fromEntries(CLASSIC.map((file) => [`${PORT}/counters/${file}`, EINVAL]));
    const { [`${PORT}/counters/port_rcv_data`]: _, ...others } = files ?? {};
    return keep(probeMachine({ ...machine, files: others, links: { ...machine.links, ...links } }, {}, guard));
  };
  const reads = (guard: WatchingGuard): string[] => {
    const seen: string[] = [];
    guard.before = (path) => void (path.includes('/counters/') && seen.push(path));
    return seen;
  };

  it('are read once, and then one of them each hour for all', () => {
    const guard = new WatchingGuard();
    const machine = refused(guard);
    const seen = reads(guard);
    machine.collect();
    expect(seen).toHaveLength(CLASSIC.length);
    for (let minute = 1; minute <= 300; minute += 1) {
      machine.clock.nowMs = minutes(minute);
      machine.collect();
    }
    expect(seen).toHaveLength(CLASSIC.length + 5);
    expect(new Set(seen.slice(-5)).size).toBe(5);
    const report = reportOf(machine.collect(), 'mlx5_0');
    expect(findingIn(report, 'CountersUnreadable', '1')).toMatchObject({ status: true });
    expect(findingIn(report, 'PortDown', '1')).toMatchObject({ level: false, atLeast: false });
    expect(valueIn(report, 'device_infiniband_unreadable_files')).toBe(CLASSIC.length);
  });

  it('are all read when one can be read, and when the port comes up', () => {
    const guard = new WatchingGuard();
    const machine = refused(guard);
    machine.collect();
    const [first = '', ...others] = CLASSIC.map((file) => join(machine.root, PORT, 'counters', file));
    for (const file of [first, ...others]) {
      rmSync(file);
      writeFileSync(file, '7\n');
    }
    machine.clock.nowMs = hours(1);
    expect(valueIn(reportOf(machine.collect(), 'mlx5_0'), 'device_infiniband_unreadable_files')).toBe(0);
    for (const file of [first, ...others]) {
      rmSync(file);
      symlinkSync(EINVAL, file);
    }
    machine.collect();
    const seen = reads(guard);
    writeFileSync(join(machine.root, PORT, 'state'), '4: ACTIVE\n');
    machine.collect();
    expect(seen).toHaveLength(CLASSIC.length);
  });

  it('leave lines in the kernel log that mean nothing and wake nobody', () => {
    const kmsg = readFileSync('test/probes/infiniband/log-lines.yaml', 'utf8').match(/mlx5_core 0000:d2:00\.0: mlx5_cmd_out_err[^"]*/)?.[0];
    const machine = keep(probeMachine(smallMachine({ 'dev/kmsg': '6,0,0,-;Linux version 7.0\n' })));
    const before = machine.collect();
    const line = `${kmsg}`.replace('0000:d2:00.0', '0000:18:00.0');
    const records = [1, 2, 3].map((seq) => `3,${seq},${seq}000000,-;${line}\n SUBSYSTEM=pci\n DEVICE=+pci:0000:18:00.0\n`);
    writeFileSync(join(machine.root, 'dev/kmsg'), `6,0,0,-;Linux version 7.0\n${records.join('')}`);
    const after = machine.collect();
    expect(after.reports.map(({ outOfBand, faults }) => ({ outOfBand, faults }))).toEqual(
      before.reports.map(({ outOfBand, faults }) => ({ outOfBand, faults })),
    );
  });
});

describe('a driver that says ACTIVE for ever', () => {
  const PCI = 'sys/devices/pci0000:00/0000:00:1d.0';
  const EFA = `${PCI}/infiniband/rdmap0s29`;
  const efa = (files: Readonly<Record<string, string>> = {}) =>
    keep(
      probeMachine({
        about: 'an EFA',
        files: {
          [`${EFA}/node_guid`]: '0000:0000:0000:0000\n',
          [`${EFA}/ports/1/state`]: '4: ACTIVE\n',
          [`${EFA}/ports/1/phys_state`]: '5: LinkUp\n',
          [`${EFA}/ports/1/rate`]: '100 Gb/sec (4X EDR)\n',
          [`${EFA}/ports/1/link_layer`]: 'Unknown\n',
          [`${EFA}/ports/1/hw_counters/rx_bytes`]: '1\n',
          ...files,
        },
        directories: ['sys/bus/pci/drivers/efa'],
        links: {
          'sys/class/infiniband/rdmap0s29': '../../devices/pci0000:00/0000:00:1d.0/infiniband/rdmap0s29',
          'sys/bus/pci/devices/0000:00:1d.0': '../../../devices/pci0000:00/0000:00:1d.0',
          [`${PCI}/driver`]: '../../../bus/pci/drivers/efa',
          [`${EFA}/device`]: '../..',
          ...('sys/class/net/ens5/carrier' in files || 'sys/class/net/ens5/operstate' in files
            ? { [`${PCI}/net/ens5`]: '../../../../class/net/ens5' }
            : {}),
        },
      }),
    );
  const told = (files: Readonly<Record<string, string>>) => {
    const report = reportOf(efa(files).collect(), 'rdmap0s29');
    const down = findingIn(report, 'PortDown', '1');
    return [valueIn(report, 'device_link_up'), down?.level ?? down?.status, findingIn(report, 'DeviceUnreachable')?.status];
  };
  const net = 'sys/class/net/ens5';

  it.each<[string, Readonly<Record<string, string>>, readonly unknown[]]>([
    ['has no state without an interface', {}, [undefined, undefined, false]],
    ['is up with its interface', { [`${net}/carrier`]: '1\n', [`${net}/operstate`]: 'up\n' }, [1, true, false]],
    ['is down without a carrier', { [`${net}/carrier`]: '0\n', [`${net}/operstate`]: 'down\n' }, [0, false, false]],
    ['is down with an interface that is set down', { [`${net}/operstate`]: 'down\n' }, [0, false, false]],
    ['is unknown with an interface that does not know', { [`${net}/operstate`]: 'unknown\n' }, [undefined, 'unknown', false]],
  ])('%s', (_, files, expected) => {
    expect(told(files)).toEqual(expected);
  });
});

describe('an adapter inside a board', () => {
  const deviceOf = (board: string): Device =>
    reportOf(keep(probeMachine(smallMachine({ [`${DEVICE}/board_id`]: `${board}\n` }))).collect(), 'mlx5_0').device;

  it.each([
    ['MT_0000001121', true],
    ['NVD0000000079', true],
    ['MT_0000000838', false],
  ])('with the board id %s: %s', (board, isInternal) => {
    const device = deviceOf(board);
    expect(device.isInternal).toBe(isInternal ? true : undefined);
    expect(countsAsDevice(device, ['vf', 'sf'])).toBe(!isInternal);
    const states = [{ key: 'infiniband/mlx5_0', device }] as never;
    expect(selectDevices({ name: 'example.com/hca', select: { family: 'infiniband' } } as never, states)).toHaveLength(isInternal ? 0 : 1);
  });

  it('is none without a board id', () => {
    expect(
      probeCase('irdma-counts-ip-packets')
        .collect()
        .reports.some(({ device }) => device.isInternal),
    ).toBe(false);
  });
});

describe('the monitor of an adapter', () => {
  const HWMON = 'sys/devices/pci0000:17/0000:18:00.0/hwmon/hwmon4';
  const files = { [`${HWMON}/name`]: 'mlx5\n', [`${HWMON}/temp1_label`]: 'asic\n', [`${HWMON}/temp2_label`]: 'Module0\n' };
  const reads = (guard: WatchingGuard): string[] => {
    const seen: string[] = [];
    guard.before = (path) => void (/temp\d_(?:input|crit)$/.test(path) && seen.push(path));
    return seen;
  };

  it('is read once a minute, with the module and its limit', () => {
    const guard = new WatchingGuard();
    const values = { [`${HWMON}/temp1_input`]: '55000\n', [`${HWMON}/temp2_input`]: '71000\n', [`${HWMON}/temp2_crit`]: '70000\n' };
    const machine = keep(probeMachine(smallMachine({ ...files, ...values }), {}, guard));
    const seen = reads(guard);
    for (let second = 0; second <= 120; second += 10) {
      machine.clock.nowMs = second * 1_000;
      machine.collect();
    }
    expect(seen.filter((path) => path.endsWith('temp1_input')).length).toBe(3);
    const report = reportOf(machine.collect(), 'mlx5_0');
    expect(report.readings.filter(({ metric }) => metric === 'device_temperature_celsius')).toMatchObject([
      { labels: { sensor: 'asic' }, value: 55 },
      { labels: { sensor: 'module0' }, value: 71 },
    ]);
    expect(findingIn(report, 'OverTemperature', 'module0')).toMatchObject({ status: true });
    expect(findingIn(report, 'OverTemperature', 'asic')).toBeUndefined();
  });

  it('whose register the firmware refuses is tried each hour', () => {
    const guard = new WatchingGuard();
    const links = { [`${HWMON}/temp1_input`]: EINVAL, [`${HWMON}/temp1_crit`]: EINVAL };
    const machine = keep(probeMachine(smallMachine(files, { links }), {}, guard));
    const seen = reads(guard);
    for (let minute = 0; minute < 180; minute += 1) {
      machine.clock.nowMs = minutes(minute);
      machine.collect();
    }
    expect(seen).toHaveLength(6);
    expect(reportOf(machine.collect(), 'mlx5_0').readings.filter(({ metric }) => metric === 'device_temperature_celsius')).toEqual([]);
  });
});
