import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import type { Probe } from '../../../src/probes/family.ts';
import { family } from '../../../src/probes/nvidia/index.ts';
import { probeOptions } from '../../support/probe-options.ts';
import { pythonPackage } from '../../support/python-package.ts';
import { unless } from '../../support/skipped.ts';
import { type Told, toldOf } from '../../support/told.ts';
import { valueIn } from './harness.ts';
import { type LiveNode, liveNode } from './scripted-machine.ts';
import { hopper, type ScriptedNode } from './scripted-script.ts';

// The client of the vendor and the agent read one library, the stand-in of the tests: each figure must be the same. If the stand-in had the
// agent's mistakes about structs, fields or units, the client would read something else.

const { folder: client, missing } = pythonPackage('nvidia-ml-py', '13.615.71');

type Figures = Readonly<Record<string, unknown>>;

let node: LiveNode | undefined;
let probe: Probe | undefined;
afterEach(async () => {
  await probe?.close?.();
  node?.remove();
  node = probe = undefined;
});

const LINKS = { 'link.0': 1, 'link.1': 1, 'link.2': 0 };
const sick = hopper(1, { pstate: 2, reasons: 0x68, pcie_width: 8, remap_corr: 2, 'ecc.1.0.2': 9 });
const machine: ScriptedNode = {
  gpus: [
    hopper(0, LINKS),
    {
      ...sick,
      fields: { ...sick.fields, '230 0': 1 },
      processes: ['C 815 1048576', 'C 816 7'],
    },
  ],
};

async function read(): Promise<readonly Told[]> {
  const { root, library, host } = node as LiveNode;
  writeFileSync(join(root, 'dev/kmsg'), '');
  probe = family.createProbe(host, probeOptions(family, { source: 'nvml', 'nvml-library': library }));
  return (await probe.collect()).reports.map(toldOf);
}

function byClient(): readonly Figures[] {
  const { root } = node as LiveNode;
  const env = { ...process.env, PYTHONPATH: client, PYTHONDONTWRITEBYTECODE: '1', LD_LIBRARY_PATH: root };
  return JSON.parse(execFileSync('python3', ['test/probes/nvidia/vendor/client.py'], { env, encoding: 'utf8' }));
}

/** Each figure of the client: its series, and by what its number is multiplied on the page. */
type Series = readonly [metric: string, labels?: Readonly<Record<string, string>>, scale?: number];
const [PERCENT, MILLI, MEGA, NANO] = [1 / 100, 1 / 1_000, 1e6, 1e-9];
const series: Readonly<Record<string, Series>> = {
  memory_total: ['device_memory_total_bytes'],
  memory_reserved: ['device_memory_reserved_bytes'],
  memory_used: ['device_memory_used_bytes'],
  bar1_total: ['device_nvidia_bar1_memory_total_bytes'],
  bar1_used: ['device_nvidia_bar1_memory_used_bytes'],
  ...each('util_', ['gpu', 'memory', 'encoder', 'decoder', 'jpeg', 'ofa'], (engine) => ['device_utilization_ratio', { engine }, PERCENT]),
  temperature: ['device_temperature_celsius', { sensor: 'gpu' }],
  memory_temperature: ['device_temperature_celsius', { sensor: 'memory' }],
  margin: ['device_nvidia_temperature_margin_celsius'],
  ...each('margin_', ['shutdown', 'slowdown'], (limit) => ['device_nvidia_temperature_limit_margin_celsius', { limit }]),
  ...each('clock_', ['graphics', 'sm', 'video'], (clock) => ['device_clock_hertz', { clock }, MEGA]),
  clock_mem: ['device_clock_hertz', { clock: 'memory' }, MEGA],
  ...each('max_clock_', ['graphics', 'sm', 'video'], (clock) => ['device_clock_max_hertz', { clock }, MEGA]),
  max_clock_mem: ['device_clock_max_hertz', { clock: 'memory' }, MEGA],
  ...each('limit_', ['enforced', 'requested', 'default', 'minimum', 'maximum'], (limit) => ['device_power_limit_watts', { limit }, MILLI]),
  power: ['device_power_watts', { sensor: 'gpu' }, MILLI],
  power_average: ['device_power_watts', { sensor: 'gpu_average' }, MILLI],
  energy: ['device_energy_joules_total', {}, MILLI],
  pstate: ['device_nvidia_performance_state'],
  persistence: ['device_nvidia_persistence_mode_enabled'],
  generation: ['device_pcie_link_generation'],
  max_generation: ['device_pcie_link_max_generation'],
  width: ['device_pcie_link_width_lanes'],
  max_width: ['device_pcie_link_max_width_lanes'],
  replays: ['device_pcie_replays_total'],
  rollovers: ['device_nvidia_pcie_replay_rollovers_total'],
  ...each('ecc_', ['now', 'pending'], (when) => ['device_nvidia_ecc_mode_enabled', { when }]),
  ...each('mig_', ['now', 'pending'], (when) => ['device_nvidia_mig_mode_enabled', { when }]),
  ...each('rows_', ['correctable', 'uncorrectable'], (cause) => ['device_nvidia_remapped_rows_total', { cause }]),
  rows_pending: ['device_nvidia_row_remap_pending'],
  rows_failed: ['device_nvidia_row_remap_failure'],
  ...each('banks_', ['max', 'high', 'partial', 'low', 'none'], (availability) => ['device_nvidia_row_remap_banks', { availability }]),
  ...each('lifetime ', ['correctable sram', 'uncorrectable sram', 'correctable dram', 'uncorrectable dram'], (kind) => {
    const [severity = '', location = ''] = kind.split(' ');
    return ['device_nvidia_ecc_errors_total', { severity, location }];
  }),
  ...each('reason_', ['gpu_idle', 'sw_power_cap', 'hw_slowdown', 'hw_thermal_slowdown', 'sw_thermal_slowdown'], (reason) => [
    'device_throttled',
    { reason },
  ]),
  power_cap_time: ['device_throttled_seconds_total', { reason: 'sw_power_cap' }, NANO],
  heat_time: ['device_throttled_seconds_total', { reason: 'hw_thermal_slowdown' }, NANO],
};

function each(prefix: string, names: readonly string[], of: (name: string) => Series): Readonly<Record<string, Series>> {
  return Object.fromEntries(names.map((name) => [`${prefix}${name}`, of(name)]));
}

describe.skipIf(client === undefined)(`pynvml${unless(client !== undefined, missing ?? '')}`, () => {
  it('and the agent read the same figures from one library', async () => {
    node = liveNode(machine);
    const reports = await read();
    const figures = byClient();
    expect(figures.map(({ uuid }) => uuid)).toEqual(reports.map(({ device }) => device.id));
    for (const [index, figure] of figures.entries()) {
      const report = reports[index] as Told;
      const numbers = Object.entries(series).flatMap(([key, [metric, labels = {}, scale = 1]]) =>
        figure[key] === undefined ? [] : [[key, Number(figure[key]) * scale, Number(valueIn(report, metric, labels))] as const],
      );
      expect(numbers.map(([key, , ours]) => [key, ours])).toEqual(numbers.map(([key, theirs]) => [key, expect.closeTo(theirs, 9)]));
      // What the client does not know would agree with everything.
      expect(numbers.length).toBeGreaterThan(60);
    }
  });

  it('and the agent name the same identity, processes, links, errors and recovery action', async () => {
    node = liveNode(machine);
    const reports = await read();
    for (const [index, figure] of byClient().entries()) {
      const report = reports[index] as Told;
      const { model, serial, firmware, minor } = report.device;
      expect({ model, serial, firmware, minor }).toEqual({
        model: figure.name,
        serial: figure.serial,
        firmware: figure.vbios,
        minor: figure.minor,
      });
      expect(report.processes?.map(({ pid, memoryUsedBytes }) => ({ pid, memory: memoryUsedBytes }))).toEqual(figure.processes);
      const links = (figure.links as readonly number[]).map((_, link) => valueIn(report, 'device_link_up', { port: `nvlink${link}` }));
      expect(links).toEqual(figure.links);
      for (const severity of ['correctable', 'uncorrectable']) {
        const theirs = Number(figure[`volatile ${severity} sram`]) + Number(figure[`volatile ${severity} dram`]);
        expect(Number(valueIn(report, 'device_errors_total', { kind: `ecc_${severity}` }))).toBe(theirs);
      }
      const [recovery] = report.findings.filter(({ type }) => type === 'RecoveryAction');
      expect([figure.recovery, recovery?.status, recovery?.reason]).toEqual(index === 0 ? [0, false, 'None'] : [1, true, 'GpuReset']);
    }
  });
});
