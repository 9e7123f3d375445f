import { type Board, boardOf } from '../../../src/board/board.ts';
import type { Allocation } from '../../../src/model/allocation.ts';
import type { ActiveCondition, PendingCondition } from '../../../src/model/health.ts';
import type { Reading } from '../../../src/model/metric.ts';
import { Readings } from '../../../src/model/readings.ts';
import type { DeviceState, Snapshot } from '../../../src/model/snapshot.ts';
import { type WholeBoard, wholeBoard } from '../../../src/server/api/views.ts';

/** 12:03:20 on the day of the board. */
export const NOW_MS = Date.parse('2026-11-23T12:03:20Z');
const MINUTE = 60_000;
const GIB = 2 ** 30;

type Parts = Partial<Omit<DeviceState, 'device'>> & { device: DeviceState['device'] };

const device = ({ device: of, ...more }: Parts): DeviceState => ({
  key: `${of.family}/${of.id}`,
  device: of,
  readings: Readings.of([]),
  processes: [],
  verdict: { state: 'healthy', sinceMs: NOW_MS - 180 * MINUTE, conditions: [] },
  holders: [],
  readAtMs: NOW_MS - 400,
  stale: false,
  ...more,
});

const holder = (pod: string, resource: string, container = 'main', namespace = 'training'): Allocation => ({
  namespace,
  pod,
  container,
  resource,
  deviceId: 'x',
  numaNodes: [],
});

const gpuReadings = (busy: number, gib: number, watts: number): Reading[] => [
  { metric: 'device_utilization_ratio', labels: { engine: 'gpu' }, value: busy },
  { metric: 'device_memory_used_bytes', value: gib * GIB },
  { metric: 'device_memory_total_bytes', value: 80 * GIB },
  { metric: 'device_power_watts', labels: { sensor: 'board' }, value: watts },
  { metric: 'device_power_limit_watts', labels: { limit: 'enforced' }, value: 700 },
];

const PORT_DOWN: ActiveCondition = {
  type: 'PortDown',
  instance: '1',
  class: 'latched',
  severity: 'fatal',
  reason: 'LinkDown',
  message: 'Port 1 is down; its physical state is Polling.',
  remedy: 'check-cable',
  sinceMs: NOW_MS - 12 * MINUTE,
};
const HOT: PendingCondition = {
  type: 'Throttled',
  class: 'self-clearing',
  severity: 'degraded',
  reason: 'Thermal',
  message: 'Heat slows the clocks down.',
  remedy: 'check-cooling',
  sinceMs: NOW_MS - 20_000,
  countsAtMs: NOW_MS + 40_000,
};
const RETIRED: ActiveCondition = {
  type: 'RowRemapPending',
  class: 'latched',
  severity: 'degraded',
  reason: 'RemapPending',
  message: '1 row waits for a reset.',
  remedy: 'reset',
  sinceMs: NOW_MS - 26 * 60 * MINUTE,
  recovering: { sinceMs: NOW_MS - 30_000, untilMs: NOW_MS + 30_000 },
};

const gpu = (index: number, more: Partial<DeviceState> = {}): DeviceState => {
  const id = `GPU-5e1f000${index}-0000-4000-8000-00000000000${index}`;
  const address = `0000:${index + 1}8:00.0`;
  return device({
    device: {
      family: 'nvidia',
      id,
      uuid: id,
      kind: 'gpu',
      aliases: [],
      model: 'NVIDIA H100 80GB HBM3',
      index: String(index),
      pciAddress: address,
      numaNode: index < 2 ? 0 : 1,
      pciPath: `pci0000:${index < 2 ? '1' : '8'}0/${address}`,
    },
    ...more,
  });
};
const GPU_2 = 'GPU-5e1f0002-0000-4000-8000-000000000002';

const mig = (index: number, more: Partial<DeviceState> = {}): DeviceState =>
  device({
    device: {
      family: 'nvidia',
      id: `MIG-5e1f0002-0000-4000-8000-00000000010${index}`,
      uuid: `MIG-5e1f0002-0000-4000-8000-00000000010${index}`,
      kind: 'mig',
      aliases: [],
      model: 'NVIDIA H100 80GB HBM3 MIG 3g.40gb',
      parent: GPU_2,
      index: `2:${index}`,
      numaNode: 1,
    },
    readings: Readings.of([
      { metric: 'device_memory_used_bytes', value: index * 10 * GIB },
      { metric: 'device_memory_total_bytes', value: 40 * GIB },
    ]),
    ...more,
  });

const port = (id: string, numaNode: number, more: Partial<DeviceState> = {}, parent?: string): DeviceState =>
  device({
    device: {
      family: 'infiniband',
      id,
      kind: parent === undefined ? 'pf' : 'vf',
      aliases: [],
      model: 'ConnectX-7',
      numaNode,
      ...(parent === undefined ? {} : { parent }),
    },
    readings: Readings.of([
      { metric: 'device_received_bytes_total', labels: { port: '1' }, value: 10n ** 15n },
      { metric: 'device_transmitted_bytes_total', labels: { port: '1' }, value: 3n * 10n ** 14n },
      { metric: 'device_link_up', labels: { port: '1' }, value: 1 },
      { metric: 'device_link_speed_bytes_per_second', labels: { port: '1' }, value: 50e9 },
    ]),
    ...more,
  });

/** A node with one device of each kind of trouble. */
export function fixedSnapshot(more: readonly DeviceState[] = []): Snapshot {
  return {
    sequence: 7,
    takenAtMs: NOW_MS - 400,
    devices: [
      gpu(0, { readings: Readings.of(gpuReadings(0.934, 71.2, 640)), holders: [holder('finetune-0-0', 'nvidia.com/gpu', 'trainer')] }),
      gpu(1, {
        readings: Readings.of(gpuReadings(0.05, 2.5, 120)),
        holders: [holder('serve-7d9c', 'nvidia.com/gpu', 'vllm', 'inference')],
        verdict: { state: 'healthy', sinceMs: NOW_MS - 90 * MINUTE, conditions: [], pending: [HOT] },
      }),
      gpu(2, { readings: Readings.of(gpuReadings(0, 10, 90)) }),
      mig(0),
      mig(1, { holders: [holder('notebook-ana', 'nvidia.com/mig-3g.40gb', 'jupyter', 'research')] }),
      gpu(3, {
        readings: Readings.of(gpuReadings(0, 0, 70)),
        verdict: { state: 'degraded', sinceMs: NOW_MS - 26 * 60 * MINUTE, conditions: [RETIRED] },
      }),
      port('mlx5_0', 0, { verdict: { state: 'unhealthy', sinceMs: NOW_MS - 12 * MINUTE, conditions: [PORT_DOWN] } }),
      port('mlx5_1', 1),
      port('mlx5_4', 1, { holders: [holder('mpi-0-0', 'device-agent.dev/vf', 'rank')] }, 'mlx5_1'),
      device({
        device: { family: 'fpga', id: '0010:21:00.0', kind: 'fpga', aliases: [], model: 'Alveo U250', pciAddress: '0010:21:00.0' },
        readings: Readings.of([{ metric: 'device_temperature_celsius', labels: { sensor: 'fpga' }, value: 61 }]),
        verdict: { state: 'unknown', sinceMs: NOW_MS - 3 * MINUTE, conditions: [] },
      }),
      ...more,
    ],
    allocations: [
      { allocation: { ...holder('old-0', 'example.com/tpu'), deviceId: 'tpu-3' }, devices: [], unresolved: 'no-device', held: false },
    ],
    containerReadings: [],
    families: [
      family('nvidia', []),
      family('infiniband', []),
      family('fpga', [{ code: 'sensor-unreadable', message: 'A sensor of 0010:21:00.0 cannot be read (EIO).' }]),
    ],
    podResources: { allocations: [], held: new Set(), exclusive: [], podExclusive: [], answeredAtMs: NOW_MS - 900 },
  };
}

const family = (name: string, problems: Snapshot['families'][number]['problems']): Snapshot['families'][number] => ({
  family: name,
  succeeded: true,
  lastSuccessMs: NOW_MS - 400,
  problems,
  runs: 7,
  failures: 0,
  abandoned: 0,
  hung: false,
});

const RATES: Readonly<Record<string, number>> = { device_received_bytes_total: 23e9, device_transmitted_bytes_total: 4e8 };

export function fixedBoard(more: readonly DeviceState[] = []): Board {
  return boardOf(fixedSnapshot(more), { nowMs: NOW_MS, node: 'node-7', rateOf: (_key, metric) => RATES[metric] });
}

/** As the API tells it to a command. */
export const toldBoard = (): WholeBoard => wholeBoard(fixedBoard(), fixedSnapshot(), false);
