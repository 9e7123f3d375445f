import { describe, expect, it } from 'vitest';
import { snapshotTable } from '../../src/cli/list/table.ts';
import type { Allocation } from '../../src/model/allocation.ts';
import type { Reading } from '../../src/model/metric.ts';
import type { DeviceState, Snapshot } from '../../src/model/snapshot.ts';

const allocation = (pod: string, deviceId = 'x', resource = 'nvidia.com/gpu'): Allocation => ({
  namespace: 'ml',
  pod,
  container: 'main',
  resource,
  deviceId,
  numaNodes: [],
});

const device = (id: string, readings: Reading[] = [], more: Partial<DeviceState> = {}): DeviceState => ({
  key: `nvidia/${id}`,
  device: { family: 'nvidia', id, kind: 'gpu', aliases: [], model: 'H200' },
  readings: readings,
  processes: [],
  verdict: { state: 'healthy', sinceMs: 0, conditions: [] },
  holders: [],
  readAtMs: 0,
  stale: false,
  ...more,
});

const snapshot = (devices: DeviceState[], allocations: Snapshot['allocations'] = []): Snapshot => ({
  sequence: 1,
  takenAtMs: 0,
  devices,
  allocations,
  containerReadings: [],
  families: [],
  podResources: { allocations: [], held: new Set(), exclusive: [], podExclusive: [] },
});

/** The cells of the first device's row. */
const row = (state: DeviceState): string[] =>
  snapshotTable(snapshot([state]))
    .split('\n')[1]
    ?.split(/ {2,}/) ?? [];

const GIB = 2 ** 30;

const PORT_DOWN = {
  type: 'PortDown',
  class: 'latched',
  severity: 'fatal',
  reason: 'X',
  message: '',
  remedy: 'check-cable',
  sinceMs: 0,
} as const;
const SLOW = { ...PORT_DOWN, type: 'RateDegraded', class: 'latched', severity: 'degraded' } as const;
const WAITS = { ...PORT_DOWN, countsAtMs: 30_000 };
const QUIET = { sinceMs: 5, untilMs: 60_000 };

describe('table of devices', () => {
  it('shows what a busy GPU does and who holds it', () => {
    const readings: Reading[] = [
      { metric: 'device_utilization_ratio', labels: { engine: 'memory' }, value: 0.99 },
      { metric: 'device_utilization_ratio', labels: { engine: 'gpu' }, value: 0.934 },
      { metric: 'device_memory_used_bytes', value: 118n * BigInt(GIB) },
      { metric: 'device_memory_total_bytes', value: 141 * GIB },
      { metric: 'device_temperature_celsius', labels: { sensor: 'memory' }, value: 72 },
      { metric: 'device_temperature_celsius', labels: { sensor: 'gpu' }, value: 61.4 },
      { metric: 'device_power_watts', labels: { sensor: 'board' }, value: 640.2 },
      { metric: 'device_power_limit_watts', labels: { limit: 'max' }, value: 750 },
      { metric: 'device_power_limit_watts', labels: { limit: 'enforced' }, value: 700 },
    ];
    expect(row(device('gpu-0', readings, { holders: [allocation('train-0')] }))).toEqual([
      'gpu-0',
      'gpu',
      'H200',
      'healthy',
      '93%',
      '118/141 GiB',
      '72°C',
      '640/700W',
      'ml/train-0/main',
    ]);
  });

  it('leaves open what could not be read', () => {
    expect(row(device('gpu-0'))).toEqual(['gpu-0', 'gpu', 'H200', 'healthy', '-', '-', '-', '-', '-']);
  });

  it('shows zero as zero', () => {
    const readings: Reading[] = [
      { metric: 'device_utilization_ratio', labels: { engine: 'gpu' }, value: 0 },
      { metric: 'device_memory_used_bytes', value: 0 },
      { metric: 'device_memory_total_bytes', value: 2.5 * GIB },
      { metric: 'device_temperature_celsius', labels: { sensor: 'gpu' }, value: 0 },
      { metric: 'device_power_watts', labels: { sensor: 'board' }, value: 0 },
    ];
    expect(row(device('gpu-0', readings)).slice(4, 8)).toEqual(['0%', '0/2.5 GiB', '0°C', '0W']);
  });

  it('takes the largest of sensors of which none stands for the whole device', () => {
    const readings: Reading[] = [40, 77, 51].map((value, index) => ({
      metric: 'device_temperature_celsius',
      labels: { sensor: `qsfp${index}` },
      value,
    }));
    expect(row(device('fpga-0', readings))[6]).toBe('77°C');
  });

  it('counts further holders, each container once', () => {
    const holders = [allocation('a', '0'), allocation('a', '1'), allocation('b'), allocation('c')];
    expect(row(device('gpu-0', [], { holders })).at(-1)).toBe('ml/a/main +2');
  });

  it.each<[string, Partial<DeviceState>, string]>([
    [
      'a fault',
      {
        verdict: {
          state: 'unhealthy',
          sinceMs: 0,
          conditions: [{ type: 'XidError', class: 'latched', severity: 'fatal', reason: 'X', message: '', remedy: 'reset', sinceMs: 0 }],
        },
      },
      'unhealthy (XidError)',
    ],
    ['its absence', { missingSinceMs: 5, verdict: { state: 'unhealthy', sinceMs: 5, conditions: [] } }, 'unhealthy (missing)'],
    ['old readings', { stale: true, verdict: { state: 'unknown', sinceMs: 5, conditions: [] } }, 'unknown (stale)'],
    ['what waits to count', { verdict: { state: 'healthy', sinceMs: 0, conditions: [], pending: [WAITS] } }, 'healthy (PortDown pending)'],
    [
      'the first that waits to count',
      { verdict: { state: 'healthy', sinceMs: 0, conditions: [], pending: [{ ...WAITS, unverifiedSinceMs: 5 }, WAITS, WAITS] } },
      'healthy (PortDown pending unverified +2)',
    ],
    [
      'nothing that waits to be recorded only',
      { verdict: { state: 'healthy', sinceMs: 0, conditions: [], pending: [{ ...WAITS, class: 'latched', severity: 'info' }] } },
      'healthy',
    ],
    [
      'what counts and what waits to',
      { verdict: { state: 'degraded', sinceMs: 0, conditions: [SLOW], pending: [WAITS] } },
      'degraded (RateDegraded, PortDown pending)',
    ],
    [
      'what waits to be withdrawn',
      { verdict: { state: 'unhealthy', sinceMs: 0, conditions: [{ ...PORT_DOWN, recovering: QUIET }] } },
      'unhealthy (PortDown recovering)',
    ],
    [
      'what nobody could verify',
      { verdict: { state: 'unhealthy', sinceMs: 0, conditions: [{ ...PORT_DOWN, unverifiedSinceMs: 5 }] } },
      'unhealthy (PortDown unverified)',
    ],
    ['no reason', { verdict: { state: 'unknown', sinceMs: 5, conditions: [] } }, 'unknown'],
  ])('names %s', (_name, more, cell) => {
    expect(row(device('gpu-0', [], more))[3]).toBe(cell);
  });

  it('lists allocations without a device below', () => {
    const text = snapshotTable(
      snapshot(
        [device('gpu-0')],
        [
          { allocation: allocation('p', '7', 'rdma/shared'), devices: [], unresolved: 'no-device', held: false },
          { allocation: allocation('q'), devices: ['nvidia/gpu-0'], held: false },
        ],
      ),
    );
    expect(text.split('\n\n')[1]).toBe(
      ['HOLDER     RESOURCE     DEVICE ID  WHY IT HAS NO DEVICE', 'ml/p/main  rdma/shared  7          no-device', ''].join('\n'),
    );
  });
});
