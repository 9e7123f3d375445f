import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { IdleMeter } from '../../../src/probes/intelgpu/gts.ts';
import { simulate } from '../../../src/sim/families/intelgpu/simulate.ts';
import { kernelLogText } from '../../../src/sim/kernel-log.ts';
import { directoryOf, type ProbedMachine, reportOf, seriesOf, simulatedMachine, statusOf } from './harness.ts';

const FIRST = '0030:10:00.0';
const SECOND = '0030:11:00.0';
const LOG = 'dev/kmsg';

let machine: ProbedMachine;
beforeEach(() => {
  machine = simulatedMachine(2);
});
afterEach(() => machine.end());

const series = (address = FIRST) => seriesOf(reportOf(machine.collect(), address));
const status = (address = FIRST) => statusOf(reportOf(machine.collect(), address));

describe('energy and power', () => {
  const write = (sensor: 1 | 2, joules: number): void =>
    machine.write(`${directoryOf(machine, FIRST)}/hwmon/hwmon60/energy${sensor}_input`, `${joules * 1e6}\n`);
  const told = () =>
    Object.fromEntries(
      Object.entries(series()).filter(([name]) => name === 'device_energy_joules_total' || name.startsWith('device_power_watts')),
    );

  it('tell the whole card, and the mean power between two reads', () => {
    write(1, 1_000);
    write(2, 700);
    expect(told()).toEqual({ device_energy_joules_total: 1_000 });
    machine.forward(10_000);
    write(1, 2_500);
    write(2, 1_700);
    expect(told()).toEqual({
      device_energy_joules_total: 2_500,
      'device_power_watts{sensor=card}': 150,
      'device_power_watts{sensor=package}': 100,
    });
  });

  it('are absent after a failed read, which gives 0, and do not jump to the other sensor', () => {
    write(1, 1_000);
    write(2, 700);
    told();
    machine.forward(10_000);
    write(1, 0);
    write(2, 1_700);
    expect(told()).toEqual({ 'device_power_watts{sensor=package}': 100 });
    machine.forward(10_000);
    write(1, 2_000);
    expect(told()).toEqual({ device_energy_joules_total: 2_000 });
  });

  it('are of the package when the card counts nothing', () => {
    write(1, 0);
    write(2, 700);
    expect(told()).toEqual({ device_energy_joules_total: 700 });
  });

  it('have no power of the time that the card slept', () => {
    write(1, 1_000);
    told();
    machine.write(`${directoryOf(machine, FIRST)}/power/runtime_status`, 'suspended\n');
    machine.forward(10_000);
    expect(told()).toEqual({});
    machine.write(`${directoryOf(machine, FIRST)}/power/runtime_status`, 'active\n');
    machine.forward(10_000);
    write(1, 1_100);
    expect(told()).toEqual({ device_energy_joules_total: 1_100 });
  });
});

describe('the survivability mode', () => {
  it('is seen at the next refresh, and on a sleeping card, too', () => {
    expect(status().Survivability).toBe(false);
    machine.write(`${directoryOf(machine, FIRST)}/survivability_mode`, 'Survivability mode type: Runtime\n');
    expect(status().Survivability).toBe(true);
    machine.write(`${directoryOf(machine, FIRST)}/power/runtime_status`, 'suspended\n');
    expect(status().Survivability).toBe(true);
    expect(status(SECOND).Survivability).toBe(false);
  });
});

describe('a read that never returns', () => {
  it('leaves the card without a read, and the other card with one', () => {
    machine.end();
    machine = simulatedMachine(2, {}, (path) => (path.includes(FIRST) && path.endsWith('act_freq') ? 'EHUNG' : undefined));
    const { reports, problems } = machine.collect();
    expect(reports.map(({ device, read }) => [device.id, read === undefined])).toEqual([
      [FIRST, true],
      [SECOND, false],
    ]);
    expect(problems.map(({ code, device }) => [code, device])).toEqual([['card-hangs', FIRST]]);
  });
});

describe('the kernel log', () => {
  /** Properties that the kernel adds to what a driver prints about a device. */
  const about = (address: string): string => ` SUBSYSTEM=pci\n DEVICE=+pci:${address}\n`;
  const wedge = (seq: number, address = FIRST): string =>
    `2,${seq},900,-;xe ${address}: [drm] *ERROR* CRITICAL: Xe has declared device ${address} as wedged.\\x0aIOCTLs are blocked.\n${about(address)}`;
  const start = kernelLogText(simulate({ counts: { intelgpu: 2 }, elapsedMs: 0 }).kernelLog ?? []);

  it('tells that a card is wedged until the driver starts again', () => {
    expect(status().Wedged).toBe(false);
    machine.write(LOG, `${start}${wedge(3)}`);
    expect([status().Wedged, status(SECOND).Wedged]).toEqual([true, false]);
    machine.write(LOG, `${start}${wedge(3)}6,4,950,-;[drm] Initialized xe 1.1.0 for 0030:10:00.0 on minor 200\n`);
    expect(status().Wedged).toBe(false);
  });

  it('tells it although the card cannot be read', () => {
    machine.collect();
    machine.write(LOG, `${start}${wedge(3)}`);
    machine.remove('sys/bus');
    machine.remove('sys/class');
    const { listing, reports } = machine.collect();
    expect(listing).toBe('absent');
    expect(
      reports.map(({ device, read, outOfBand }) => [device.id, read, outOfBand?.findings.find(({ type }) => type === 'Wedged')?.status]),
    ).toEqual([
      [FIRST, undefined, true],
      [SECOND, undefined, false],
    ]);
  });

  it('denies nothing while it cannot be read, and keeps what was wrong', () => {
    machine.write(LOG, `${start}${wedge(3)}`);
    machine.collect();
    machine.remove(LOG);
    const { problems } = machine.collect();
    expect(problems.map(({ code }) => code)).toEqual(['kmsg-missing']);
    expect([status().Wedged, status().HardwareFatal]).toEqual([true, 'unknown']);
    expect(Object.keys(series()).filter((name) => name.includes('hardware_errors'))).toEqual([]);
  });

  it('without a line of the driver tells nothing about the card', () => {
    machine.write(LOG, '6,1,100,-;Linux version 7.0\n');
    expect(status().Wedged).toBe('unknown');
  });

  it('with a gap in its numbers denies nothing', () => {
    machine.write(LOG, `${start}6,5,100,-;other\n`);
    expect(status().Wedged).toBe('unknown');
    machine.write(LOG, `${start}6,5,100,-;other\n${wedge(6)}6,9,100,-;other\n`);
    expect(status().Wedged).toBe(true);
  });

  it('counts errors by severity and resets that the driver survived', () => {
    const told = ['FATAL', 'NONFATAL', 'NONFATAL'].map(
      (severity, n) => `3,${n + 3},1,-;xe ${FIRST}: [drm] *ERROR* [Hardware Error]: Tile0 reported ${severity} error 0x1\n${about(FIRST)}`,
    );
    machine.write(LOG, `${start}${told.join('')}6,6,1,-;xe ${FIRST}: [drm] device wedged, but recovered through reset\n${about(FIRST)}`);
    expect(series()).toMatchObject({
      'device_intelgpu_hardware_errors_total{severity=fatal}': 1,
      'device_intelgpu_hardware_errors_total{severity=nonfatal}': 2,
      'device_intelgpu_hardware_errors_total{severity=correctable}': 0,
      device_intelgpu_recoveries_total: 1,
    });
    expect(status().HardwareFatal).toBe(true);
    expect(status().Wedged).toBe(false);
  });
});

describe('the time in C6', () => {
  const meter = new IdleMeter();
  it.each([
    [{ gt0: 1_000 }, 0, false],
    [{ gt0: 10_995 }, 10_000, true],
    [{ gt0: 20_000 }, 20_000, false],
    [{ gt0: 25_000, gt1: 25_000 }, 25_000, false],
    [{ gt0: 35_000, gt1: 34_000 }, 35_000, false],
    [{ gt0: 45_000, gt1: 44_000 }, 45_000, true],
    [{ gt0: 45_500, gt1: 44_500 }, 45_500, false],
    [{ gt0: 3, gt1: 3 }, 60_000, false],
  ])('of %j at %i ms: idle %s', (residency, atMs, expected) => {
    expect(meter.awake(new Map(Object.entries(residency)), atMs)).toBe(expected);
  });
});

describe('the simulated node', () => {
  const holder = { podUid: '1f0c2a4e-7b3d-4c59-9a86-0d5e7f1b2c3d', program: 'train', isIdle: false };
  const scenario = { counts: { intelgpu: 2 } };

  it('has no card unless it is asked for one', () => {
    expect(simulate({ ...scenario, counts: {}, elapsedMs: 0 })).toEqual({ files: {}, links: {}, resources: [] });
  });

  it('gives the card to the process of its pod, whose use and temperature follow the work', () => {
    const at = (elapsedMs: number): void => {
      const { files, links } = simulate({
        ...scenario,
        elapsedMs,
        faults: [{ name: 'hot', device: SECOND, fromMs: 60_000 }],
        use: { 'card201-0': { activeMs: elapsedMs / 2, holder }, 'card200-0': { activeMs: 0 } },
      });
      for (const [path, text] of Object.entries(files)) machine.write(path, text);
      for (const [path, target] of Object.entries(links)) {
        if (!path.startsWith('proc/')) continue;
        machine.remove(path);
        machine.link(path, target);
      }
    };
    at(10_000);
    machine.collect();
    machine.forward(60_000);
    at(70_000);
    const report = reportOf(machine.collect(), SECOND);
    expect(report.processes).toMatchObject([{ pid: 40_001, name: 'train', podUid: holder.podUid, utilization: { render: 0 } }]);
    expect(report.processes?.[0]?.utilization?.compute).toBeCloseTo(0.45);
    expect(seriesOf(report)['device_power_watts{sensor=card}']).toBeCloseTo(85);
    expect(statusOf(report)).toMatchObject({ 'OverTemperature/package': true, 'Throttled/thermal': true });
    expect(reportOf(machine.collect(), FIRST).processes).toEqual([]);
  });
});
