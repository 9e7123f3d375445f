import type { Reading } from '../../../model/metric.ts';
import { shared } from '../../../model/shared-metrics.ts';
import { CODE } from './codes.ts';
import { GPM_GET, GPM_METRIC } from './layouts.ts';
import type { Memory } from './memory.ts';

const [PERCENT, MEBIBYTE] = [1 / 100, 2 ** 20];

export interface GpmMetric {
  readonly id: number;
  readonly scale: number;
  readonly reading: Omit<Reading, 'value'>;
}

const unit = (id: number, name: string): GpmMetric => ({
  id,
  scale: PERCENT,
  reading: { metric: 'device_nvidia_activity_ratio', labels: { unit: name } },
});
const traffic = (id: number, link: string, direction: string): GpmMetric => ({
  id,
  scale: MEBIBYTE,
  reading: { metric: 'device_nvidia_traffic_bytes_per_second', labels: { link, direction } },
});

/** Ids and units: `nvmlGpmMetricId_t` of nvml.h 13.3. */
export const METRICS: readonly GpmMetric[] = [
  unit(1, 'graphics'),
  unit(2, 'sm'),
  { id: 3, scale: PERCENT, reading: { metric: 'device_nvidia_sm_occupancy_ratio' } },
  unit(4, 'integer'),
  unit(5, 'tensor'),
  unit(6, 'tensor_dfma'),
  unit(7, 'tensor_hmma'),
  unit(8, 'tensor_dmma'),
  unit(9, 'tensor_imma'),
  { id: 10, scale: PERCENT, reading: { metric: 'device_nvidia_memory_bandwidth_ratio' } },
  unit(11, 'fp64'),
  unit(12, 'fp32'),
  unit(13, 'fp16'),
  traffic(20, 'pcie', 'transmit'),
  traffic(21, 'pcie', 'receive'),
  traffic(60, 'nvlink', 'receive'),
  traffic(61, 'nvlink', 'transmit'),
];
/** Place of the share of time with any program: what the driver calls utilization, and does not tell of instances. */
export const GRAPHICS = METRICS.findIndex(({ id }) => id === 1);
export const BUSY: Omit<Reading, 'value'> = { metric: shared.utilization.name, labels: { engine: 'gpu' } };

export const readingOf = ({ metric, labels }: Omit<Reading, 'value'>, value: Reading['value']): Reading =>
  labels === undefined ? { metric, value } : { metric, labels, value };

/** Each metric has a code of its own. What is no number, or less than nothing, is not told. */
export function told(memory: Memory, { scale }: GpmMetric, index: number): number | undefined {
  const at = GPM_GET.header + index * GPM_METRIC.size;
  if (memory.u32(at + GPM_METRIC.code) !== CODE.success) return undefined;
  const value = memory.f64(at + GPM_METRIC.value);
  if (!Number.isFinite(value) || value < 0) return undefined;
  return scale === PERCENT ? value / 100 : value * scale;
}
