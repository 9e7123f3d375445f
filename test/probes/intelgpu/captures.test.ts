import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Collection } from '../../../src/model/collection.ts';
import { areThere, skipped } from '../../support/captures.ts';
import { emptyMachine, type ProbedMachine, placeCapture, reportOf, seriesOf } from './harness.ts';

/** Figures of each capture, in the units of the metrics. `undefined`: there must be no such series. */
const FIGURES: Readonly<Record<string, { readonly pci: string; readonly series: Readonly<Record<string, number | undefined>> }>> = {
  'a380-xe': {
    pci: '8086:56a5',
    series: {
      'device_temperature_celsius{sensor=package}': 56,
      'device_temperature_celsius{sensor=memory}': 54,
      'device_fan_speed_rpm{fan=0}': 945,
      'device_fan_speed_rpm{fan=1}': 0,
      'device_power_limit_watts{limit=package_max}': 55,
      'device_voltage_volts{sensor=package}': 0.605,
      // The program LACT shows the requested clock where the GT sleeps and the real one is 0.
      'device_intelgpu_requested_clock_hertz{clock=gt0}': 300e6,
      'device_clock_hertz{clock=gt0}': 0,
      'device_clock_max_hertz{clock=gt0}': 2_450e6,
      device_energy_joules_total: 59_540.97052,
      'device_intelgpu_gt_idle_seconds_total{gt=gt0}': 2_547.784,
      'device_throttled{reason=thermal}': 0,
    },
  },
  'b580-6.16': {
    pci: '8086:e20b',
    series: {
      'device_temperature_celsius{sensor=package}': 46,
      'device_temperature_celsius{sensor=memory}': 48,
      'device_clock_hertz{clock=gt0}': 400e6,
      'device_clock_hertz{clock=gt1}': 0,
      'device_power_limit_watts{limit=card_crit}': 380,
      // The counter of the card stands at 0, so the package is the whole.
      device_energy_joules_total: 29_523.753173,
      'device_fan_speed_rpm{fan=0}': 0,
      'device_fan_speed_rpm{fan=1}': 418,
      'device_fan_speed_rpm{fan=2}': 0,
      device_pcie_link_generation: 1,
      device_pcie_link_width_lanes: 1,
      'device_intelgpu_gt_idle_seconds_total{gt=gt1}': 1_277.96,
    },
  },
  tigerlake: {
    pci: '8086:9a49',
    series: {
      'device_intelgpu_requested_clock_hertz{clock=gt0}': 1_100e6,
      'device_clock_hertz{clock=gt0}': 0,
      device_energy_joules_total: undefined,
      device_pcie_link_generation: undefined,
      'device_throttled{reason=prochot}': 0,
    },
  },
  cometlake: {
    pci: '8086:9b41',
    series: {
      'device_clock_hertz{clock=gt0}': 300e6,
      'device_intelgpu_requested_clock_hertz{clock=gt0}': 300e6,
      'device_clock_max_hertz{clock=gt0}': 1_150e6,
      device_energy_joules_total: undefined,
      'device_throttled{reason=thermal}': undefined,
    },
  },
};

describe.skipIf(!areThere).each(Object.entries(FIGURES))(`the captured card %s${skipped}`, (capture, { pci, series }) => {
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
    expect(collection.reports.map(({ device }) => [device.id, device.kind])).toEqual([[address, 'gpu']]);
    const [report] = collection.reports;
    expect(`${report?.device.pciVendor}:${report?.device.pciDevice}`.replaceAll('0x', '')).toBe(pci);
  });

  it('has the figures that its source states', () => {
    const told = seriesOf(reportOf(collection, address));
    expect(Object.fromEntries(Object.keys(series).map((name) => [name, told[name]]))).toEqual(series);
  });

  it('has no power before its energy was read twice, and no use of engines that nobody measured', () => {
    const names = Object.keys(seriesOf(reportOf(collection, address)));
    expect(names.filter((name) => /^device_(power_watts|utilization)/.test(name))).toEqual([]);
  });
});
