import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { Tree } from '../../../src/host/fs/tree.ts';
import { shared } from '../../../src/model/shared-metrics.ts';
import { DeviceFiles } from '../../../src/probes/kit/device-files.ts';
import {
  type ChannelRequest,
  channelsIn,
  findMonitor,
  parseInteger,
  readAttribute,
  readChannel,
  readMonitors,
  type SensorRow,
  sensorSlug,
} from '../../../src/probes/kit/hwmon.ts';
import { CredibleLimits } from '../../../src/probes/kit/temperature.ts';
import { buildMachine, type Machine, type MachineFile } from '../../support/machine.ts';

let machine: Machine | undefined;
afterEach(() => machine?.remove());

function monitor(content: Omit<MachineFile, 'about'>): DeviceFiles {
  machine = buildMachine({ about: 'a hardware monitor', ...content });
  return new DeviceFiles(new Tree(join(machine.root, 'sys')), 'hwmon0');
}

const valuesOf = (files: DeviceFiles, request: ChannelRequest) =>
  channelsIn(files, '.', request).map((channel) => [channel.name, channel.label, readChannel(files, channel, 'once').value] as const);

describe('a hardware monitor', () => {
  it('returns base units and labels, ordered by kind and then by number', () => {
    const files = monitor({
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
    expect(valuesOf(files, { kinds: ['temp', 'power', 'in', 'curr', 'fan'] })).toEqual([
      ['temp2', 'board_temperature', -5.5],
      ['temp10', '', 41],
      ['power1', '', 23.5],
      ['in0', '', 12.064],
      ['curr1', '', 2.125],
      ['fan1', '', 1200],
    ]);
  });

  it('opens no file of an excluded channel or of a kind that was not requested', () => {
    const files = monitor({
      files: { 'sys/hwmon0/power1_input': '1000000\n' },
      fifos: ['sys/hwmon0/power2_input', 'sys/hwmon0/power2_label', 'sys/hwmon0/in0_input', 'sys/hwmon0/power1_max'],
    });
    expect(valuesOf(files, { kinds: ['power'], exclude: /^power2$/ })).toEqual([['power1', '', 1]]);
  });

  it('keeps a channel that cannot be read, with the reason, and tells it', () => {
    const files = monitor({
      files: { 'sys/hwmon0/temp2_input': 'hot\n', 'sys/hwmon0/temp3_input': '', 'sys/hwmon0/temp4_input': '999000\n' },
      links: { 'sys/hwmon0/temp1_input': 'temp1_input' },
    });
    const values = channelsIn(files, '.', { kinds: ['temp'] }).map((channel) => readChannel(files, channel, 'once'));
    expect(values.map(({ value, error }) => value ?? error)).toEqual(['ELOOP', 'unparsable', 'empty', 'not a possible value']);
    expect(files.problems.map(({ code }) => code)).toEqual(['read-failed', 'unparsable', 'read-failed', 'impossible-value']);
    expect(files.problems[2]?.message).toBe('/sys/hwmon0: no text of temp3_input');
  });

  it('reads limits and alarms', () => {
    const files = monitor({
      files: {
        'sys/hwmon0/temp1_input': '50000\n',
        'sys/hwmon0/temp1_max': '90000\n',
        'sys/hwmon0/temp1_max_alarm': '1\n',
        'sys/hwmon0/temp1_crit': 'none\n',
      },
    });
    const [channel] = channelsIn(files, '.', { kinds: ['temp'] });
    expect(['max', 'crit', 'emergency', 'max_alarm'].map((each) => channel && readAttribute(files, channel, each))).toEqual([
      90,
      undefined,
      undefined,
      1,
    ]);
  });

  it('has an average in place of a present value, or beside it', () => {
    const files = monitor({
      files: { 'sys/hwmon0/power1_average': '7000000\n', 'sys/hwmon0/power2_average': '1\n', 'sys/hwmon0/power2_input': '2000000\n' },
    });
    expect(valuesOf(files, { kinds: ['power'] }).map(([, , value]) => value)).toEqual([7, 2]);
    expect(valuesOf(files, { kinds: ['power'], hasAverages: true }).map(([, , value]) => value)).toEqual([7, 2, 0.000001]);
  });

  it('is empty for an absent directory', () => {
    expect(channelsIn(monitor({}), 'hwmon7', { kinds: ['temp'] })).toEqual([]);
  });
});

describe('sensors by rows', () => {
  const rows: readonly SensorRow[] = [
    {
      kind: 'temp',
      metric: shared.temperature as never,
      labels: ({ name }) => ({ sensor: name }),
      absent: ({ number }) => (number === 2 ? 0 : undefined),
      limits: { metric: shared.temperatureLimit as never, of: { crit: 'crit', emergency: 'emergency' } },
    },
  ];

  it('have values, limits and what is judged; zero is no limit, and one that is not wired is absent', () => {
    const files = monitor({
      files: {
        'sys/hwmon0/temp1_input': '50000\n',
        'sys/hwmon0/temp1_crit': '90000\n',
        'sys/hwmon0/temp1_emergency': '0\n',
        'sys/hwmon0/temp2_input': '0\n',
        'sys/hwmon0/temp2_crit': '90000\n',
        'sys/hwmon0/temp3_input': 'hot\n',
        'sys/hwmon0/temp3_crit': '80000\n',
        'sys/hwmon0/temp4_crit': '70000\n',
      },
    });
    const { readings, temperatures } = readMonitors(files, new CredibleLimits(), findMonitor(files, '.', rows), 'live');
    expect(readings.map(({ labels, value }) => [labels?.sensor, labels?.limit, value])).toEqual([
      ['temp1', undefined, 50],
      ['temp1', 'crit', 90],
      ['temp2', 'crit', 90],
      ['temp3', 'crit', 80],
    ]);
    // The state of a sensor that could not be read is unknown.
    expect(temperatures).toEqual([
      { sensor: 'temp1', celsius: 50, critical: 90 },
      { sensor: 'temp3', critical: 80 },
    ]);
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
