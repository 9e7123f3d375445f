import { afterEach, describe, expect, it } from 'vitest';
import type { Collection } from '../../../src/model/collection.ts';
import { resolve } from '../../../src/probes/fpga/index.ts';
import { simulate } from '../../../src/sim/families/fpga/simulate.ts';
import type { SimulatedFault } from '../../../src/sim/family-simulation.ts';
import { buildMachine } from '../../support/machine.ts';
import { toldOf } from '../../support/told.ts';
import { holding, probeOn, reportOf, seriesValue } from './harness.ts';

const scenario = (fpgas: number, elapsedMs: number, faults: readonly SimulatedFault[] = []) => ({
  counts: { fpga: fpgas },
  elapsedMs,
  faults,
});

const remove: (() => void)[] = [];
afterEach(() => {
  for (const one of remove.splice(0)) one();
});

function collectAt(fpgas: number, elapsedMs: number, faults: readonly SimulatedFault[] = []): Collection {
  const { files, links } = simulate(scenario(fpgas, elapsedMs, faults));
  const machine = buildMachine({ about: 'simulated', files, links });
  remove.push(machine.remove);
  return probeOn(machine).collect();
}

describe('simulated boards', () => {
  it('are found as boards and ports, without a problem', () => {
    const { reports, problems } = collectAt(4, 0);
    expect(problems).toEqual([]);
    expect(reports.map(({ device }) => [device.kind, device.model])).toEqual([
      ['fpga', 'Intel FPGA PAC D5005'],
      ['port', 'Intel FPGA PAC D5005'],
      ['fpga', 'Intel FPGA PAC D5005'],
      ['port', 'Intel FPGA PAC D5005'],
      ['fpga', 'u250'],
      ['fpga', 'u250'],
    ]);
    for (const report of reports) expect(holding(toldOf(report))).toEqual({});
  });

  it('have ids that resolve, one per board', () => {
    const { resources } = simulate(scenario(5, 0));
    expect(resources.map(({ resource }) => resource)).toEqual([
      expect.stringMatching(/^fpga\.intel\.com\/af-bfa\.d84\.[\w-]{43}$/),
      'amd.com/xilinx_u250_gen3x16_xdma_shell_4_1-0',
    ]);
    const devices = collectAt(5, 0).reports.map(({ device }) => device);
    for (const { resource, deviceIds, numaNodes } of resources) {
      expect(numaNodes).toHaveLength(deviceIds.length);
      for (const deviceId of deviceIds) expect(resolve({ resource, deviceId }, devices).length, deviceId).toBeGreaterThan(0);
    }
    expect(resources.flatMap(({ deviceIds }) => deviceIds)).toHaveLength(5);
  });

  it('have a fault from its beginning to its end, and only the board that is named', () => {
    const [intel, alveo] = ['0010:21:00.0', '0010:22:00.1'];
    const faults = [
      { name: 'nonfatal-error', device: intel, fromMs: 30_000, untilMs: 75_000 },
      { name: 'hot', device: intel, fromMs: 80_000 },
      { name: 'hot', device: alveo, fromMs: 90_000 },
    ];
    const heldAt = (elapsedMs: number): object[] =>
      [intel, alveo, '0010:23:00.0'].map((id) => holding(reportOf(collectAt(3, elapsedMs, faults), id)));
    const hot = { 'OverTemperature/fpga_alarm': 'CriticalAlarm', 'Throttled/temperature_max': 'TemperatureAlarm' };
    expect(heldAt(29_999)).toEqual([{}, {}, {}]);
    expect(heldAt(30_000)).toEqual([{ 'NonfatalError/nonfatal_errors': 'RegisterSet' }, {}, {}]);
    expect(heldAt(75_000)).toEqual([{}, {}, {}]);
    expect(heldAt(95_000)).toEqual([hot, { 'OverTemperature/fpga_temp': 'AboveCritical' }, {}]);
  });

  it('change their temperatures, power and executions', () => {
    const values = [0, 90_000].map((elapsedMs) => {
      const alveo = reportOf(collectAt(2, elapsedMs), '0010:22:00.1');
      return ['device_power_watts', 'device_fpga_executions_total'].map((metric) => Number(seriesValue(alveo, metric)));
    });
    expect(values[0]?.[0]).not.toBe(values[1]?.[0]);
    expect(values[1]?.[1]).toBe(3_600);
  });

  it('are the same for the same moment, and none for none', () => {
    expect(simulate(scenario(3, 12_345))).toEqual(simulate(scenario(3, 12_345)));
    expect(simulate(scenario(0, 0))).toEqual({ files: {}, links: {}, resources: [] });
  });

  it('keep the same set of files over time, so that updates only rewrite files', () => {
    expect(Object.keys(simulate(scenario(4, 40_000)).files)).toEqual(Object.keys(simulate(scenario(4, 0)).files));
  });
});
