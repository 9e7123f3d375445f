import { cpSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { StepGuard } from '../../../src/host/fs/step-guard.ts';
import type { Collection } from '../../../src/model/collection.ts';
import { breakFile, holding, type ProbedMachine, probeMachine, reportOf, seriesValue, write } from './harness.ts';

const PCI = 'sys/devices/pci0000:00/0000:00:01.0';
const USER = `${PCI}/0000:b3:00.1`;
const N6000 = `${PCI}/0000:01:00.0`;
const N6000_ENGINE = `${N6000}/fpga_region/region0/dfl-fme.0`;
const N6000_MONITOR = `${N6000_ENGINE}/dfl_dev.3/n6000bmc-hwmon.1.auto/hwmon/hwmon1`;

const open: ProbedMachine[] = [];
afterEach(() => {
  for (const { machine } of open.splice(0)) machine.remove();
});

function probe(name: string, guard?: StepGuard): ProbedMachine {
  const probed = probeMachine(name, undefined, {}, guard);
  open.push(probed);
  return probed;
}

const messages = ({ problems }: Collection): readonly string[] => problems.map(({ code, message }) => `${code} ${message}`);

describe('a problem of a read that has an interval', () => {
  it('is reported as long as the result of the read is kept', () => {
    const { machine, collect, forward } = probe('alveo-u250-in-use');
    write(machine, `${USER}/icap.u.1/clock_freqs`, 'fast\n');
    const first = messages(collect());
    expect(first).toEqual([expect.stringMatching(/^unparsable .*clock_freqs/)]);
    forward(10_000);
    expect(messages(collect())).toEqual(first);
    write(machine, `${USER}/icap.u.1/clock_freqs`, '300\n');
    forward(20_000);
    expect(messages(collect())).toEqual([]);
  });

  it('is reported for a sensor that fails while other sensors answer', () => {
    const { machine, collect, forward } = probe('n6000-thermal-not-wired');
    breakFile(machine, `${N6000_MONITOR}/temp1_input`);
    const told = [expect.stringMatching(/^read-failed \/sys\/.*\/hwmon1: EISDIR of temp1$/)];
    expect(messages(collect())).toEqual(told);
    forward(10_000);
    const collection = collect();
    expect(messages(collection)).toEqual(told);
    expect(reportOf(collection, '0000:01:00.0').findings.find(({ type }) => type === 'BmcStalled')?.status).toBe(false);
  });
});

describe('a value that is read once an hour', () => {
  const crit = `${N6000_MONITOR}/temp1_crit`;
  const version = `${N6000_ENGINE}/dfl_dev.3/bmcfw_version`;
  const told = (collection: Collection): readonly unknown[] => {
    const card = reportOf(collection, '0000:01:00.0');
    const { labels } = card.readings.find(({ metric }) => metric === 'device_fpga_info') ?? {};
    const limit = seriesValue(card, 'device_temperature_limit_celsius', { sensor: 'fpga_p_tile_temperature', limit: 'crit' });
    return [limit, labels?.bmc_version];
  };

  it('is read again at the next sweep after a failure', () => {
    const { machine, collect, forward } = probe('n6000-thermal-not-wired');
    for (const file of [crit, version]) breakFile(machine, file);
    const first = collect();
    expect(told(first)).toEqual([undefined, '']);
    expect(messages(first).toSorted()).toEqual([
      expect.stringMatching(/^read-failed .*hwmon1: EISDIR of temp1_crit$/),
      expect.stringMatching(/^read-failed .*EISDIR of bmcfw_version$/),
    ]);
    for (const file of [crit, version]) rmSync(join(machine.root, file), { recursive: true });
    write(machine, crit, '100000\n');
    write(machine, version, '0x3020100\n');
    expect(told(collect())).toEqual([undefined, '']);
    forward(30_000);
    const second = collect();
    expect([told(second), messages(second)]).toEqual([[100, '0x3020100'], []]);
  });

  it('is read at once when a sensor starts to answer', () => {
    const { machine, collect, forward } = probe('n6000-thermal-not-wired');
    breakFile(machine, `${N6000_MONITOR}/temp1_input`);
    write(machine, crit, 'no module\n');
    expect(told(collect())[0]).toBeUndefined();
    rmSync(join(machine.root, N6000_MONITOR, 'temp1_input'), { recursive: true });
    write(machine, `${N6000_MONITOR}/temp1_input`, '50000\n');
    write(machine, crit, '100000\n');
    forward(30_000);
    expect(told(collect())[0]).toBe(100);
  });

  it('is not read again within the hour after a success', () => {
    const { machine, collect, forward } = probe('n6000-thermal-not-wired');
    write(machine, crit, '100000\n');
    expect(told(collect())).toEqual([100, '0x3020100']);
    write(machine, crit, '90000\n');
    forward(3_599_000);
    expect(told(collect())[0]).toBe(100);
    forward(1_000);
    expect(told(collect())[0]).toBe(90);
  });
});

/** Records the reads of a driver's own files. */
class Listener extends StepGuard {
  readonly heard: string[] = [];

  override enter(path: string): string | undefined {
    if (/\/(?:fpga_region|hwmon)\//.test(path)) this.heard.push(path);
    return super.enter(path);
  }
}

describe('a board that falls asleep', () => {
  it('is not read while it sleeps, and is read again as soon as it wakes', () => {
    const listener = new Listener();
    const { machine, collect } = probe('n6000-thermal-not-wired', listener);
    collect();
    expect(listener.heard.splice(0)).not.toEqual([]);
    write(machine, `${N6000}/power_state`, 'D3hot\n');
    expect(reportOf(collect(), '0000:01:00.0').readings.length).toBe(0);
    expect(listener.heard).toEqual([]);
    write(machine, `${N6000}/power_state`, 'D0\n');
    expect(reportOf(collect(), '0000:01:00.0').readings.length).toBeGreaterThan(0);
    expect(listener.heard).not.toEqual([]);
  });
});

describe('the monitors of one board', () => {
  it('share their names, and are judged as one controller', () => {
    const { machine, collect } = probe('n6000-thermal-not-wired');
    const second = N6000_MONITOR.replace('dfl_dev.3/n6000bmc-hwmon.1.auto/hwmon/hwmon1', 'dfl_dev.4/other-hwmon.2.auto/hwmon/hwmon9');
    cpSync(join(machine.root, N6000_MONITOR), join(machine.root, second), { recursive: true });
    write(machine, `${second}/temp1_input`, '33000\n');
    symlinkSync(`../../${second.slice('sys/'.length)}`, join(machine.root, 'sys/class/hwmon/hwmon9'));
    const card = reportOf(collect(), '0000:01:00.0');
    const celsius = (sensor: string): unknown => seriesValue(card, 'device_temperature_celsius', { sensor });
    expect([celsius('fpga_p_tile_temperature'), celsius('fpga_p_tile_temperature_temp1')]).toEqual([50, 33]);
    expect(card.findings.filter(({ type }) => type === 'BmcStalled')).toHaveLength(1);
    const names = card.findings.map(({ type, instance }) => `${type}/${instance}`);
    expect(names.filter((one, at) => names.indexOf(one) !== at)).toEqual([]);
  });

  it('do not count as a controller while their name is unknown', () => {
    const { machine, collect } = probe('n6000-thermal-not-wired');
    breakFile(machine, `${N6000_ENGINE}/hwmon/hwmon0/name`);
    const collection = collect();
    expect(messages(collection)).toEqual([expect.stringMatching(/^read-failed .*hwmon0: EISDIR of name$/)]);
    const card = reportOf(collection, '0000:01:00.0');
    expect(seriesValue(card, 'device_temperature_celsius', { sensor: 'temp1' })).toBeUndefined();
    expect(card.findings.filter(({ type }) => type === 'BmcStalled')).toHaveLength(1);
  });
});

describe('sensors with the same label', () => {
  it('keep their names while the first of them reads 0', () => {
    const { machine, collect, forward } = probe('alveo-u250-in-use');
    const monitor = `${USER}/xmc.u.20971520/hwmon/hwmon4`;
    for (const channel of ['temp1', 'temp4']) write(machine, `${monitor}/${channel}_label`, 'FPGA TEMP\n');
    write(machine, `${monitor}/temp1_input`, '40000\n');
    write(machine, `${monitor}/temp4_input`, '98000\n');
    const celsius = (): readonly unknown[] => {
      const board = reportOf(collect(), '0000:b3:00.1');
      return ['fpga_temp', 'fpga_temp_temp4'].map((sensor) => seriesValue(board, 'device_temperature_celsius', { sensor }));
    };
    expect(celsius()).toEqual([40, 98]);
    write(machine, `${monitor}/temp1_input`, '0\n');
    forward(30_000);
    expect(celsius()).toEqual([undefined, 98]);
    expect(holding(reportOf(collect(), '0000:b3:00.1'))).toEqual({});
  });
});
