import { afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/host/clock.ts';
import { createHost } from '../../../src/host/host.ts';
import { family } from '../../../src/probes/nvme/index.ts';
import { simulate } from '../../../src/sim/families/nvme/simulate.ts';
import {
  devicesOf,
  emptyMachine,
  holding,
  type ProbedMachine,
  probeOn,
  reportOf,
  seriesOf,
  simulatedController,
  simulatedMachine,
  statusOf,
} from './harness.ts';

const FIRST = '0050:10:00.0';
const SECOND = '0050:11:00.0';
const FIRST_DISK = 'eui.36524e5a000000000025384500000001';
const DIRECTORY = `sys/bus/pci/devices/${FIRST}`;

let machine: ProbedMachine;
afterEach(() => machine.end());

/** A machine with two simulated drives whose reads pass a filter, which may answer with the name of an error instead. */
function filteredMachine(answerTo: (path: string) => string | undefined, options: Readonly<Record<string, string>> = {}): ProbedMachine {
  return probeOn(simulatedMachine(2).root, options, { answer: answerTo });
}

describe('what is read', () => {
  it('never includes a file that sends a command to a sleeping drive', () => {
    const read: string[] = [];
    machine = filteredMachine((path) => {
      read.push(path);
      return undefined;
    });
    machine.write(`${DIRECTORY}/power/runtime_status`, 'suspended\n');
    machine.collect();
    const ofFirst = read.filter((path) => path.includes(FIRST));
    expect(ofFirst.length).toBeGreaterThan(5);
    expect(ofFirst.filter((path) => /temp\d|\/config$|link_(?:speed|width)$|aer_dev/.test(path))).toEqual([]);
    expect(read.some((path) => path.includes(SECOND) && path.endsWith('temp1_input'))).toBe(true);
  });

  it('never includes a limit that costs a command, nor the used size', () => {
    const read: string[] = [];
    machine = filteredMachine((path) => {
      read.push(path);
      return undefined;
    });
    for (const name of ['temp1_max', 'temp1_min']) machine.write(`${simulatedController(0)}/hwmon20/${name}`, '84850\n');
    machine.write(`${simulatedController(0)}/nvme0n1/nuse`, '1\n');
    machine.collect();
    expect(read.filter((path) => /_max$|_min$|nuse$/.test(path))).toEqual([]);
  });

  it.each([
    ['1m', 2],
    ['2m', 1],
    ['0', 7],
  ])('includes the temperatures only after the interval, here %s', (interval, expected) => {
    let reads = 0;
    machine = filteredMachine(
      (path) => {
        if (path.includes(FIRST) && path.endsWith('temp1_input')) reads += 1;
        return undefined;
      },
      { 'temperature-interval': interval },
    );
    for (let minute = 0; minute < 6; minute += 1) {
      machine.collect();
      machine.forward(10_000);
    }
    machine.collect();
    expect(reads).toBe(expected);
    const names = Object.keys(seriesOf(reportOf(machine.collect(), FIRST)));
    expect(names).toContain('device_temperature_celsius{sensor=composite}');
  });
});

describe('a drive', () => {
  it('whose file hangs is unread with its namespace, and keeps its names', () => {
    let isHanging = false;
    machine = filteredMachine((path) => (isHanging && path.includes(`/${FIRST}/`) ? 'EHUNG' : undefined));
    const before = devicesOf(machine.collect());
    isHanging = true;
    machine.forward(120_000);
    const { reports, problems, listing } = machine.collect();
    expect(devicesOf({ reports } as never)).toEqual(before);
    expect(reports.map(({ device, read }) => [device.id, read === undefined])).toEqual([
      [FIRST, true],
      [SECOND, false],
      [FIRST_DISK, true],
      ['eui.36524e5a000000010025384500000001', false],
    ]);
    expect(problems.map(({ code }) => code)).toEqual(['drive-hangs']);
    expect(listing).toBe('complete');
  });

  it('whose names cannot be read is not listed under another name', () => {
    machine = filteredMachine((path) => (path.endsWith('nvme0n1/wwid') ? 'EIO' : undefined));
    const collection = machine.collect();
    expect(collection.listing).toBe('partial');
    expect(devicesOf(collection).map(({ id }) => id)).not.toContain(FIRST_DISK);
    expect(collection.problems.map(({ code, message }) => [code, message])).toEqual([
      ['read-failed', `/sys/${DIRECTORY.slice('sys/'.length)}/nvme/nvme0/nvme0n1: EIO of wwid`],
    ]);
  });

  it('that another drive follows under the same name is a new device', () => {
    machine = simulatedMachine(1);
    machine.collect();
    machine.remove('sys/class/nvme/nvme0');
    expect(machine.collect()).toMatchObject({ reports: [], listing: 'complete' });
    machine.write('sys/class/nvme/nvme0/state', 'live\n');
    machine.write('sys/class/nvme/nvme0/address', '0040:01:00.0\n');
    machine.write('sys/class/nvme/nvme0/serial', 'OTHER\n');
    expect(devicesOf(machine.collect()).map(({ id, serial }) => [id, serial])).toEqual([['0040:01:00.0', 'OTHER']]);
  });

  it('that gets a namespace shows it at the next read', () => {
    machine = simulatedMachine(1);
    machine.collect();
    machine.write(`${simulatedController(0)}/nvme0n2/wwid`, 'eui.0025384500000002\n');
    machine.write(`${simulatedController(0)}/nvme0n2/nsid`, '2\n');
    machine.link('sys/class/block/nvme0n2', `../../bus/pci/devices/${FIRST}/nvme/nvme0/nvme0n2`);
    expect(devicesOf(machine.collect()).map(({ id }) => id)).toEqual([FIRST, FIRST_DISK, 'eui.0025384500000002']);
  });

  it('that goes to a virtual machine and back keeps its name', () => {
    machine = simulatedMachine(1);
    const vfio = `sys/bus/pci/drivers/vfio-pci/${FIRST}`;
    expect(devicesOf(machine.collect()).map(({ id, driver }) => [id, driver])).toEqual([
      [FIRST, 'nvme'],
      [FIRST_DISK, undefined],
    ]);
    machine.remove('sys/class/nvme/nvme0');
    machine.remove('sys/class/block/nvme0n1');
    machine.link(vfio, `../../../../${DIRECTORY.slice('sys/'.length)}`);
    machine.link(`${DIRECTORY}/iommu_group`, '../../../../kernel/iommu_groups/7');
    const [passed] = devicesOf(machine.collect());
    expect([passed?.id, passed?.driver, passed?.characterDevices]).toEqual([FIRST, 'vfio-pci', ['/dev/vfio/vfio', '/dev/vfio/7']]);
    expect(family.access?.(passed as never)).toMatchObject({ env: { 'PCI_RESOURCE_{RESOURCE}': FIRST } });
  });

  it('that is dead takes its namespace out of service, and says nothing of its temperature', () => {
    machine = simulatedMachine(1);
    machine.collect();
    machine.write(`${simulatedController(0)}/state`, 'dead\n');
    const collection = machine.collect();
    expect([holding(reportOf(collection, FIRST)), holding(reportOf(collection, FIRST_DISK))]).toEqual([
      { ControllerDead: 'Dead' },
      { ControllerDead: 'Dead' },
    ]);
    expect(statusOf(collection, FIRST, 'OverTemperature')).toBe('unknown');
    expect(Object.keys(seriesOf(reportOf(collection, FIRST))).filter((name) => name.includes('temperature'))).toEqual([]);
  });
});

describe('the list of drives', () => {
  it('is absent without the class', () => {
    machine = emptyMachine();
    expect(machine.collect()).toEqual({ reports: [], problems: [], listing: 'absent' });
  });

  it('needs a controller, or a drive of a virtual machine', () => {
    const isPresent = (): boolean | undefined => {
      const { root } = machine;
      return family.isPresent?.(createHost({ sysfs: `${root}/sys`, procfs: `${root}/proc`, dev: `${root}/dev` }, systemClock));
    };
    machine = simulatedMachine(1);
    expect(isPresent()).toBe(true);
    machine.end();
    machine = emptyMachine();
    expect(isPresent()).toBe(false);
    machine.link('sys/bus/pci/drivers/vfio-pci/0000:81:00.0', '../../devices/0000:81:00.0');
    machine.write('sys/bus/pci/devices/0000:81:00.0/class', '0x030000\n');
    expect(isPresent()).toBe(false);
    machine.write('sys/bus/pci/devices/0000:81:00.0/class', '0x010802\n');
    expect(isPresent()).toBe(true);
  });
});

describe('the simulated node', () => {
  const scenario = { counts: { nvidia: 8 }, elapsedMs: 0 };

  it('has no drive unless the scenario counts some', () => {
    machine = emptyMachine();
    expect(simulate(scenario)).toEqual({ files: {}, links: {}, resources: [] });
  });

  it('has drives that are healthy but for the one with a fault', () => {
    machine = simulatedMachine(3, { 'smart-directory': '{root}/dev/nvme-smart' });
    const collection = machine.collect();
    expect(collection.problems).toEqual([]);
    expect(devicesOf(collection).length).toBe(6);
    for (const { id } of devicesOf(collection)) expect(holding(reportOf(collection, id))).toEqual({});
    expect(seriesOf(reportOf(collection, SECOND))).toMatchObject({ device_nvme_used_life_ratio: 0.03 });
    const faults = [{ name: 'hot', device: SECOND, fromMs: 0 }];
    for (const [path, text] of Object.entries(simulate({ ...scenario, counts: { nvme: 3 }, faults }).files)) machine.write(path, text);
    machine.forward(60_000);
    expect(holding(reportOf(machine.collect(), SECOND))).toEqual({ OverTemperature: 'Warning' });
  });

  it('moves the counters of a drive only while a pod uses it', () => {
    machine = emptyMachine();
    const stat = (elapsedMs: number, activeMs: number): string | undefined => {
      const { files } = simulate({ ...scenario, counts: { nvme: 1 }, elapsedMs, use: { [FIRST_DISK]: { activeMs } } });
      return Object.entries(files).find(([path]) => path.endsWith('n1/stat'))?.[1];
    };
    expect(stat(20_000, 5_000)).toBe(stat(10_000, 5_000));
    expect(stat(20_000, 6_000)).not.toBe(stat(20_000, 5_000));
  });

  it('has two hundred drives with addresses of their own', () => {
    machine = emptyMachine();
    const { links, resources } = simulate({ ...scenario, counts: { nvme: 200 } });
    expect(Object.keys(links).filter((path) => path.startsWith('sys/bus/pci/devices/')).length).toBe(200);
    expect(new Set(resources[0]?.deviceIds).size).toBe(200);
  });
});
