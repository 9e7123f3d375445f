import { readdirSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { createPolicy } from '../../../src/health/policy/policy.ts';
import { StepGuard } from '../../../src/host/fs/step-guard.ts';
import type { DeviceReport } from '../../../src/model/collection.ts';
import { family } from '../../../src/probes/fpga/index.ts';
import { OneDevice } from '../../health/one-device.ts';
import type { Machine } from '../../support/machine.ts';
import { toldOf } from '../../support/told.ts';
import { breakFile, folder, holding, type ProbedMachine, probeMachine, reportOf, seriesValue, write } from './harness.ts';

const PCI = 'sys/devices/pci0000:00/0000:00:01.0';
const USER = `${PCI}/0000:b3:00.1`;
const cases = readdirSync(folder).filter((name) => !/\.(?:ts|yaml)$/.test(name));

const open: ProbedMachine[] = [];
afterEach(() => {
  for (const { machine } of open.splice(0)) machine.remove();
});

function probe(
  name: string,
  change?: (machine: Machine) => void,
  more?: Readonly<Record<string, string>>,
  guard?: StepGuard,
): ProbedMachine {
  const probed = probeMachine(name, change, more, guard);
  open.push(probed);
  return probed;
}

/** Files that the probe must never open, with the reason. */
const FORBIDDEN: readonly (readonly [RegExp, string])[] = [
  [/\/error$/, 'a read clears it'],
  [/\/mig_cache_update$/, 'asks the firmware'],
  [/\/firewall\.u\.\d+\//, 'asks the management function'],
  [/\/firewall\.m\.\d+\/(?!status$|level$)/, 'writes or asks more'],
  [/\/xocl_errors$|\/pcie_bw$/, 'has no version, or blocks'],
  [/\/shutdown$|\/dev_hotplug_done$|_reset$|_clear$|_inject/, 'can be written'],
  [/^(?!.*c6100bmc).*\/(?:power2|temp15)_/, 'sets a target of XRT'],
  [/\/userclk_|\/errors\/(?:clear|first_malformed_req)$/, 'sets a clock, clears, or is not needed'],
  [/\/xgq_vmr\.m\./, 'sends a command'],
  [/\/dev\//, 'opening a node is no probe'],
];

/** Counts the reads, and aborts the collection before a forbidden read: a FIFO in that place would block. */
class Witness extends StepGuard {
  reads = 0;

  override enter(path: string): string | undefined {
    this.reads += 1;
    if (FORBIDDEN.some(([pattern]) => pattern.test(path))) throw new Error(`${path} is read`);
    return super.enter(path);
  }
}

describe('every machine', () => {
  it.each(cases)('%s is read without opening a file that a read changes', (name) => {
    const witness = new Witness();
    const { collect } = probe(name, undefined, {}, witness);
    collect();
    if (name !== 'no-hardware') expect(witness.reads).toBeGreaterThan(0);
  });

  it.each(cases)('%s is read completely although files hang, twice with the same result', (name) => {
    const { collect } = probe(name);
    const first = collect();
    expect(collect()).toEqual(first);
    const ids = first.reports.map(({ device }) => device.id);
    expect(new Set(ids).size).toBe(ids.length);
    for (const { device, readings } of first.reports.map(toldOf)) {
      const series = readings.map(({ metric, labels }) => `${metric}${JSON.stringify(labels ?? {})}`);
      expect(
        series.filter((one, index) => series.indexOf(one) !== index),
        `doubled series of ${device.id}`,
      ).toEqual([]);
      for (const { metric, labels = {} } of readings) {
        expect(Object.keys(labels).sort(), metric).toEqual(
          [...(family.metrics.find(({ name }) => name === metric)?.labels ?? ['?'])].sort(),
        );
      }
    }
    for (const { findings } of first.reports.map(toldOf)) {
      const named = findings.map(({ type, instance }) => `${type}/${instance ?? ''}`);
      expect(named.filter((one, index) => named.indexOf(one) !== index)).toEqual([]);
      for (const { type, reason } of findings) expect(family.conditions.find((spec) => spec.type === type)?.reasons).toContain(reason);
    }
  });

  it('together show every metric but the one of the log, which these reads leave out', () => {
    const seen = new Set(
      cases.flatMap((name) =>
        probe(name)
          .collect()
          .reports.flatMap((report) => toldOf(report).readings.map(({ metric }) => metric)),
      ),
    );
    expect(family.metrics.map(({ name }) => name).filter((name) => !seen.has(name))).toEqual(['device_kernel_log_events_total']);
  });

  it('without hardware has no device and no problem', () =>
    expect(probe('no-hardware').collect()).toEqual({ reports: [], problems: [], listing: 'absent' }));
});

describe('values without a meaning', () => {
  it('of an unwired sensor, an absent part and a disabled power limit are absent', () => {
    const card = reportOf(probe('n6000-thermal-not-wired').collect(), '0000:01:00.0');
    expect(seriesValue(card, 'device_temperature_celsius', { sensor: 'fpga' })).toBeUndefined();
    const throttled = reportOf(probe('d5005-throttled').collect(), '0000:86:00.0');
    expect(seriesValue(throttled, 'device_power_limit_watts', { limit: 'xeon' })).toBeUndefined();
    expect(seriesValue(throttled, 'device_power_limit_watts', { limit: 'fpga' })).toBe(65.5);
    const alveo = reportOf(probe('alveo-u250-in-use').collect(), '0000:b3:00.1');
    expect(seriesValue(alveo, 'device_temperature_celsius', { sensor: 'hbm_temp' })).toBeUndefined();
    expect(seriesValue(alveo, 'device_errors_total', { bank: 'bank1', kind: 'ecc_correctable' })).toBeUndefined();
  });

  it('keeps a counter beyond 2^53 exact', () => {
    const alveo = reportOf(probe('alveo-u250-in-use').collect(), '0000:b3:00.1');
    expect(seriesValue(alveo, 'device_fpga_executions_total')).toBe(9_007_199_254_740_993n);
  });
});

describe('boards of DFL', () => {
  it('keep their names when the kernel renumbers the class directory', () => {
    const { collect } = probe('port-renumbered');
    expect(collect().reports.map(({ device }) => [device.id, device.aliases])).toEqual([
      ['0000:3b:00.0', ['dfl-fme.1', 'dfl-port.1']],
      ['0000:3b:00.0-port0', ['dfl-port.1']],
      ['0000:5e:00.0', ['dfl-fme.0', 'dfl-port.0']],
      ['0000:5e:00.0-port0', ['dfl-port.0']],
    ]);
  });

  it('include the ports of their virtual functions, so the board gets no port name as alias', () => {
    const { reports } = probe('port-on-virtual-function').collect();
    expect(reports.map(({ device }) => [device.id, device.parent, device.aliases])).toEqual([
      ['0000:3b:00.0', undefined, ['dfl-fme.0']],
      ['0000:3b:00.0-port0', '0000:3b:00.0', ['dfl-port.0']],
      ['0000:3b:00.1-port1', '0000:3b:00.0', ['dfl-port.1']],
    ]);
  });

  it('accept registers that older drivers print as a plain 0', () => {
    const { reports, problems } = probe('n3000-bare-zeros').collect();
    expect(problems).toEqual([]);
    expect(reports.map((report) => holding(toldOf(report)))).toEqual([{}, {}]);
  });

  it('report throttling, its latched event and a running update', () => {
    const collection = probe('d5005-throttled').collect();
    expect(holding(reportOf(collection, '0000:86:00.0'))).toEqual({
      'NonfatalError/nonfatal_errors': 'RegisterSet',
      'Throttled/temperature_max': 'TemperatureAlarm',
      'Throttled/power_max': 'PowerAlarm',
      'UpdateRunning/upload': 'Uploading',
    });
    expect(holding(reportOf(collection, '0000:86:00.0-port0'))).toEqual({
      // No new work may start on a port during a firmware update of the board.
      CardFault: 'CardHasFatalCondition',
      'Throttled/power_state': 'PowerState',
      'ThrottleEvent/ap1': 'Latched',
    });
  });

  it('do not count injected bits as faults', () => {
    const card = reportOf(probe('emergency-power-down').collect(), '0000:01:00.0');
    expect(card.findings.find(({ type }) => type === 'NonfatalError')?.status).toBe(false);
    expect(holding(card)).toEqual({
      'FatalError/catfatal_errors': 'ThermalRunaway',
      'PcieInterfaceError/pcie0_errors': 'CompletionTimeout (fatal)',
      ErrorInjected: 'InjectionActive',
    });
  });

  it('make a port error fatal only with the option strict-port-errors', () => {
    const severity = (options: Readonly<Record<string, string>>): string | undefined =>
      reportOf(probe('a10-errors-in-port-and-engine', undefined, options).collect(), '0000:3b:00.0-port0').findings.find(
        ({ type }) => type === 'PortError',
      )?.severity;
    expect(severity({})).toBeUndefined();
    expect(severity({ 'strict-port-errors': 'true' })).toBe('fatal');
  });

  it('report a board fault for a checksum error, not for an unknown state', () => {
    const collection = probe('programming-failed').collect();
    expect(holding(reportOf(collection, '0000:01:00.0'))).toEqual({ ProgramFailed: 'HardwareRefused (fatal)' });
    const newer = reportOf(collection, '0000:02:00.0');
    expect(holding(newer)).toEqual({});
    expect(newer.readings.filter(({ metric }) => metric === 'device_fpga_manager_state')).toEqual([]);
    expect(holding(reportOf(collection, '0000:03:00.0'))).toEqual({ 'Reconfiguring/manager': 'Programming' });
  });

  it('report a problem for each unreadable file; a latched condition becomes unknown, not clear', () => {
    const collection = probe('unreadable-files').collect();
    expect(collection.problems.map(({ code, device }) => [code, device])).toEqual([
      ['address-unknown', undefined],
      ['read-failed', '0000:01:00.0'],
      ['unparsable', '0000:01:00.0'],
      ['read-failed', '0000:01:00.0-port0'],
      ['unparsable', '0000:01:00.0-port0'],
      ['port-number-unknown', '0000:01:00.0'],
    ]);
    const statuses = reportOf(collection, '0000:01:00.0').findings.map(({ type, status }) => [type, status]);
    expect(statuses).toContainEqual(['FatalError', 'unknown']);
    expect(statuses).toContainEqual(['FmeError', 'unknown']);
    expect(statuses).toContainEqual(['NonfatalError', false]);
  });

  it('that left the bus are reported as gone, with their ports, and no driver file is read', () => {
    const { collect } = probe('n3000-bare-zeros', (machine) => {
      const config = Buffer.alloc(256, 0xff);
      write(machine, `${PCI}/0000:05:00.0/config`, config);
    });
    const collection = collect();
    const card = reportOf(collection, '0000:05:00.0');
    expect(holding(card)).toEqual({ PciFunctionGone: 'ConfigurationAllOnes' });
    expect(card.readings).toHaveLength(0);
    expect(collection.reports).toHaveLength(1);
  });

  it('keep a port whose number was known before the board left the bus', () => {
    const { machine, collect } = probe('n3000-bare-zeros');
    collect();
    write(machine, `${PCI}/0000:05:00.0/config`, Buffer.alloc(64, 0xff));
    expect(holding(reportOf(collect(), '0000:05:00.0-port0'))).toEqual({ CardFault: 'CardHasFatalCondition' });
  });

  it('accept a virtual function whose header begins with all ones', () => {
    const header = Buffer.concat([Buffer.from([0xff, 0xff, 0xff, 0xff]), Buffer.alloc(60)]);
    const { collect } = probe('port-on-virtual-function', (machine) => write(machine, `${PCI}/0000:3b:00.1/config`, header));
    expect(holding(reportOf(collect(), '0000:3b:00.1-port1'))).toEqual({});
  });
});

describe('counters that the probe keeps', () => {
  const port = `${PCI}/0000:05:00.0/fpga_region/region0/dfl-port.0`;
  const read = (probed: ProbedMachine, metric: string, labels = {}): number | bigint | undefined =>
    seriesValue(reportOf(probed.collect(), '0000:05:00.0-port0'), metric, labels);

  it('count a new accelerator, but not a time without one', () => {
    const probed = probe('n3000-bare-zeros');
    const count = (): number | bigint | undefined => read(probed, 'device_fpga_reconfigurations_total');
    expect(count()).toBe(0);
    breakFile(probed.machine, `${port}/afu_id`);
    expect(count()).toBe(0);
    rmSync(join(probed.machine.root, port, 'afu_id'), { recursive: true });
    write(probed.machine, `${port}/afu_id`, `${'f'.repeat(32)}\n`);
    expect(count()).toBe(0);
    write(probed.machine, `${port}/afu_id`, 'd8424dc4a4a3c413f89e433683f9040b\n');
    expect(count()).toBe(1);
    expect(count()).toBe(1);
  });
});

describe('slow sensors', () => {
  const monitor = `${PCI}/0000:01:00.0/fpga_region/region0/dfl-fme.0/dfl_dev.3/n6000bmc-hwmon.1.auto/hwmon/hwmon1`;
  const temperature = (probed: ProbedMachine): number | bigint | undefined =>
    seriesValue(reportOf(probed.collect(), '0000:01:00.0'), 'device_temperature_celsius', { sensor: 'fpga_p_tile_temperature' });

  it('of a board controller are read again only after the interval', () => {
    const probed = probe('n6000-thermal-not-wired');
    expect(temperature(probed)).toBe(50);
    write(probed.machine, `${monitor}/temp1_input`, '61000\n');
    probed.forward(29_000);
    expect(temperature(probed)).toBe(50);
    probed.forward(1_000);
    expect(temperature(probed)).toBe(61);
  });

  it('above their critical value stay critical until they are five degrees below it', () => {
    const probed = probe('n6000-thermal-not-wired');
    const isOver = (celsius: number): boolean => {
      write(probed.machine, `${monitor}/temp10_input`, `${celsius * 1_000}\n`);
      probed.forward(30_000);
      return 'OverTemperature/board_rear_side_temperature' in holding(reportOf(probed.collect(), '0000:01:00.0'));
    };
    expect([99, 100, 96, 94, 96].map(isOver)).toEqual([false, true, true, false, false]);
  });

  it('make the controller count as hung after three sweeps without an answer', () => {
    const probed = probe('n6000-thermal-not-wired');
    const status = (): unknown => {
      probed.forward(30_000);
      return reportOf(probed.collect(), '0000:01:00.0').findings.find(({ type }) => type === 'BmcStalled')?.status;
    };
    expect(status()).toBe(false);
    const inputs = readdirSync(join(probed.machine.root, monitor)).filter((name) => name.endsWith('_input'));
    for (const file of inputs) breakFile(probed.machine, `${monitor}/${file}`);
    expect([status(), status(), status()]).toEqual(['unknown', 'unknown', true]);
  });

  it('with the same label get the channel as a suffix', () => {
    const card = reportOf(probe('n6000-thermal-not-wired').collect(), '0000:01:00.0');
    expect(seriesValue(card, 'device_temperature_celsius', { sensor: 'fpga_fabric_digital_temperature_1' })).toBe(48.5);
    expect(seriesValue(card, 'device_temperature_celsius', { sensor: 'fpga_fabric_digital_temperature_1_temp3' })).toBe(49);
  });
});

describe('Alveo boards', () => {
  it('report a tripped firewall, a stalled controller and lost memory', () => {
    const report = reportOf(probe('alveo-firewall-tripped').collect(), '0000:b3:00.1');
    expect(holding(report)).toEqual({
      BadState: 'SchedulerGaveUp',
      BmcStalled: 'HeartbeatStalled',
      'EccUncorrectable/bank0': 'StatusSet',
      FirewallTripped: 'StatusSet',
      'MemoryUncalibrated/all': 'CalibrationFailed',
      'RecoveryImage/management': 'RecoveryBooted',
    });
    expect(report.findings.find(({ type }) => type === 'FirewallTripped')?.message).toBe('firewall status 4 at level 0');
    expect(report.readings.filter(({ metric }) => /temperature|power_watts|fan/.test(metric))).toEqual([]);
  });

  it('in a reset report only the reset', () => {
    expect(holding(reportOf(probe('alveo-during-reset').collect(), '0000:b3:00.1'))).toEqual({ 'Reconfiguring/user': 'ResetRunning' });
  });

  it('have no memory fault before the first load, and are not offline because of an errno', () => {
    expect(holding(reportOf(probe('alveo-not-ready-in-vm').collect(), '0000:00:05.0'))).toEqual({ NotReady: 'PeerNotReady' });
  });

  it('are degraded from 88 °C and fail from 97 °C, with hysteresis at both', () => {
    const probed = probe('alveo-u250-in-use');
    const at = (celsius: number): string | undefined => {
      write(probed.machine, `${USER}/xmc.u.20971520/hwmon/hwmon4/temp4_input`, `${celsius * 1_000}\n`);
      probed.forward(30_000);
      return holding(reportOf(probed.collect(), '0000:b3:00.1'))['OverTemperature/fpga_temp'];
    };
    const warning = 'AboveWarning (degraded)';
    expect([87, 88, 97, 93, 91, 84, 82].map(at)).toEqual([
      undefined,
      warning,
      'AboveCritical',
      'AboveCritical',
      warning,
      warning,
      undefined,
    ]);
  });

  it('keep the name of a user function that vanished', () => {
    const { machine, collect } = probe('alveo-u250-in-use');
    collect();
    rmSync(join(machine.root, 'sys/bus/pci/devices/0000:b3:00.1'));
    const { reports } = collect();
    expect(reports.map(({ device }) => device.id)).toEqual(['0000:b3:00.1']);
    expect(holding(toldOf(reports[0] as DeviceReport))).toEqual({ FunctionLost: 'UserFunctionGone' });
  });

  it.each([
    ['was given to a virtual machine', '../../../../bus/pci/drivers/vfio-pci', { HandedOver: 'OtherDriver' }],
    ['has no driver any more', undefined, { DriverUnbound: 'NoDriver' }],
  ])('have not lost a user function that %s', (_, driver, held) => {
    const { machine, collect } = probe('alveo-u250-in-use');
    collect();
    const user = join(machine.root, USER);
    rmSync(user, { recursive: true });
    write(machine, `${USER}/vendor`, '0x10ee\n');
    if (driver !== undefined) symlinkSync(driver, join(user, 'driver'));
    const { reports } = collect();
    expect(reports.map(({ device }) => device.id)).toEqual(['0000:b3:00.1']);
    expect(holding(toldOf(reports[0] as DeviceReport))).toEqual(held);
  });

  it('have lost data when the uncorrectable count grows; the first count is ignored', () => {
    const probed = probe('alveo-u250-in-use');
    const { device } = reportOf(probed.collect(), '0000:b3:00.1');
    const { policy } = createPolicy({ specs: { fpga: family.conditions } });
    const board = new OneDevice(policy, undefined, device);
    let at = 0;
    const lost = (count: number): string | undefined => {
      write(probed.machine, `${USER}/mig.u.1/ecc_ue_cnt`, `${count}\n`);
      at += 10;
      const { conditions } = board.read(at, ...reportOf(probed.collect(), '0000:b3:00.1').findings);
      return conditions.find(({ type, instance }) => type === 'EccUncorrectable' && instance === 'bank0/count')?.reason;
    };
    expect([3, 3, 4, 4, 0, 0, 1].map(lost)).toEqual([
      undefined,
      undefined,
      'CounterGrew',
      'CounterGrew',
      undefined,
      undefined,
      'CounterGrew',
    ]);
  });

  it('report their client processes with their pods', () => {
    expect(reportOf(probe('alveo-u250-in-use').collect(), '0000:b3:00.1').processes).toEqual([
      { pid: 4242, podUid: '0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0', containerId: 'ab'.repeat(32) },
      { pid: 4243 },
    ]);
  });
});

describe('other boards', () => {
  it('without a driver are not in use; those on vfio-pci are handed over; devices of other kinds are ignored', () => {
    const { reports } = probe('boards-without-driver').collect();
    expect(reports.map((report) => [report.device.id, holding(toldOf(report))])).toEqual([
      ['0000:01:00.0', { NotInUse: 'NoDriver', DriverUnbound: 'NoDriver' }],
      ['0000:02:00.0', { HandedOver: 'OtherDriver' }],
    ]);
  });

  it('in a SoC get the name of their platform device', () => {
    const [report] = probe('zynqmp-manager-only').collect().reports;
    expect(report?.device).toMatchObject({ id: 'firmware:zynqmp-firmware:pcap', kind: 'fpga', model: 'Xilinx ZynqMP FPGA Manager' });
  });

  it('that sleep are listed, and none of their files is opened', () => {
    const { reports, problems } = probe('sleeping-board').collect();
    expect(reports.map((report) => [report.device.id, toldOf(report).readings.length])).toEqual([['0000:01:00.0', 0]]);
    expect(problems).toEqual([]);
  });
});
