import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { Tree } from '../../src/host/fs/tree.ts';
import { parseInteger, readHwmon, sensorSlug } from '../../src/host/hwmon.ts';
import { buildMachine, type Machine, type MachineFile } from '../support/machine.ts';

let machine: Machine | undefined;
afterEach(() => machine?.remove());

function tree(content: Omit<MachineFile, 'about'>): Tree {
  machine = buildMachine({ about: 'a hardware monitor', ...content });
  return new Tree(join(machine.root, 'sys'));
}

describe('a hardware monitor', () => {
  it('returns base units and labels, ordered by kind and then by number', () => {
    const sys = tree({
      files: {
        'sys/hwmon0/temp10_input': '41000\n',
        'sys/hwmon0/temp2_input': '-5500\n',
        'sys/hwmon0/temp2_label': 'Board Temperature\n',
        'sys/hwmon0/power1_input': '23500000\n',
        'sys/hwmon0/in0_input': '12064\n',
        'sys/hwmon0/curr1_input': '2125\n',
        'sys/hwmon0/fan1_input': '1200\n',
      },
    });
    const sensors = readHwmon(sys, 'hwmon0', { kinds: ['temp', 'power', 'in', 'curr', 'fan'] });
    expect(sensors.map(({ channel, label, value }) => [channel, label, value])).toEqual([
      ['temp2', 'Board Temperature', -5.5],
      ['temp10', undefined, 41],
      ['power1', undefined, 23.5],
      ['in0', undefined, 12.064],
      ['curr1', undefined, 2.125],
      ['fan1', undefined, 1200],
    ]);
  });

  it('opens no file of an excluded channel or of a kind that was not requested', () => {
    const sys = tree({
      files: { 'sys/hwmon0/power1_input': '1000000\n' },
      fifos: ['sys/hwmon0/power2_input', 'sys/hwmon0/power2_label', 'sys/hwmon0/in0_input', 'sys/hwmon0/power1_max'],
    });
    expect(readHwmon(sys, 'hwmon0', { kinds: ['power'], exclude: /^power2$/ })).toEqual([
      { kind: 'power', channel: 'power1', value: 1, attributes: {}, attributeErrors: {} },
    ]);
  });

  it('keeps a channel that cannot be read, with the reason', () => {
    const sys = tree({
      files: { 'sys/hwmon0/temp2_input': 'hot\n', 'sys/hwmon0/temp3_input': '' },
      links: { 'sys/hwmon0/temp1_input': 'temp1_input' },
    });
    expect(readHwmon(sys, 'hwmon0', { kinds: ['temp'] }).map(({ channel, value, error }) => [channel, value, error])).toEqual([
      ['temp1', undefined, 'ELOOP'],
      ['temp2', undefined, 'EINVAL'],
      ['temp3', undefined, 'EINVAL'],
    ]);
  });

  it('reads the requested limits and alarms', () => {
    const sys = tree({
      files: {
        'sys/hwmon0/temp1_input': '50000\n',
        'sys/hwmon0/temp1_max': '90000\n',
        'sys/hwmon0/temp1_max_alarm': '1\n',
        'sys/hwmon0/temp1_crit': 'none\n',
      },
    });
    const [sensor] = readHwmon(sys, 'hwmon0', { kinds: ['temp'], attributes: ['max', 'crit', 'emergency', 'max_alarm'] });
    expect(sensor?.attributes).toEqual({ max: 90, max_alarm: 1 });
  });

  it('uses the average when there is no present value', () => {
    const sys = tree({
      files: { 'sys/hwmon0/power1_average': '7000000\n', 'sys/hwmon0/power2_average': '1\n', 'sys/hwmon0/power2_input': '2000000\n' },
    });
    expect(readHwmon(sys, 'hwmon0', { kinds: ['power'] }).map(({ value }) => value)).toEqual([7, 2]);
  });

  it('is empty for an absent directory', () => {
    expect(readHwmon(tree({}), 'hwmon7', { kinds: ['temp'] })).toEqual([]);
  });
});

describe('integers', () => {
  it.each([
    ['0\n', 0],
    ['-12000', -12000],
    ['', undefined],
    ['1.5', undefined],
    ['0x10', undefined],
    ['12 34', undefined],
    ['18446744073709551615', undefined],
    ['9007199254740993', undefined],
  ])('%j gives %j', (text, expected) => expect(parseInteger(text)).toBe(expected));
});

describe('label texts', () => {
  it.each([
    ['FPGA FABRIC Digital Temperature #1', 'fpga_fabric_digital_temperature_1'],
    ['QSFP (Primary), Bank 3', 'qsfp_primary_bank_3'],
    ['  12V PEX Current ', '12v_pex_current'],
    ['###', ''],
  ])('%j becomes %j', (text, expected) => expect(sensorSlug(text)).toBe(expected));
});
