import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Collection } from '../../../src/model/collection.ts';
import { parseDrmClient } from '../../../src/probes/amdgpu/fdinfo.ts';
import { decodeGpuMetrics } from '../../../src/probes/amdgpu/table.ts';
import { CAPTURES, capturedCard, emptyMachine, type ProbedMachine, placeCapture, reportOf, seriesOf } from './machines.ts';

/*
 * Not checked here: `rocm-smi/*.json`, `amdgpu_top/dump.json` and `amdgpu_firmware_info` are output of other programs and a debug file. The
 * agent reads none of them; their machines have no files in the captures.
 */
const isThere = existsSync(CAPTURES);
const skipped = isThere ? '' : ` (skipped: ${CAPTURES} is not there)`;

/** Figures that the program LACT states for each card. `undefined`: the card has no such file, so there must be no series. */
interface Figures {
  readonly pci: string;
  readonly busy?: number;
  readonly watts?: number;
  readonly averageWatts?: number;
  readonly cap?: number;
  readonly edge: number;
  readonly junction?: number;
  readonly memory?: number;
  readonly crit?: Readonly<Partial<Record<'edge' | 'junction' | 'memory', number>>>;
  readonly fan?: number;
  readonly volts?: number;
  readonly used?: number;
  readonly total?: number;
}

const FIGURES: Readonly<Record<string, Figures>> = {
  rx6900xt: {
    pci: '1002:73bf',
    busy: 0.03,
    watts: 36,
    cap: 289,
    edge: 56,
    junction: 59,
    memory: 54,
    crit: { edge: 100, junction: 110, memory: 100 },
    fan: 0,
    volts: 0.775,
    used: 668_274_688,
    total: 17_163_091_968,
  },
  rx7800xt: {
    pci: '1002:747e',
    busy: 0.02,
    watts: 32,
    cap: 236,
    edge: 24,
    junction: 31,
    memory: 48,
    crit: { edge: 100, junction: 110, memory: 108 },
    fan: 868,
    volts: 0.985,
  },
  rx7900xtx: {
    pci: '1002:744c',
    busy: 0.03,
    watts: 68,
    cap: 290,
    edge: 53,
    junction: 61,
    memory: 68,
    crit: { edge: 100, junction: 110, memory: 108 },
    fan: 0,
    volts: 0.686,
  },
  rx7700s: { pci: '1002:7480', busy: 0, watts: 1, cap: 100, edge: 34, junction: 34, memory: 42, fan: 0, volts: 0.018 },
  rx6600xt: { pci: '1002:73ff', busy: 0, watts: 3, cap: 100, edge: 35, junction: 35, memory: 36, fan: 0, volts: 0.006 },
  rx6600: { pci: '1002:73ff', busy: 0, watts: 3, cap: 120, edge: 28, junction: 28, memory: 26, fan: 1_395, volts: 1 },
  // The sensor of the memory tells 0, because it is not wired.
  rx5500xt: { pci: '1002:7340', busy: 0, watts: 16, cap: 130, edge: 48, junction: 48, fan: 0, volts: 0.7 },
  vega56: {
    pci: '1002:687f',
    busy: 0,
    watts: 8,
    cap: 260,
    edge: 38,
    junction: 38,
    memory: 39,
    crit: { edge: 85, junction: 105, memory: 95 },
    fan: 5,
    volts: 0.762,
    used: 16_613_376,
    total: 8_573_157_376,
  },
  rx580: {
    pci: '1002:67df',
    busy: 0.11,
    watts: 41.045,
    cap: 155,
    edge: 44,
    fan: 595,
    volts: 0.975,
    used: 536_870_912,
    total: 4_294_967_296,
  },
  phoenix: {
    pci: '1002:15bf',
    busy: 0,
    watts: 3_142 / 1_000,
    averageWatts: 3.103,
    edge: 25,
    volts: 0.814,
    used: 1_272_893_440,
    total: 4_294_967_296,
  },
  vangogh: { pci: '1002:163f', busy: 0, watts: 4.057, averageWatts: 3.218, cap: 15, edge: 56, volts: 0.015 },
  'r7-240': { pci: '1002:6617', edge: 52, used: 495_321_088, total: 2_147_483_648 },
  hd7870: { pci: '1002:6818', edge: 27 },
};

describe.skipIf(!isThere).each(Object.entries(FIGURES))(`the captured card %s${skipped}`, (capture, figures) => {
  let machine: ProbedMachine;
  let collection: Collection;
  let address: string;
  beforeAll(() => {
    machine = emptyMachine();
    address = placeCapture(machine.root, capture);
    collection = machine.collect();
  });
  afterAll(() => machine.end());

  it('is one GPU that is read without a problem', () => {
    expect(collection.problems).toEqual([]);
    expect(collection.listing).toBe('complete');
    const [report, ...others] = collection.reports;
    expect(others).toEqual([]);
    expect([report?.device.id, report?.device.kind]).toEqual([address, 'gpu']);
    expect(`${report?.device.pciVendor}:${report?.device.pciDevice}`.replaceAll('0x', '')).toBe(figures.pci);
  });

  it('has the figures of the program LACT', () => {
    const series = seriesOf(reportOf(collection, address));
    const { crit = {} } = figures;
    const wanted: Readonly<Record<string, number | undefined>> = {
      'device_utilization_ratio{engine=gpu}': figures.busy,
      'device_power_watts{sensor=gpu}': figures.watts,
      'device_power_watts{sensor=gpu_average}': figures.averageWatts,
      'device_power_limit_watts{limit=enforced}': figures.cap,
      'device_temperature_celsius{sensor=edge}': figures.edge,
      'device_temperature_celsius{sensor=junction}': figures.junction,
      'device_temperature_celsius{sensor=memory}': figures.memory,
      'device_fan_speed_rpm{fan=0}': figures.fan,
      'device_voltage_volts{sensor=vddgfx}': figures.volts,
      device_memory_used_bytes: figures.used,
      device_memory_total_bytes: figures.total,
      ...Object.fromEntries(
        Object.entries(crit).map(([sensor, value]) => [`device_temperature_limit_celsius{limit=crit,sensor=${sensor}}`, value]),
      ),
    };
    expect(Object.fromEntries(Object.keys(wanted).map((name) => [name, series[name]]))).toEqual(wanted);
  });
});

const tableOf = (capture: string) => {
  const { table } = decodeGpuMetrics(readFileSync(join(capturedCard(capture), 'device/gpu_metrics')));
  const samples = (table?.samples ?? []).map(({ quantity, name, value }) => [`${quantity} ${name}`.trim(), value] as const);
  return { version: table?.version, values: Object.fromEntries(samples) };
};

describe.skipIf(!isThere)(`captured gpu_metrics${skipped}`, () => {
  it('of an RX 7800 XT are as its program decodes them', () => {
    const { version, values } = tableOf('rx7800xt');
    expect(version).toBe('1.3');
    expect(values).toMatchObject({
      'temperature junction': 31,
      'temperature memory': 48,
      'temperature vr_gfx': 34,
      'temperature vr_soc': 32,
      'temperature vr_memory': 34,
      'busy gpu': 0.24,
      'power gpu': 32,
      'clock graphics': 2_011_000_000,
      'fan 0': 868,
      'voltage soc': 0.768,
      'voltage vddgfx': 0.985,
      'voltage memory': 0.704,
    });
    // The counter of energy is 0, which means that the card has none. The link of gpu_metrics is not used: the kernel tells the link.
    expect(Object.keys(values).filter((name) => /^(?:energy|temperature hbm|busyAccumulated)/.test(name))).toEqual([]);
  });

  it('of an RX 6900 XT are read although the file is padded to a page', () => {
    const { version, values } = tableOf('rx6900xt');
    expect([version, values['temperature junction'], values['busy gpu'], values['power gpu']]).toEqual(['1.3', 59, 0.03, 36]);
  });

  it('of a Phoenix APU count in hundredths and in milliwatts', () => {
    const { version, values } = tableOf('phoenix');
    expect(version).toBe('2.1');
    expect(values).toMatchObject({
      'temperature gfx': 25,
      'temperature soc': 27.37,
      'busy gpu': 0.0079,
      'power socket_average': 3.401,
    });
  });
});

describe.skipIf(!isThere)(`values that only some captures have${skipped}`, () => {
  const seriesIn = (capture: string): Readonly<Record<string, number | bigint>> => {
    const machine = emptyMachine();
    try {
      const address = placeCapture(machine.root, capture);
      return seriesOf(reportOf(machine.collect(), address));
    } finally {
      machine.end();
    }
  };

  it('an RX 6900 XT has an energy counter of an unknown unit, so there is no energy', () => {
    expect(seriesIn('rx6900xt').device_energy_joules_total).toBeUndefined();
  });

  it('the link of an RX 7800 XT is that of the kernel and of gpu_metrics: 16 lanes at 16 GT/s', () => {
    const series = seriesIn('rx7800xt');
    expect([series.device_pcie_link_width_lanes, series.device_pcie_link_generation]).toEqual([16, 4]);
  });

  it('the temperatures of a Phoenix APU agree with its hardware monitor, so its other values are trusted', () => {
    const series = seriesIn('phoenix');
    expect(series['device_temperature_celsius{sensor=soc}']).toBe(27.37);
    expect(series['device_power_watts{sensor=socket_average}']).toBe(3.401);
    expect(series['device_clock_hertz{clock=graphics}']).toBe(800_000_000);
  });

  it('a copied tree without links is found by the file uevent', () => {
    const machine = emptyMachine();
    try {
      machine.write('sys/class/drm/card1/device/uevent', 'DRIVER=amdgpu\nPCI_ID=1002:747E\nPCI_SLOT_NAME=0000:03:00.0\n');
      machine.write('sys/class/drm/card1/device/gpu_busy_percent', '2\n');
      const [report] = machine.collect().reports;
      expect([report?.device.id, report?.device.pciDevice]).toEqual(['0000:03:00.0', '0x747e']);
      expect(seriesOf(reportOf(machine.collect(), '0000:03:00.0'))['device_utilization_ratio{engine=gpu}']).toBe(0.02);
    } finally {
      machine.end();
    }
  });
});

describe.skipIf(!isThere)(`captured clients of graphics drivers${skipped}`, () => {
  const clientOf = (file: string) => parseDrmClient(readFileSync(join(CAPTURES, '../fdinfo', file), 'utf8'));

  it('tell the memory and the time of an amdgpu client, and nothing of the client of another driver', () => {
    expect(clientOf('amdgpu-vram-gtt-cpu.txt')).toEqual({
      pdev: '0000:08:00.0',
      id: '217',
      vramBytes: 2_068 * 1_024,
      engineNs: new Map([['gfx', 107_322_799n]]),
    });
    expect(clientOf('amdxdna-idle.txt')).toBeUndefined();
  });
});

describe.skipIf(!isThere)(`captured KFD topologies${skipped}`, () => {
  /** Makes cards for the nodes of a captured topology, as the driver does. The first node of a card belongs to its PCI function. */
  function cardsOf(
    machine: ProbedMachine,
    capture: string,
  ): readonly { readonly minor: number; readonly address: string; readonly isFirst: boolean }[] {
    const inside = existsSync(join(CAPTURES, capture, 'topology')) ? 'topology/nodes' : 'nodes';
    const nodes = join(CAPTURES, capture, inside);
    machine.link('sys/class/kfd/kfd/topology/nodes', join(process.cwd(), nodes));
    const found: { minor: number; address: string; isFirst: boolean }[] = [];
    for (let node = 0; existsSync(join(nodes, String(node), 'properties')); node += 1) {
      const text = readFileSync(join(nodes, String(node), 'properties'), 'utf8');
      const value = (name: string): number => Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1]);
      if (value('simd_count') === 0) continue;
      const location = value('location_id');
      const hex = (number: number, digits: number): string => number.toString(16).padStart(digits, '0');
      const address = `${hex(value('domain'), 4)}:${hex(location >> 8, 2)}:${hex((location >> 3) & 31, 2)}.0`;
      found.push({ minor: value('drm_render_minor'), address, isFirst: !found.some((other) => other.address === address) });
    }
    found.forEach(({ minor, address, isFirst }, n) => {
      const directory = isFirst ? `pci0000:00/${address}` : `platform/amdgpu_xcp_${minor}`;
      for (const name of [`card${n}`, `renderD${minor}`]) {
        machine.write(`sys/devices/${directory}/drm/${name}/dev`, '226:0\n');
        machine.link(`sys/class/drm/${name}`, `../../devices/${directory}/drm/${name}`);
      }
      if (!isFirst) return;
      machine.link(`sys/bus/pci/devices/${address}`, `../../../devices/${directory}`);
      machine.link(`sys/devices/${directory}/driver`, '../../../bus/pci/drivers/amdgpu');
    });
    return found;
  }

  it('of eight MI210 cards give eight GPUs with the links of their two groups', () => {
    const machine = emptyMachine();
    try {
      const cards = cardsOf(machine, 'kfd-mi210-8gpu');
      const { reports, listing } = machine.collect();
      expect(listing).toBe('complete');
      expect(reports.map(({ device }) => device.id).sort()).toEqual(cards.map(({ address }) => address).sort());
      expect(cards.map(({ minor }) => minor)).toEqual([128, 129, 130, 131, 132, 133, 134, 135]);
      for (const { device } of reports) expect([device.kind, device.peers?.length], device.id).toEqual(['gpu', 3]);
      const info = reports.map((report) => seriesOf(reportOf({ reports } as never, report.device.id)));
      for (const series of info)
        expect(
          Object.keys(series).some((name) => name.includes('gfx_target=90010')),
          'gfx target',
        ).toBe(true);
      expect(new Set(reports.map(({ device }) => device.uuid)).size).toBe(8);
    } finally {
      machine.end();
    }
  });

  it('of eight MI300X cards in CPX mode give 63 partitions, and name the card that lacks one', () => {
    const machine = emptyMachine();
    try {
      const cards = cardsOf(machine, 'kfd-mi300x-8gpu-cpx');
      expect([cards.length, cards.at(0)?.minor, cards.at(-1)?.minor]).toEqual([63, 128, 190]);
      for (const { address, isFirst } of cards) {
        if (!isFirst) continue;
        machine.write(`sys/devices/pci0000:00/${address}/current_compute_partition`, 'CPX\n');
        machine.write(`sys/devices/pci0000:00/${address}/device`, '0x74a1\n');
      }
      const { reports } = machine.collect();
      const whole = reports.filter(({ device }) => device.kind === 'gpu');
      const parts = reports.filter(({ device }) => device.kind === 'partition');
      expect([whole.length, parts.length]).toEqual([8, 63]);
      expect(new Set(whole.map(({ device }) => device.uuid)).size).toBe(8);
      const lacking = whole.filter(({ read }) => read?.findings.some(({ type, status }) => type === 'PartitionMissing' && status === true));
      const counts = new Map(whole.map(({ device }) => [device.id, parts.filter((part) => part.device.parent === device.id).length]));
      expect(lacking.map(({ device }) => counts.get(device.id))).toEqual([7]);
      // The plugin names the first partition by the address of the card, and the others by their platform device.
      const first = parts.find(({ device }) => device.id === '0000:05:00.0-xcp0')?.device;
      const second = parts.find(({ device }) => device.id === '0000:05:00.0-xcp1')?.device;
      expect([first?.aliases, second?.aliases]).toEqual([['0000:05:00.0'], ['amdgpu_xcp_129']]);
      expect(second?.characterDevices).toEqual(['/dev/kfd', '/dev/dri/card1', '/dev/dri/renderD129']);
    } finally {
      machine.end();
    }
  });
});
