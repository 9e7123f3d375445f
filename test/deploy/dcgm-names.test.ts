import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { PROMTOOLS, testRules } from '../support/promtool.ts';

const scrape = 'namespace="monitoring",pod="device-agent-x",container="agent",instance="i"';
const of = (device: string, labels = ''): string => `{node="n1",device="${device}"${labels},${scrape}}`;
const info = (device: string, kind: string, parent = ''): string =>
  `device_info${of(device, `,family="nvidia",kind="${kind}",model="NVIDIA H100",parent="${parent}"`)}`;
const holder = (device: string, pod: string, workload: string): string =>
  `container_device_allocation${of(device, `,exported_namespace="ml",exported_pod="${pod}",exported_container="${workload}",resource="r"`)}`;
const nic = '{node="n1",device="mlx5_0",instance="i"}';

/** `GPU-a` has one holder, `GPU-b` two, `GPU-c` is cut into two instances, of which one is held. The HCA is no GPU. */
const SERIES: Readonly<Record<string, string>> = {
  [info('GPU-a', 'gpu')]: '1x30',
  [info('GPU-b', 'gpu')]: '1x30',
  [info('GPU-c', 'gpu')]: '1x30',
  [info('MIG-1', 'mig', 'GPU-c')]: '1x30',
  [info('MIG-2', 'mig', 'GPU-c')]: '1x30',
  ...Object.fromEntries(['GPU-a', 'GPU-b', 'GPU-c'].map((gpu, index) => [`device_nvidia_info${of(gpu, `,index="${index}"`)}`, '1x30'])),
  [holder('GPU-a', 'train', 'main')]: '1x30',
  [holder('GPU-b', 'one', 'main')]: '1x30',
  [holder('GPU-b', 'two', 'main')]: '1x30',
  [holder('MIG-2', 'part', 'main')]: '1x30',
  [`device_utilization_ratio${of('GPU-a', ',engine="gpu"')}`]: '0.5x30',
  [`device_utilization_ratio${of('GPU-b', ',engine="gpu"')}`]: '1x30',
  [`device_memory_total_bytes${of('GPU-a')}`]: `${80 * 1_048_576}x30`,
  [`device_memory_used_bytes${of('GPU-a')}`]: `${30 * 1_048_576}x30`,
  [`device_memory_reserved_bytes${of('GPU-a')}`]: `${2 * 1_048_576}x30`,
  [`device_nvidia_activity_ratio${of('GPU-a', ',unit="tensor"')}`]: '0.25x30',
  [`device_memory_used_bytes${of('MIG-1')}`]: `${5 * 1_048_576}x30`,
  [`device_memory_used_bytes${of('MIG-2')}`]: `${6 * 1_048_576}x30`,
  // An older driver counts what it reserves as used, and does not tell it apart.
  [`device_memory_total_bytes${of('GPU-b')}`]: `${80 * 1_048_576}x30`,
  [`device_memory_used_bytes${of('GPU-b')}`]: `${79 * 1_048_576}x30`,
  [`device_temperature_celsius${nic.replace('}', ',sensor="gpu"}')}`]: '50x30',
  [`device_nvidia_xid_errors_total${of('GPU-a', ',xid="13"')}`]: '0x25 1 2x10',
};

const HOLDER = 'namespace="ml", pod="train", container="main"';
const labels = (device: string, gpu: number, uuid: string, more = ''): string =>
  `{node="n1", Hostname="n1", device="${device}", gpu="${gpu}", UUID="${uuid}", modelName="NVIDIA H100"${more === '' ? '' : `, ${more}`}}`;

const EXPECTED: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  DCGM_FI_DEV_GPU_UTIL: { [labels('GPU-a', 0, 'GPU-a', HOLDER)]: 50, [labels('GPU-b', 1, 'GPU-b')]: 100 },
  DCGM_FI_DEV_FB_FREE: { [labels('GPU-a', 0, 'GPU-a', HOLDER)]: 48, [labels('GPU-b', 1, 'GPU-b')]: 1 },
  DCGM_FI_DEV_FB_USED: {
    [labels('GPU-a', 0, 'GPU-a', HOLDER)]: 30,
    [labels('GPU-b', 1, 'GPU-b')]: 79,
    [labels('MIG-1', 2, 'GPU-c')]: 5,
    [labels('MIG-2', 2, 'GPU-c', 'namespace="ml", pod="part", container="main"')]: 6,
  },
  'max(DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{Hostname=~"n1", gpu=~"0"}) by (Hostname, gpu, GPU_I_ID, GPU_I_PROFILE)': {
    '{Hostname="n1", gpu="0"}': 0.25,
  },
  DCGM_FI_DEV_GPU_TEMP: {},
  DCGM_EXP_XID_ERRORS_COUNT: { [labels('GPU-a', 0, 'GPU-a', `${HOLDER}, xid="13"`)]: 0 },
};

function tested(program: string, series: Readonly<Record<string, string>>, expected: typeof EXPECTED): string {
  const asked = Object.entries(expected).map(([name, samples]) => ({
    expr: name,
    eval_time: '10m',
    exp_samples: Object.entries(samples).map(([text, value]) => ({ labels: name.includes('(') ? text : `${name}${text}`, value })),
  }));
  const input = Object.entries(series).map(([name, values]) => ({ series: name, values }));
  return testRules(program, {
    rule_files: [resolve('deploy/rules-dcgm.yaml')],
    evaluation_interval: '30s',
    tests: [{ interval: '30s', input_series: input, promql_expr_test: asked }],
  });
}

describe.each(PROMTOOLS)('names of dcgm-exporter, $program$skipped', ({ program, isThere }) => {
  it.skipIf(!isThere)('have its units and labels, the holder of a device that one container holds, and no other devices', () => {
    expect(tested(program, SERIES, EXPECTED)).toContain('SUCCESS');
  });

  it.skipIf(!isThere)('are there for all devices when two have one name, as nodes without the label node do', () => {
    const doubled = {
      ...SERIES,
      ...Object.fromEntries(
        Object.entries(SERIES)
          .filter(([name]) => name.startsWith('device_nvidia_info') || name.startsWith('device_info'))
          .map(([name, values]) => [
            name.replace('instance="i"', 'instance="j"').replace('index="0"', 'index="7"').replace('H100', 'H200'),
            values,
          ]),
      ),
    };
    expect(tested(program, doubled, { 'count(DCGM_FI_DEV_FB_USED)': { '{}': 4 } })).toContain('SUCCESS');
  });
});
