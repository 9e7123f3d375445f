import { cpSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Resolver } from '../../../src/join/resolve.ts';
import type { Collection } from '../../../src/model/collection.ts';
import { familyLoaders } from '../../../src/probes/families.ts';
import type { DeviceFamily } from '../../../src/probes/family.ts';
import { areThere, CAPTURES, restoreLinks, skipped } from '../../support/captures.ts';
import { buildMachine, type MachineFile } from '../../support/machine.ts';
import { allocation } from '../../support/snapshots.ts';
import { lookAt } from './support.ts';

const familyNamed = async (name: string): Promise<DeviceFamily> => (await familyLoaders[name]?.()) as DeviceFamily;

function machineOf(file: Partial<MachineFile>): { readonly root: string; readonly options: Readonly<Record<string, string>> } {
  const machine = buildMachine({ about: '', ...file });
  onTestFinished(() => machine.remove());
  return machine;
}

/** `metric label=value` to value. */
function seriesIn({ reports }: Collection, id: string): Readonly<Record<string, number | bigint>> {
  const readings = reports.find(({ device }) => device.id === id)?.read?.readings ?? [];
  return Object.fromEntries(
    [...readings].map(({ metric, labels = {}, value }) => [
      [metric, ...Object.entries(labels).map(([name, text]) => `${name}=${text}`)].join(' '),
      value,
    ]),
  );
}

/** The files of a PCI function of a driver. */
const functionFiles = (address: string, vendor: string, device: string): Readonly<Record<string, string>> => ({
  [`sys/bus/pci/devices/${address}/vendor`]: `${vendor}\n`,
  [`sys/bus/pci/devices/${address}/device`]: `${device}\n`,
  [`sys/bus/pci/devices/${address}/class`]: '0x120000\n',
});

describe.skipIf(!areThere)(`captured lines of hl-smi${skipped}`, () => {
  /** Prints the asked columns of the captured lines. The lines have no addresses, so the test invents these. */
  const program = `#!${process.execPath}
const { readFileSync } = require('node:fs');
const names = 'index,uuid,name,driver_version,memory.total,memory.used,memory.free,power.draw,power.max,temperature.aip,utilization.aip'.split(',');
const asked = process.argv[process.argv.indexOf('-Q') + 1].split(',');
for (const line of readFileSync(${JSON.stringify(join(CAPTURES, 'gaudi/hl-smi-gaudi3-2cards.csv'))}, 'utf8').trim().split('\\n')) {
  const cells = line.split(', ');
  console.log(asked.map((name) => (name === 'bus_id' ? '0000:b' + (3 + Number(cells[0])) + ':00.0' : cells[names.indexOf(name)])).join(', '));
}
`;

  it('are the figures of two cards', async () => {
    const { root, options } = machineOf({
      files: {
        ...functionFiles('0000:b3:00.0', '0x1da3', '0x1060'),
        ...functionFiles('0000:b4:00.0', '0x1da3', '0x1060'),
        'bin/hl-smi': program,
      },
      links: {
        'sys/bus/pci/devices/0000:b3:00.0/driver': '../../drivers/habanalabs',
        'sys/bus/pci/devices/0000:b4:00.0/driver': '../../drivers/habanalabs',
        'sys/bus/pci/drivers/habanalabs/0000:b3:00.0': '../../devices/0000:b3:00.0',
        'sys/bus/pci/drivers/habanalabs/0000:b4:00.0': '../../devices/0000:b4:00.0',
      },
      options: { 'smi-path': '{root}/bin/hl-smi' },
    });
    const collection = await lookAt(await familyNamed('gaudi'), root, options);
    expect(collection.problems).toEqual([]);
    expect(collection.reports.map(({ device }) => [device.uuid, device.model])).toEqual([
      ['01P4-HL3090A0-18-U4V193-22-07-00', 'HL-325L'],
      ['01P4-HL3090A0-18-U4V298-03-04-04', 'HL-325L'],
    ]);
    const figures = (watts: number, celsius: number) => ({
      device_memory_total_bytes: 131_072 * 2 ** 20,
      device_memory_used_bytes: 672 * 2 ** 20,
      'device_power_watts sensor=card': watts,
      'device_power_limit_watts limit=max': 850,
      'device_temperature_celsius sensor=aip': celsius,
      'device_utilization_ratio engine=aip': 0,
    });
    expect(seriesIn(collection, '0000:b3:00.0')).toMatchObject(figures(226, 36));
    expect(seriesIn(collection, '0000:b4:00.0')).toMatchObject(figures(230, 39));
  });
});

describe.skipIf(!areThere)(`captured output of neuron-ls${skipped}`, () => {
  it('gives addresses with a domain, memory, and the cores of each device', async () => {
    const family = await familyNamed('neuron');
    const { root, options } = machineOf({
      files: {
        ...functionFiles('0000:cc:00.0', '0x1d0f', '0x7364'),
        ...functionFiles('0000:f7:00.0', '0x1d0f', '0x7364'),
        'sys/devices/virtual/neuron_device/neuron0/core_count': '8\n',
        'sys/devices/virtual/neuron_device/neuron15/core_count': '8\n',
        'bin/neuron-ls': `#!/bin/sh\n[ "$*" = -j ] && cat '${join(CAPTURES, 'neuron/trn2n.48xlarge-neuron-ls-j.json')}'\n`,
      },
      options: { 'ls-path': '{root}/bin/neuron-ls' },
    });
    const collection = await lookAt(family, root, options);
    expect(collection.problems).toEqual([]);
    const devices = collection.reports.map(({ device }) => device);
    expect(devices.map(({ id, pciAddress, numaNode }) => [id, pciAddress, numaNode])).toEqual([
      ['neuron0', '0000:cc:00.0', 1],
      ['neuron15', '0000:f7:00.0', 1],
    ]);
    // The plain table of the tool prints the address with its domain.
    const table = readFileSync(join(CAPTURES, 'neuron/trn2n.48xlarge-neuron-ls.txt'), 'utf8');
    for (const { index, pciAddress } of devices) expect(table).toMatch(new RegExp(`^\\| ${index} .* ${pciAddress} `, 'm'));
    for (const { id } of devices)
      expect(seriesIn(collection, id)).toMatchObject({ device_memory_total_bytes: 103_079_215_104, device_neuron_cores: 4 });
    const numbers = family.ownsNumbers === undefined ? new Map() : new Map([['neuron', family.ownsNumbers]]);
    const resolver = new Resolver(devices, { pools: [], families: new Map([['neuron', family.resolve as never]]), numbers });
    const coresOf = (id: string): readonly number[] =>
      Array.from({ length: 128 }, (_, core) => core).filter((core) =>
        resolver.resolve(allocation({ resource: 'aws.amazon.com/neuroncore', deviceId: String(core) })).devices.includes(`neuron/${id}`),
      );
    expect([coresOf('neuron0'), coresOf('neuron15')]).toEqual([
      [0, 1, 2, 3],
      [60, 61, 62, 63],
    ]);
  });
});

describe.skipIf(!areThere)(`captured PCI functions${skipped}`, () => {
  const DRIVE = 'sys/devices/pci0000:00/0000:00:02.1/0000:01:00.0';
  const CARD = 'sys/devices/pci0000:40/0000:40:01.3/0000:45:00.0';

  function machine(): string {
    const { root } = machineOf({
      links: Object.fromEntries([DRIVE, CARD].map((path) => [`sys/bus/pci/devices/${path.slice(-12)}`, `../../../../${path}`])),
    });
    cpSync(join(CAPTURES, 'pci/node_exporter/sys'), join(root, 'sys'), { recursive: true });
    restoreLinks(root);
    return root;
  }

  it('have the link, the NUMA node and the errors of their files', async () => {
    const collection = await lookAt(await familyNamed('pci'), machine());
    expect(collection.problems).toEqual([]);
    const facts = collection.reports.map(({ device }) => [device.id, device.driver, device.numaNode, device.pciVendor, device.pciDevice]);
    expect(facts).toEqual([
      ['0000:01:00.0', 'nvme', undefined, '0xc0a9', '0x540a'],
      ['0000:45:00.0', 'igb', 0, '0x8086', '0x1521'],
    ]);
    const link = (generation: number, most: number) => ({
      device_pcie_link_width_lanes: 4,
      device_pcie_link_max_width_lanes: 4,
      device_pcie_link_generation: generation,
      device_pcie_link_max_generation: most,
    });
    const [drive, card] = ['0000:01:00.0', '0000:45:00.0'].map((id) => seriesIn(collection, id));
    expect([drive, card]).toMatchObject([link(3, 4), link(2, 2)]);
    for (const series of [drive, card]) {
      const errors = Object.entries(series ?? {}).filter(([name]) => name.startsWith('device_pcie_errors_total'));
      expect([errors.length, errors.filter(([, value]) => Number(value) !== 0)]).toEqual([44, []]);
    }
  });

  it('have the virtual functions of an adapter that nobody has split', async () => {
    const collection = await lookAt(await familyNamed('netdev'), machine(), { all: 'true', source: 'sysfs' });
    expect(collection.problems).toEqual([]);
    expect(seriesIn(collection, '0000:45:00.0')).toMatchObject({
      device_netdev_virtual_functions: 0,
      device_netdev_max_virtual_functions: 7,
    });
  });
});
