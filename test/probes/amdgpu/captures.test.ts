import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Collection, DeviceReport } from '../../../src/model/collection.ts';
import { areThere, CAPTURES, skipped } from '../../support/captures.ts';
import { toldOf } from '../../support/told.ts';
import { CARDS, emptyMachine, type ProbedMachine, placeCapture, reportOf, seriesOf } from './harness.ts';

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

describe.skipIf(!areThere).each(Object.entries(FIGURES))(`the captured card %s${skipped}`, (capture, figures) => {
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

const seriesIn = (capture: string): Readonly<Record<string, number | bigint>> => {
  const machine = emptyMachine();
  try {
    const address = placeCapture(machine.root, capture);
    return seriesOf(reportOf(machine.collect(), address));
  } finally {
    machine.end();
  }
};

describe.skipIf(!areThere)(`captured gpu_metrics${skipped}`, () => {
  it('of an RX 7800 XT are series as its program decodes them', () => {
    const series = seriesIn('rx7800xt');
    expect(series).toMatchObject({
      'device_temperature_celsius{sensor=junction}': 31,
      'device_temperature_celsius{sensor=memory}': 48,
      'device_temperature_celsius{sensor=vr_gfx}': 34,
      'device_temperature_celsius{sensor=vr_soc}': 32,
      'device_temperature_celsius{sensor=vr_memory}': 34,
      'device_power_watts{sensor=gpu}': 32,
      'device_clock_hertz{clock=graphics}': 2_011_000_000,
      'device_fan_speed_rpm{fan=0}': 868,
      'device_voltage_volts{sensor=soc}': 0.768,
      'device_voltage_volts{sensor=vddgfx}': 0.985,
      'device_voltage_volts{sensor=memory}': 0.704,
      // Of the kernel, which tells the same as the table.
      device_pcie_link_width_lanes: 16,
      device_pcie_link_generation: 4,
      // The file says 2 %, the table 24 %.
      'device_utilization_ratio{engine=gpu}': 0.02,
    });
    // The counter of energy is 0, which means that the card has none.
    expect(Object.keys(series).filter((name) => /energy|hbm|activity/.test(name))).toEqual([]);
  });

  it('of an RX 6900 XT are read although the file is padded to a page', () => {
    const series = seriesIn('rx6900xt');
    // Only the table has the voltage regulators.
    expect(series['device_temperature_celsius{sensor=vr_gfx}']).toBe(49);
    // It has an energy counter of an unknown unit, so there is no energy.
    expect(series.device_energy_joules_total).toBeUndefined();
  });

  it('of a Phoenix APU count in hundredths and in milliwatts', () => {
    expect(seriesIn('phoenix')).toMatchObject({
      'device_temperature_celsius{sensor=gfx}': 25,
      'device_temperature_celsius{sensor=soc}': 27.37,
      'device_power_watts{sensor=socket_average}': 3.401,
      'device_clock_hertz{clock=graphics}': 800_000_000,
      // The file says 0 %, the table 0.79 %.
      'device_utilization_ratio{engine=gpu}': 0,
    });
  });
});

describe.skipIf(!areThere)(`captured clients of graphics drivers${skipped}`, () => {
  const [FIRST, SECOND] = ['0000:08:00.0', '0000:c5:00.1'];

  it('are a process of the card, with its memory and the time on its engine, and nothing of another driver', () => {
    const machine = emptyMachine();
    try {
      for (const [n, address] of [FIRST, SECOND].entries()) {
        machine.write(`sys/devices/pci0000:00/${address}/vendor`, '0x1002\n');
        machine.link(`sys/devices/pci0000:00/${address}/driver`, '../../../bus/pci/drivers/amdgpu');
        machine.write(`sys/devices/pci0000:00/${address}/drm/renderD${128 + n}/dev`, `226:${128 + n}\n`);
        machine.write(`sys/devices/pci0000:00/${address}/drm/card${n}/dev`, `226:${n}\n`);
        machine.link(`sys/bus/pci/devices/${address}`, `../../../devices/pci0000:00/${address}`);
        for (const name of [`renderD${128 + n}`, `card${n}`])
          machine.link(`sys/class/drm/${name}`, `../../devices/pci0000:00/${address}/drm/${name}`);
      }
      const client = readFileSync(join(CAPTURES, 'fdinfo/amdgpu-vram-gtt-cpu.txt'), 'utf8');
      const open = (pid: number, text: string, node: string): void => {
        machine.write(`proc/${pid}/stat`, `${pid} (game) S 1 ${pid} ${pid} 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4242 0 0\n`);
        machine.write(`proc/${pid}/fdinfo/4`, text);
        machine.remove(`proc/${pid}/fd/4`);
        machine.link(`proc/${pid}/fd/4`, node);
      };
      open(900, client, '/dev/dri/renderD128');
      open(901, readFileSync(join(CAPTURES, 'fdinfo/amdxdna-idle.txt'), 'utf8'), '/dev/dri/renderD129');
      const processesOf = (address: string) => reportOf(machine.collect(), address).processes;
      expect(processesOf(FIRST)).toMatchObject([{ pid: 900, memoryUsedBytes: 2_068 * 1_024 }]);
      expect(processesOf(SECOND) ?? []).toMatchObject([]);
      // The engine runs for a quarter of the next 10 s.
      machine.forward(10_000);
      open(900, client.replace('107322799', String(107_322_799 + 2_500_000_000)), '/dev/dri/renderD128');
      expect(processesOf(FIRST)).toMatchObject([{ pid: 900, utilization: { gpu: 0.25 } }]);
    } finally {
      machine.end();
    }
  });
});

describe.skipIf(!areThere)(`captured KFD topologies${skipped}`, () => {
  /** Makes cards for the nodes of a captured topology, as the driver does. The first node of a card belongs to its PCI function. */
  function cardsOf(
    machine: ProbedMachine,
    capture: string,
  ): readonly { readonly minor: number; readonly address: string; readonly isFirst: boolean }[] {
    const inside = existsSync(join(CARDS, capture, 'topology')) ? 'topology/nodes' : 'nodes';
    const nodes = join(CARDS, capture, inside);
    machine.link('sys/class/kfd/kfd/topology/nodes', nodes);
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

  const renderNodes = (reports: readonly DeviceReport[]): readonly string[] =>
    reports.flatMap(({ device }) => device.characterDevices?.filter((path) => path.includes('renderD')) ?? []).sort();

  it('of eight MI210 cards give eight GPUs with the links of their two groups', () => {
    const machine = emptyMachine();
    try {
      const cards = cardsOf(machine, 'kfd-mi210-8gpu');
      const { reports, listing } = machine.collect();
      expect(listing).toBe('complete');
      expect(reports.map(({ device }) => device.id).sort()).toEqual(cards.map(({ address }) => address).sort());
      expect(cards.map(({ minor }) => minor)).toEqual([128, 129, 130, 131, 132, 133, 134, 135]);
      expect(renderNodes(reports)).toEqual(cards.map(({ minor }) => `/dev/dri/renderD${minor}`));
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
      const namesOf = (report: DeviceReport): readonly string[] => Object.keys(seriesOf(toldOf(report)));
      for (const card of whole) expect(namesOf(card).filter((name) => name.includes('gfx_target=90402'))).toHaveLength(1);
      // The nodes say 0 bytes of memory, which is no size.
      expect(reports.flatMap(namesOf).filter((name) => name.startsWith('device_memory_'))).toEqual([]);
      expect(renderNodes(parts)).toEqual(cards.map(({ minor }) => `/dev/dri/renderD${minor}`));
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
