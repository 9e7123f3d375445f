import { chmodSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/host/clock.ts';
import { createHost } from '../../../src/host/host.ts';
import type { Collection, DeviceReport } from '../../../src/model/collection.ts';
import type { Reading } from '../../../src/model/metric.ts';
import { family } from '../../../src/probes/nvidia/index.ts';
import { areThere, CAPTURES, skipped } from '../../support/captures.ts';
import { probeOptions } from '../../support/probe-options.ts';
import { toldOf } from '../../support/told.ts';

const DOCUMENTS = join(CAPTURES, 'nvidia-smi');

const MIB = 1_048_576;
const MHZ = 1_000_000;

interface Facts {
  readonly id: string;
  readonly kind: string;
  readonly device: Readonly<Record<string, string | undefined>>;
  /** Series, as it stands on the page, to its value; undefined: the file does not tell it. */
  readonly values: Readonly<Record<string, number | undefined>>;
  /** Process id to memory in bytes. */
  readonly processes?: Readonly<Record<number, number>>;
  /** Conditions that hold; none by default. */
  readonly holding?: readonly string[];
}

/** Taken by hand from the files; undefined means that a file has no value. */
const FACTS: Readonly<Record<string, readonly Facts[]>> = {
  'gtx-1660-ti.xml': [
    {
      id: 'GPU-304a277d-3545-63b8-3a36-dfde3c992989',
      kind: 'gpu',
      device: { model: 'Graphics Device', pciAddress: '0000:43:00.0', firmware: '90.16.25.00.4C', serial: undefined, numaNode: undefined },
      values: {
        device_memory_total_bytes: 5912 * MIB,
        device_memory_used_bytes: 0,
        device_memory_reserved_bytes: undefined,
        device_nvidia_bar1_memory_total_bytes: 256 * MIB,
        device_nvidia_bar1_memory_used_bytes: 2 * MIB,
        'device_utilization_ratio{engine=gpu}': 0,
        'device_utilization_ratio{engine=memory}': 0.01,
        'device_utilization_ratio{engine=encoder}': 0,
        'device_utilization_ratio{engine=decoder}': 0,
        'device_utilization_ratio{engine=jpeg}': undefined,
        'device_temperature_celsius{sensor=gpu}': 40,
        'device_temperature_celsius{sensor=memory}': undefined,
        'device_temperature_limit_celsius{limit=shutdown,sensor=gpu}': 96,
        'device_temperature_limit_celsius{limit=slowdown,sensor=gpu}': 93,
        'device_temperature_limit_celsius{limit=maximum,sensor=gpu}': 91,
        'device_temperature_limit_celsius{limit=maximum,sensor=memory}': undefined,
        'device_power_watts{sensor=gpu}': 8.93,
        'device_power_limit_watts{limit=enforced}': 130,
        'device_power_limit_watts{limit=requested}': 130,
        'device_power_limit_watts{limit=default}': 130,
        'device_power_limit_watts{limit=minimum}': 70,
        'device_power_limit_watts{limit=maximum}': 130,
        'device_clock_hertz{clock=graphics}': 300 * MHZ,
        'device_clock_hertz{clock=sm}': 300 * MHZ,
        'device_clock_hertz{clock=memory}': 405 * MHZ,
        'device_clock_hertz{clock=video}': 540 * MHZ,
        'device_clock_max_hertz{clock=graphics}': 2145 * MHZ,
        'device_clock_max_hertz{clock=sm}': 2145 * MHZ,
        'device_clock_max_hertz{clock=memory}': 4001 * MHZ,
        'device_clock_max_hertz{clock=video}': 1950 * MHZ,
        'device_fan_speed_ratio{fan=0}': 0,
        device_nvidia_performance_state: 8,
        'device_throttled{reason=gpu_idle}': 1,
        'device_throttled{reason=sw_power_cap}': 0,
        'device_throttled{reason=hw_thermal_slowdown}': 0,
        'device_throttled{reason=board_limit}': undefined,
        device_pcie_link_width_lanes: 16,
        device_pcie_link_max_width_lanes: 16,
        device_pcie_link_generation: 1,
        device_pcie_link_max_generation: 3,
        device_pcie_replays_total: 0,
        'device_errors_total{kind=ecc_correctable}': undefined,
        'device_nvidia_ecc_mode_enabled{when=now}': undefined,
        device_nvidia_persistence_mode_enabled: 0,
        'device_nvidia_mig_mode_enabled{when=now}': undefined,
        'device_voltage_volts{sensor=graphics}': undefined,
      },
    },
  ],
  'quadro-p400.xml': [
    {
      id: 'GPU-8f750be4-dfbc-23b9-b33f-da729a536494',
      kind: 'gpu',
      device: { model: 'Quadro P400', pciAddress: '0000:43:00.0', firmware: '86.07.3B.00.4A', serial: '0424418054852' },
      values: {
        device_memory_total_bytes: 1998 * MIB,
        device_memory_used_bytes: 0,
        'device_utilization_ratio{engine=memory}': 0.03,
        'device_temperature_celsius{sensor=gpu}': 33,
        'device_temperature_limit_celsius{limit=shutdown,sensor=gpu}': 103,
        'device_temperature_limit_celsius{limit=slowdown,sensor=gpu}': 100,
        'device_temperature_limit_celsius{limit=maximum,sensor=gpu}': undefined,
        'device_power_watts{sensor=gpu}': undefined,
        'device_power_limit_watts{limit=enforced}': undefined,
        'device_power_limit_watts{limit=default}': undefined,
        'device_clock_hertz{clock=graphics}': 139 * MHZ,
        'device_clock_hertz{clock=video}': 544 * MHZ,
        'device_clock_max_hertz{clock=graphics}': 1252 * MHZ,
        'device_clock_max_hertz{clock=memory}': 2005 * MHZ,
        'device_fan_speed_ratio{fan=0}': 0.34,
        'device_errors_total{kind=ecc_uncorrectable}': undefined,
        'device_nvidia_retired_pages{cause=double_bit}': undefined,
        device_pcie_link_generation: 1,
        device_pcie_link_max_generation: 3,
      },
    },
  ],
  'tesla-t4.xml': [
    {
      id: 'GPU-d37e67a5-91dd-3774-a5cb-99096249601a',
      kind: 'gpu',
      device: { model: 'Tesla T4', pciAddress: '0000:00:1e.0', firmware: '90.04.84.00.06' },
      values: {
        device_memory_total_bytes: 15_360 * MIB,
        device_memory_reserved_bytes: 388 * MIB,
        device_memory_used_bytes: 1032 * MIB,
        'device_temperature_limit_celsius{limit=maximum,sensor=gpu}': 85,
        'device_power_watts{sensor=gpu}': 26.78,
        'device_power_limit_watts{limit=minimum}': 60,
        'device_clock_hertz{clock=memory}': 5000 * MHZ,
        'device_clock_max_hertz{clock=memory}': 5001 * MHZ,
        'device_fan_speed_ratio{fan=0}': undefined,
        'device_nvidia_ecc_mode_enabled{when=now}': 1,
        'device_nvidia_ecc_mode_enabled{when=pending}': 1,
        'device_nvidia_ecc_errors_total{location=sram,severity=correctable}': 0,
        'device_nvidia_ecc_errors_total{location=sram,severity=uncorrectable}': 0,
        'device_nvidia_ecc_errors_total{location=dram,severity=correctable}': 0,
        'device_nvidia_ecc_errors_total{location=dram,severity=uncorrectable}': 0,
        'device_errors_total{kind=ecc_correctable}': 0,
        'device_errors_total{kind=ecc_uncorrectable}': 0,
        'device_nvidia_retired_pages{cause=single_bit}': 0,
        'device_nvidia_retired_pages{cause=double_bit}': 0,
        device_nvidia_retired_pages_pending: 0,
        device_nvidia_row_remap_pending: undefined,
        device_pcie_link_width_lanes: 8,
        device_pcie_link_max_width_lanes: 16,
        device_pcie_link_generation: 3,
        device_nvidia_performance_state: 0,
        'device_throttled{reason=gpu_idle}': 0,
      },
      processes: { 675: 22 * MIB, 5762: 1005 * MIB },
    },
  ],
  'quadro-p2000-v12.xml': [
    {
      id: 'GPU-396caaed-39ca-3199-2e68-717cdb786ec6',
      kind: 'gpu',
      device: { model: 'Quadro P2000', pciAddress: '0000:17:00.0', serial: '0322218049033' },
      values: {
        device_memory_total_bytes: 5120 * MIB,
        device_memory_reserved_bytes: 66 * MIB,
        device_memory_used_bytes: 1 * MIB,
        'device_temperature_celsius{sensor=gpu}': 34,
        'device_temperature_limit_celsius{limit=shutdown,sensor=gpu}': 104,
        device_nvidia_temperature_margin_celsius: undefined,
        'device_power_watts{sensor=gpu}': 4.61,
        'device_power_limit_watts{limit=enforced}': 75,
        'device_fan_speed_ratio{fan=0}': 0.46,
        'device_clock_max_hertz{clock=video}': 1556 * MHZ,
        device_pcie_link_width_lanes: 8,
        device_pcie_link_generation: 1,
        device_nvidia_persistence_mode_enabled: 1,
        'device_nvidia_fabric_state{state=completed}': undefined,
      },
    },
  ],
  'rtx-3060-v12.xml': [
    {
      id: 'GPU-d6889ff6-2523-9142-ca3c-1ca3f396a625',
      kind: 'gpu',
      device: { model: 'NVIDIA GeForce RTX 3060', pciAddress: '0000:2d:00.0', serial: undefined },
      values: {
        device_memory_total_bytes: 12_288 * MIB,
        device_memory_reserved_bytes: 368 * MIB,
        device_memory_used_bytes: 116 * MIB,
        'device_temperature_celsius{sensor=gpu}': 42,
        'device_power_watts{sensor=gpu}': 11.63,
        'device_power_watts{sensor=gpu_average}': 11.6,
        'device_power_watts{sensor=module}': undefined,
        'device_power_watts{sensor=memory}': undefined,
        'device_power_limit_watts{limit=maximum}': 190,
        'device_utilization_ratio{engine=jpeg}': 0,
        'device_utilization_ratio{engine=ofa}': 0,
        'device_nvidia_pcie_throughput_bytes_per_second{direction=transmit}': 550_000,
        'device_nvidia_pcie_throughput_bytes_per_second{direction=receive}': 500_000,
        'device_nvidia_recovery_action{action=none}': 1,
        'device_nvidia_recovery_action{action=gpu_reset}': undefined,
        'device_nvidia_recovery_action{action=node_reboot}': undefined,
        device_nvidia_ecc_sram_threshold_exceeded: undefined,
      },
    },
  ],
  'rtx-3080-v12.xml': [
    {
      id: 'GPU-19d6d965-2acc-f646-00f8-4c76979aabb4',
      kind: 'gpu',
      device: { model: 'NVIDIA GeForce RTX 3080', pciAddress: '0000:04:00.0' },
      values: {
        device_memory_total_bytes: 10_240 * MIB,
        device_memory_reserved_bytes: 173 * MIB,
        device_memory_used_bytes: 1128 * MIB,
        device_nvidia_bar1_memory_total_bytes: 16_384 * MIB,
        'device_utilization_ratio{engine=memory}': 0.37,
        'device_power_watts{sensor=gpu}': 22.78,
        'device_power_limit_watts{limit=enforced}': 336,
        'device_power_limit_watts{limit=default}': 320,
        'device_voltage_volts{sensor=graphics}': 0.75,
        'device_nvidia_pcie_throughput_bytes_per_second{direction=receive}': 6_000_000,
        device_nvidia_persistence_mode_enabled: undefined,
        'device_nvidia_recovery_action{action=none}': 1,
      },
      processes: { 835: 550 * MIB, 1481: 18 * MIB, 2214: 79 * MIB, 4044: 541 * MIB, 42416: 159 * MIB },
    },
  ],
  'rtx-3080-v13.xml': [
    {
      id: 'GPU-19d6d965-2acc-f646-00f8-4c76979aabb4',
      kind: 'gpu',
      device: { model: 'NVIDIA GeForce RTX 3080', pciAddress: '0000:0c:00.0', serial: undefined },
      values: {
        device_memory_used_bytes: 9184 * MIB,
        device_nvidia_bar1_memory_used_bytes: 9218 * MIB,
        'device_utilization_ratio{engine=gpu}': 0.65,
        'device_utilization_ratio{engine=memory}': 0.09,
        'device_temperature_celsius{sensor=gpu}': 27,
        'device_power_watts{sensor=gpu}': 142.33,
        'device_power_watts{sensor=gpu_average}': 139.62,
        'device_power_limit_watts{limit=maximum}': 336,
        'device_clock_hertz{clock=memory}': 9251 * MHZ,
        'device_clock_max_hertz{clock=memory}': 9501 * MHZ,
        device_nvidia_performance_state: 2,
        'device_throttled_seconds_total{reason=sw_power_cap}': 0,
        'device_throttled_seconds_total{reason=hw_power_brake_slowdown}': 0,
        'device_nvidia_pcie_throughput_bytes_per_second{direction=transmit}': 1_066_699_000,
        'device_nvidia_pcie_throughput_bytes_per_second{direction=receive}': 14_742_333_000,
        'device_nvidia_memory_repair_pending{part=channel}': 0,
        'device_nvidia_memory_repair_pending{part=tpc}': 0,
        device_nvidia_memory_unrepairable: undefined,
        'device_voltage_volts{sensor=graphics}': undefined,
        'device_nvidia_recovery_action{action=none}': 1,
      },
    },
  ],
  'rtx-3090-v12.xml': [
    {
      id: 'GPU-12345678-aaaa-bbbb-cccc-0123456789ab',
      kind: 'gpu',
      device: { model: 'NVIDIA GeForce RTX 3090', pciAddress: '0000:00:10.0', serial: undefined },
      values: {
        device_memory_total_bytes: 24_576 * MIB,
        'device_power_watts{sensor=gpu}': 27.23,
        'device_power_limit_watts{limit=enforced}': 200,
        'device_power_limit_watts{limit=requested}': 200,
        'device_power_limit_watts{limit=default}': 350,
        'device_power_limit_watts{limit=maximum}': 375,
        'device_clock_hertz{clock=graphics}': 0,
        'device_clock_hertz{clock=video}': 555 * MHZ,
        'device_clock_max_hertz{clock=memory}': 9751 * MHZ,
        'device_voltage_volts{sensor=graphics}': 0,
        device_pcie_link_generation: 1,
        device_pcie_link_max_generation: 4,
      },
    },
  ],
  'a100-sxm4-v12.xml': [
    {
      id: 'GPU-513536b6-7d19-9063-b049-1e69664bb298',
      kind: 'gpu',
      device: { model: 'NVIDIA A100-SXM4-80GB', pciAddress: '0000:01:00.0', serial: '1650522003820', firmware: '92.00.36.00.02' },
      values: {
        device_memory_total_bytes: 81_920 * MIB,
        device_memory_reserved_bytes: 869 * MIB,
        device_memory_used_bytes: 50 * MIB,
        'device_utilization_ratio{engine=gpu}': undefined,
        'device_utilization_ratio{engine=encoder}': undefined,
        'device_temperature_celsius{sensor=gpu}': 27,
        'device_temperature_celsius{sensor=memory}': 44,
        'device_temperature_limit_celsius{limit=shutdown,sensor=gpu}': 92,
        'device_temperature_limit_celsius{limit=slowdown,sensor=gpu}': 89,
        'device_temperature_limit_celsius{limit=maximum,sensor=gpu}': 85,
        'device_temperature_limit_celsius{limit=maximum,sensor=memory}': 95,
        'device_power_watts{sensor=gpu}': 67.03,
        'device_power_watts{sensor=gpu_average}': undefined,
        'device_power_watts{sensor=module}': undefined,
        'device_power_limit_watts{limit=enforced}': 500,
        'device_power_limit_watts{limit=minimum}': 100,
        'device_voltage_volts{sensor=graphics}': 0.9125,
        'device_nvidia_mig_mode_enabled{when=now}': 1,
        'device_nvidia_mig_mode_enabled{when=pending}': 1,
        'device_nvidia_pcie_throughput_bytes_per_second{direction=transmit}': 4_000_000,
        'device_nvidia_ecc_errors_total{location=dram,severity=uncorrectable}': 0,
        'device_nvidia_remapped_rows_total{cause=correctable}': undefined,
        device_nvidia_row_remap_pending: undefined,
        'device_nvidia_recovery_action{action=none}': 1,
        'device_fan_speed_ratio{fan=0}': undefined,
      },
    },
    ...[3, 4, 5, 6].map(
      (gpuInstance): Facts => ({
        id: `MIG-GPU-513536b6-7d19-9063-b049-1e69664bb298/${gpuInstance}/0`,
        kind: 'mig',
        device: { parent: 'GPU-513536b6-7d19-9063-b049-1e69664bb298' },
        values: {
          device_memory_total_bytes: 19_968 * MIB,
          device_memory_reserved_bytes: 0,
          device_memory_used_bytes: 12 * MIB,
          device_nvidia_bar1_memory_total_bytes: 32_767 * MIB,
          device_nvidia_bar1_memory_used_bytes: 0,
          device_nvidia_mig_multiprocessors: 14,
          'device_errors_total{kind=ecc_uncorrectable}': 0,
        },
      }),
    ),
  ],
};

const seriesName = ({ metric, labels = {} }: Reading): string => {
  const pairs = Object.entries(labels)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `${name}=${value}`);
  return pairs.length === 0 ? metric : `${metric}{${pairs.join(',')}}`;
};

const directory = mkdtempSync(join(tmpdir(), 'device-agent-captures-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** Collection of the probe for a capture that a real program prints. `-L` prints nothing. */
async function collectCapture(file: string): Promise<Collection> {
  const program = join(directory, file.replace('.xml', ''));
  writeFileSync(program, `#!/bin/sh\n[ "$*" = "-q -x" ] && exec cat '${join(DOCUMENTS, file)}'\nexit 6\n`);
  chmodSync(program, 0o755);
  const host = createHost({ sysfs: join(directory, 'sys'), procfs: join(directory, 'proc'), dev: join(directory, 'dev') }, systemClock);
  return await family.createProbe(host, probeOptions(family, { 'smi-path': program })).collect();
}

const captures = Object.entries(FACTS);

it.skipIf(!areThere)(`facts are there for every capture${skipped}`, () => {
  expect(Object.keys(FACTS).sort()).toEqual(readdirSync(DOCUMENTS).sort());
});

describe.skipIf(!areThere).each(captures)(`the capture %s${skipped}`, (file, expected) => {
  let collection: Collection;
  beforeAll(async () => {
    collection = await collectCapture(file);
  });

  it('shows these devices and no others', () => {
    // No capture has the UUIDs of MIG instances, so their devices may be known under other names.
    expect(collection.listing).toBe(expected.some(({ kind }) => kind === 'mig') ? 'partial' : 'complete');
    expect(collection.reports.map(({ device }) => [device.id, device.kind])).toEqual(expected.map(({ id, kind }) => [id, kind]));
  });

  it('has no value that could not be understood', () => {
    expect(collection.problems.filter(({ code }) => code === 'unknown-value')).toEqual([]);
  });

  it.each(expected)('gives $id the values of the file', ({ id, device, values, processes, holding }) => {
    const report = toldOf(collection.reports.find((each) => each.device.id === id) as DeviceReport);
    for (const [name, value] of Object.entries(device)) expect(report.device[name as keyof typeof report.device], name).toBe(value);
    const read = new Map(report.readings.map((reading) => [seriesName(reading), reading.value]));
    expect(read.size, 'no series twice').toBe(report.readings.length);
    expect(Object.fromEntries(Object.keys(values).map((series) => [series, read.get(series)]))).toEqual(values);
    expect(Object.fromEntries((report.processes ?? []).map(({ pid, memoryUsedBytes }) => [pid, memoryUsedBytes]))).toEqual(processes ?? {});
    expect(report.findings.filter(({ status }) => status === true).map(({ type }) => type)).toEqual(holding ?? []);
  });
});
