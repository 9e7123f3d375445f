import { existsSync, readFileSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import koffi from 'koffi';
import { afterEach, describe, expect, it } from 'vitest';
import { StepGuard } from '../../../src/host/fs/step-guard.ts';
import { encodeSmartCommand, loadIoctl, numberOf } from '../../../src/probes/nvme/smart-reader.ts';
import { compiledLibrary } from '../../support/compiled-library.ts';
import { WatchedGuard } from '../../support/guarded.ts';
import { emptyMachine, holding, type ProbedMachine, type ProbeParts, reportOf, seriesOf, statusOf } from './harness.ts';

const DRIVE = '0000:01:00.0';
const CONTROLLER = 'sys/class/nvme/nvme0';

let machine: ProbedMachine;
afterEach(() => machine.end());

/** A machine with one drive whose device node is that of `/dev/null`, and with a C library that answers as a drive. */
function answeringMachine(answer: number, parts: ProbeParts = {}): ProbedMachine {
  const library = compiledLibrary('test/probes/nvme/ioctl.c');
  koffi.load(library).func('void answer_with(int code)')(answer);
  machine = emptyMachine({ smart: 'true' }, { loadIoctl: () => loadIoctl(library), ...parts });
  machine.write(`${CONTROLLER}/state`, 'live\n');
  machine.write(`${CONTROLLER}/address`, `${DRIVE}\n`);
  machine.write(`${CONTROLLER}/dev`, '1:3\n');
  machine.link('dev/nvme0', '/dev/null');
  return machine;
}

const problems = (): readonly string[] => machine.collect().problems.map(({ code, message }) => `${code}: ${message}`);

describe('the admin command', () => {
  it('reads the log that a drive gives', () => {
    answeringMachine(0);
    const collection = machine.collect();
    expect(collection.problems).toEqual([]);
    const report = reportOf(collection, DRIVE);
    expect(seriesOf(report)).toMatchObject({
      'device_temperature_celsius{sensor=composite}': 36.85,
      device_nvme_available_spare_ratio: 0.97,
      device_nvme_used_life_ratio: 1.01,
      'device_nvme_lifetime_commands_total{command=read}': 2n ** 64n + 1n,
      'device_errors_total{kind=media}': 3,
      'device_nvme_critical_warning{warning=reliability}': 1,
    });
    expect(holding(report)).toEqual({ ReliabilityDegraded: 'Warning', WornOut: 'LifeUsed' });
  });

  it.each([
    [-13, 'smart-refused: NVME_IOCTL_ADMIN_CMD fails with EACCES'],
    [-25, 'smart-failed: NVME_IOCTL_ADMIN_CMD fails with ENOTTY'],
    [0x2002, 'smart-failed: the drive answers with status 0x2002'],
    [999, 'smart-failed: the log of nvme0 holds only zeros or only ones'],
  ])('with the answer %i leaves the values out and says why', (answer, problem) => {
    answeringMachine(answer);
    expect(problems()).toEqual([problem]);
    const report = reportOf(machine.collect(), DRIVE);
    expect(Object.keys(seriesOf(report))).toEqual(['device_nvme_state{state=live}', 'device_nvme_asleep']);
    expect(statusOf(machine.collect(), DRIVE, 'ReliabilityDegraded')).toBe('unknown');
  });

  it('is not sent to the node of another device, to a file, or without a node', () => {
    answeringMachine(0);
    machine.write(`${CONTROLLER}/dev`, '241:0\n');
    expect(problems()).toEqual([`smart-failed: ${machine.root}/dev/nvme0 is the node of another device`]);
    machine.end();
    answeringMachine(0);
    machine.remove('dev/nvme0');
    machine.write('dev/nvme0', '');
    expect(problems()).toEqual([`smart-failed: ${machine.root}/dev/nvme0 is no character device`]);
    machine.end();
    answeringMachine(0);
    machine.remove('dev/nvme0');
    expect(problems()).toEqual([`smart-failed: opening ${machine.root}/dev/nvme0 fails with ENOENT`]);
  });

  it('fails with the error of the real system on a node that is no drive', () => {
    answeringMachine(0, { loadIoctl: () => loadIoctl() });
    expect(problems()).toEqual(['smart-failed: NVME_IOCTL_ADMIN_CMD fails with ENOTTY']);
  });

  it('is not sent while an earlier one hangs, and the guard knows it while it runs', () => {
    const guard = new StepGuard(['nvme/nvme0']);
    answeringMachine(0, { guard });
    expect(problems()).toEqual(['smart-failed: an earlier command to nvme0 still hangs']);
    machine.end();
    const seen: unknown[] = [];
    const open = new WatchedGuard();
    const library = loadIoctl(compiledLibrary('test/probes/nvme/ioctl.c'));
    const watched = {
      ...library,
      ioctl: (...given: Parameters<typeof library.ioctl>) => {
        seen.push(open.current);
        return library.ioctl(...given);
      },
    };
    answeringMachine(0, { guard: open, loadIoctl: () => watched });
    machine.collect();
    expect(seen).toMatchObject([{ kind: 'call', path: 'nvme/nvme0/ioctl' }]);
    expect(open.current).toBeUndefined();
  });

  it('is sent once in the interval, and never to a drive that sleeps or is not live', () => {
    answeringMachine(0);
    let calls = 0;
    const library = loadIoctl(compiledLibrary('test/probes/nvme/ioctl.c'));
    machine.end();
    answeringMachine(0, {
      loadIoctl: () => ({
        ...library,
        ioctl: (...given) => {
          calls += 1;
          return library.ioctl(...given);
        },
      }),
    });
    machine.collect();
    machine.forward(240_000);
    machine.collect();
    expect(calls).toBe(1);
    machine.forward(60_000);
    machine.write(`${CONTROLLER}/state`, 'resetting\n');
    machine.collect();
    machine.write(`${CONTROLLER}/state`, 'live\n');
    machine.write(`${CONTROLLER}/device/power/runtime_status`, 'suspended\n');
    machine.collect();
    expect(calls).toBe(1);
    machine.write(`${CONTROLLER}/device/power/runtime_status`, 'active\n');
    machine.collect();
    expect(calls).toBe(2);
  });

  it('is never sent without the option', () => {
    machine = emptyMachine(
      {},
      {
        loadIoctl: () => {
          throw new Error('loaded');
        },
      },
    );
    machine.write(`${CONTROLLER}/state`, 'live\n');
    machine.write(`${CONTROLLER}/address`, `${DRIVE}\n`);
    expect(machine.collect().problems).toEqual([]);
  });

  it('says when the C library cannot be loaded', () => {
    answeringMachine(0, {
      loadIoctl: () => {
        throw new Error('no such file\nmore');
      },
    });
    expect(problems()).toEqual(['smart-failed: the C library cannot be called: no such file']);
  });

  it('has the layout of the kernel', () => {
    machine = emptyMachine();
    const command = encodeSmartCommand(0x1234_5678_9abc_def0n);
    expect(command.length).toBe(72);
    expect(command.readBigUInt64LE(24)).toBe(0x1234_5678_9abc_def0n);
    // Device numbers of 12 and 20 bits: major 0x123, minor 0x45678.
    expect(numberOf(0x456_1_2378n)).toBe(`${0x123}:${0x45678}`);
  });
});

describe('a file with the log', () => {
  const START = Date.parse('2026-01-01T00:00:00Z');
  const FILE = 'smart/S1.json';

  function machineWithFile(text: string, ageMinutes: number): void {
    machine = emptyMachine({ 'smart-directory': '{root}/smart' }, { startMs: START });
    machine.write(`${CONTROLLER}/state`, 'live\n');
    machine.write(`${CONTROLLER}/address`, `${DRIVE}\n`);
    machine.write(`${CONTROLLER}/serial`, 'S1   \n');
    machine.write(FILE, text);
    const written = START / 1_000 - ageMinutes * 60;
    utimesSync(join(machine.root, FILE), written, written);
  }

  it('is used for half an hour after it was written', () => {
    machineWithFile('{"critical_warning":8,"avail_spare":50,"spare_thresh":60}', 25);
    expect(holding(reportOf(machine.collect(), DRIVE))).toEqual({ MediaReadOnly: 'Warning', SpareLow: 'BelowThreshold' });
    machine.forward(6 * 60_000);
    const collection = machine.collect();
    expect(collection.problems.map(({ message }) => message)).toEqual([
      `${machine.root}/smart/S1.json was last written more than 30 minutes ago`,
    ]);
    expect(statusOf(collection, DRIVE, 'MediaReadOnly')).toBe('unknown');
    expect(seriesOf(reportOf(collection, DRIVE))).not.toHaveProperty('device_nvme_available_spare_ratio');
  });

  it('that has no warnings says nothing good about them', () => {
    machineWithFile('{"avail_spare":100,"spare_thresh":10}', 0);
    expect(statusOf(machine.collect(), DRIVE, 'SpareLow')).toBe('unknown');
  });

  it('is not opened for any other drive', () => {
    machineWithFile('{"avail_spare":100}', 0);
    machine.write(`${CONTROLLER}/serial`, '..\n');
    expect(machine.collect().problems.map(({ code }) => code)).toEqual(['smart-file']);
    expect(existsSync(join(machine.root, FILE)) && readFileSync(join(machine.root, FILE), 'utf8')).toContain('avail_spare');
  });
});

describe('a log that nvme-cli wrote', () => {
  const VALUES = { temperature: 312, avail_spare: 99, percent_used: 3, data_units_read: 4_000_000_001, power_on_hours: 51 };
  const numbers = Object.entries(VALUES);

  it.each([
    ['whole numbers', numbers.map(([name, value]) => `"${name}": ${value}`)],
    ['numbers with a point', numbers.map(([name, value]) => `"${name}": ${value}.0`)],
    ['texts', numbers.map(([name, value]) => `"${name}": "${value}"`)],
  ])('has the same values in %s', (_, members) => {
    machine = emptyMachine({ 'smart-directory': '{root}/smart' });
    machine.write(`${CONTROLLER}/state`, 'live\n');
    machine.write(`${CONTROLLER}/address`, `${DRIVE}\n`);
    machine.write(`${CONTROLLER}/serial`, 'ABC1\n');
    machine.write('smart/ABC1.json', `{ ${members.join(', ')} }`);
    expect(problems()).toEqual([]);
    expect(seriesOf(reportOf(machine.collect(), DRIVE))).toMatchObject({
      'device_temperature_celsius{sensor=composite}': 38.85,
      device_nvme_available_spare_ratio: 0.99,
      device_nvme_used_life_ratio: 0.03,
      device_nvme_lifetime_read_bytes_total: 4_000_000_001 * 512_000,
      device_nvme_powered_seconds_total: 51 * 3_600,
    });
  });
});

describe('the monitor of a drive', () => {
  it('has each sensor under its label, also where numbers are left out', () => {
    machine = emptyMachine();
    machine.write(`${CONTROLLER}/state`, 'live\n');
    machine.write(`${CONTROLLER}/address`, `${DRIVE}\n`);
    const files = { name: 'nvme', temp1_label: 'Composite', temp1_input: '41850', temp3_label: 'Sensor 2', temp3_input: '44850' };
    const last = { temp9_label: 'Sensor 8', temp9_input: '40850' };
    for (const [name, text] of Object.entries({ ...files, ...last })) machine.write(`${CONTROLLER}/hwmon4/${name}`, `${text}\n`);
    const series = Object.entries(seriesOf(reportOf(machine.collect(), DRIVE)));
    expect(Object.fromEntries(series.filter(([name]) => name.startsWith('device_temperature')))).toEqual({
      'device_temperature_celsius{sensor=composite}': 41.85,
      'device_temperature_celsius{sensor=sensor_2}': 44.85,
      'device_temperature_celsius{sensor=sensor_8}': 40.85,
    });
  });
});
