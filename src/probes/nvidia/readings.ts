import type { Labels, MetricSpec, Reading, Value } from '../../model/metric.ts';
import { asOf } from '../kit/pace.ts';
import { metrics } from './metrics.ts';
import {
  type EccCount,
  type EccSample,
  type GpuSample,
  type KeptTimes,
  type LinkSample,
  type MigSample,
  type ProcessList,
  SEVERITIES,
  totalOf,
} from './sample.ts';
import { MEMORY_KEYS, reading, type Values, valueReadings } from './values.ts';

/** Position of the GPU in the driver's order, and the CUDA version of the node. */
interface GpuContext {
  readonly index: number;
  readonly cudaVersion?: string | undefined;
}

export function gpuReadings(gpu: GpuSample, context: GpuContext): readonly Reading[] {
  const { values, ecc, fabric = {}, times } = gpu;
  return [
    ...valueReadings(...withBusy(values, times)),
    ...eccReadings(ecc, times),
    ...asOf(
      [...stateReading(metrics.fabricState, 'state', fabric.state), ...stateReading(metrics.fabricHealth, 'state', fabric.health)],
      times?.get('fabric'),
    ),
    ...asOf(stateReading(metrics.recoveryAction, 'action', gpu.recovery?.action?.action), times?.get('recovery')),
    ...one(metrics.processes, gpu.processes?.count),
    ...one(metrics.mpsClients, mpsClientsOf(gpu.processes)),
    ...asOf((gpu.links ?? []).flatMap(linkReadings), times?.get('links')),
    ...asOf(
      (gpu.peers ?? []).flatMap(({ uuid, hasAccess }) =>
        one(metrics.nvlinkPeerAccess, hasAccess === undefined ? undefined : Number(hasAccess), { peer_uuid: uuid }),
      ),
      times?.get('peers'),
    ),
    info(gpu, context),
  ];
}

/**
 * Returns the readings of a MIG instance. `sharesMemory` is true when its GPU instance has several compute instances. The driver then
 * reports the memory of all of them for each, which has metrics of its own: a sum over the instances would count it several times.
 */
export function instanceReadings({ values, ecc, times }: MigSample, sharesMemory: boolean): readonly Reading[] {
  const hidden = sharesMemory ? Object.fromEntries(MEMORY_KEYS.map((key) => [key, undefined])) : {};
  const ofAll = sharesMemory
    ? [...one(metrics.gpuInstanceMemoryTotal, values?.memoryTotalBytes), ...one(metrics.gpuInstanceMemoryUsed, values?.memoryUsedBytes)]
    : [];
  return [...valueReadings(...withBusy({ ...values, ...hidden }, times)), ...ofAll, ...eccReadings(ecc, times)];
}

/** If the driver reports no utilization, the activity of the graphics unit replaces it: it has the same meaning. */
function withBusy(values: Values = {}, times: KeptTimes = NONE_KEPT): readonly [Values, KeptTimes] {
  const atMs = times.get('graphicsActivityRatio');
  if (values.busyRatio !== undefined) return [values, times];
  return [{ ...values, busyRatio: values.graphicsActivityRatio }, atMs === undefined ? times : new Map([...times, ['busyRatio', atMs]])];
}

const NONE_KEPT: KeptTimes = new Map();

const mpsClientsOf = ({ count, list }: ProcessList = { list: [] }): number | undefined =>
  count === undefined ? undefined : new Set(list.filter(({ isMpsClient }) => isMpsClient === true).map(({ pid }) => pid)).size;

const one = (metric: MetricSpec, value: Value | undefined, labels?: Labels): readonly Reading[] =>
  value === undefined ? [] : [reading(metric, value, labels)];

const stateReading = (metric: MetricSpec, label: string, present: string | undefined): readonly Reading[] =>
  present === undefined ? [] : [reading(metric, 1, { [label]: present })];

const eccReadings = ({ volatile = [], lifetime = [] }: EccSample = {}, times = NONE_KEPT): readonly Reading[] => [
  ...asOf(lifetime.flatMap(countReading), times.get('lifetime')),
  ...asOf(
    SEVERITIES.flatMap((severity) => {
      const total = totalOf(volatile, severity);
      return one(metrics.errors, total === undefined ? undefined : plain(total), { kind: `ecc_${severity}` });
    }),
    times.get('volatile'),
  ),
];

const countReading = ({ severity, location, count }: EccCount): readonly Reading[] =>
  one(metrics.eccErrors, count === undefined ? undefined : plain(count), { severity, location });

const plain = (value: bigint): Value => (value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : value);

function linkReadings({ number, isUp, transmittedBytes, receivedBytes, errors = {} }: LinkSample): readonly Reading[] {
  const port = `nvlink${number}`;
  return [
    reading(metrics.linkUp, Number(isUp), { port }),
    ...one(metrics.transmittedBytes, transmittedBytes, { port }),
    ...one(metrics.receivedBytes, receivedBytes, { port }),
    ...Object.entries(errors).map(([kind, count]) => reading(metrics.nvlinkErrors, count, { port, kind })),
  ];
}

function info({ identity = {}, fabric = {} }: GpuSample, { index, cudaVersion = '' }: GpuContext): Reading {
  const {
    minor = '',
    brand = '',
    architecture = '',
    vbios = '',
    boardPart = '',
    gpuPart = '',
    computeMode = '',
    gspFirmware = '',
  } = identity;
  return reading(metrics.info, 1, {
    index: String(index),
    cuda_version: cudaVersion,
    minor,
    brand,
    architecture,
    vbios,
    board_part: boardPart,
    gpu_part: gpuPart,
    compute_mode: computeMode,
    gsp_firmware: gspFirmware,
    fabric_cluster: fabric.cluster ?? '',
    fabric_clique: fabric.clique ?? '',
  });
}
