import type { Reading } from '../../../model/metric.ts';
import { shared } from '../../../model/shared-metrics.ts';
import { CODE } from './codes.ts';
import { GPM_GET, GPM_METRIC, GPM_SUPPORT } from './layouts.ts';
import type { Handle, Library, NvmlFunction } from './library.ts';
import type { Memory } from './memory.ts';

const [PERCENT, MEBIBYTE] = [1 / 100, 2 ** 20];

interface GpmMetric {
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
const METRICS: readonly GpmMetric[] = [
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
const GRAPHICS = METRICS.findIndex(({ id }) => id === 1);
const BUSY: Omit<Reading, 'value'> = { metric: shared.utilization.name, labels: { engine: 'gpu' } };

/** The struct of the newest header, in which the array has a fixed length: no library writes beyond it. */
const MOST_METRICS = 333;
/** In words: the code of the first metric, and from one to the next. */
const [FIRST_CODE, STRIDE] = [(GPM_GET.header + GPM_METRIC.code) / 4, GPM_METRIC.size / 4];
/** Between two samples, by the header. */
const LEAST_MS = 100;

/** Everything that samples need, bound to one library. */
export interface GpmCalls {
  readonly support: NvmlFunction;
  readonly alloc: NvmlFunction;
  readonly free: NvmlFunction;
  readonly sample: NvmlFunction;
  readonly sampleInstance: NvmlFunction;
  readonly metrics: NvmlFunction;
  /** Of `nvmlGpmMetricsGet_t`, filled but for samples and answers. */
  readonly memory: Memory;
  readonly supportMemory: Memory;
}

/** Undefined where the driver has no such functions. */
export function bindGpm(library: Library): GpmCalls | undefined {
  const support = library.bind('nvmlGpmQueryDeviceSupport', 'hp');
  const alloc = library.bind('nvmlGpmSampleAlloc', 'p');
  const free = library.bind('nvmlGpmSampleFree', 'h');
  const sample = library.bind('nvmlGpmSampleGet', 'hh');
  const sampleInstance = library.bind('nvmlGpmMigSampleGet', 'huh');
  const metrics = library.bind('nvmlGpmMetricsGet', 'p');
  if (!support || !alloc || !free || !sample || !sampleInstance || !metrics) return undefined;
  const memory = library.memory(GPM_GET.header + MOST_METRICS * GPM_METRIC.size);
  memory.setU32(0, GPM_GET.version);
  memory.setU32(GPM_GET.count, METRICS.length);
  for (const [index, { id }] of METRICS.entries()) memory.setU32(GPM_GET.header + index * GPM_METRIC.size + GPM_METRIC.id, id);
  return { support, alloc, free, sample, sampleInstance, metrics, memory, supportMemory: library.memory(GPM_SUPPORT.size) };
}

export function hasGpm({ support, supportMemory: memory }: GpmCalls, gpu: Handle): boolean {
  memory.setU32(0, GPM_SUPPORT.version);
  memory.setU32(GPM_SUPPORT.isSupported, 0);
  return support(gpu, memory.address) === CODE.success && memory.u32(GPM_SUPPORT.isSupported) !== 0;
}

/** The activity of one GPU or GPU instance: means between two samples. */
export class Activity {
  readonly #calls: GpmCalls;
  readonly #gpu: Handle;
  /** Id of the GPU instance; undefined for a whole GPU. */
  readonly #instance: number | undefined;
  #samples: { readonly older: Handle; readonly newer: Handle } | undefined;
  #sampledAtMs: number | undefined;
  #isRefused = false;
  #isCompared = false;
  /** By metric, as last told. */
  readonly #told: (Reading | undefined)[] = [];
  #isBusyTold = false;
  #readings: readonly Reading[] = [];

  constructor(calls: GpmCalls, gpu: Handle, instance?: number) {
    this.#calls = calls;
    this.#gpu = gpu;
    this.#instance = instance;
  }

  /** Empty before there is a second sample, and after one that failed. */
  get readings(): readonly Reading[] {
    return this.#readings;
  }

  /** There is one sample, and nothing to compare it with. */
  get isWaiting(): boolean {
    return this.#sampledAtMs !== undefined && !this.#isCompared;
  }

  /** Takes a sample unless the one before is too young. `isBusyTold`: the driver tells utilization by other means. */
  read(nowMs: number, isBusyTold: boolean): void {
    const since = this.#sampledAtMs;
    if (this.#isRefused || (since !== undefined && nowMs - since < LEAST_MS)) return;
    this.#samples ??= this.#allocated();
    if (this.#samples === undefined) return;
    const { older, newer } = this.#samples;
    const { sample, sampleInstance } = this.#calls;
    const code = this.#instance === undefined ? sample(this.#gpu, older) : sampleInstance(this.#gpu, this.#instance, older);
    this.#isRefused = code === CODE.notSupported || code === CODE.noPermission;
    this.#sampledAtMs = code === CODE.success ? nowMs : undefined;
    this.#isCompared = code === CODE.success && since !== undefined;
    if (code !== CODE.success) this.#readings = [];
    else {
      this.#samples = { older: newer, newer: older };
      if (since !== undefined) this.#readings = this.#between(newer, older, isBusyTold);
    }
  }

  free(): void {
    if (this.#samples === undefined) return;
    for (const sample of Object.values(this.#samples)) this.#calls.free(sample);
    this.#samples = undefined;
    this.#sampledAtMs = undefined;
    this.#readings = [];
  }

  #allocated(): { older: Handle; newer: Handle } | undefined {
    const { alloc, free, supportMemory: memory } = this.#calls;
    if (alloc(memory.address) !== CODE.success) return undefined;
    const older = memory.pointer(0);
    if (alloc(memory.address) === CODE.success) return { older, newer: memory.pointer(0) };
    free(older);
    return undefined;
  }

  /** The list of before when the values are the same. */
  #between(first: Handle, second: Handle, isBusyTold: boolean): readonly Reading[] {
    const { memory, metrics } = this.#calls;
    memory.setPointer(GPM_GET.sample1, first);
    memory.setPointer(GPM_GET.sample2, second);
    const { words } = memory;
    for (let index = 0, at = FIRST_CODE; index < METRICS.length; index += 1, at += STRIDE) words[at] = CODE.unknown;
    if (metrics(memory.address) !== CODE.success) return [];
    let isSame = isBusyTold === this.#isBusyTold && this.#readings.length > 0;
    this.#isBusyTold = isBusyTold;
    for (let index = 0; index < METRICS.length; index += 1) {
      const metric = METRICS[index] as GpmMetric;
      const value = told(memory, metric, index);
      if (value === this.#told[index]?.value) continue;
      isSame = false;
      this.#told[index] = value === undefined ? undefined : readingOf(metric.reading, value);
    }
    return isSame ? this.#readings : this.#all();
  }

  #all(): readonly Reading[] {
    const readings = this.#told.filter((reading) => reading !== undefined);
    const busy = this.#isBusyTold ? undefined : this.#told[GRAPHICS]?.value;
    return busy === undefined ? readings : [...readings, readingOf(BUSY, busy)];
  }
}

const readingOf = ({ metric, labels }: Omit<Reading, 'value'>, value: Reading['value']): Reading =>
  labels === undefined ? { metric, value } : { metric, labels, value };

/** Each metric has a code of its own. What is no number, or less than nothing, is not told. */
function told(memory: Memory, { scale }: GpmMetric, index: number): number | undefined {
  const at = GPM_GET.header + index * GPM_METRIC.size;
  if (memory.u32(at + GPM_METRIC.code) !== CODE.success) return undefined;
  const value = memory.f64(at + GPM_METRIC.value);
  if (!Number.isFinite(value) || value < 0) return undefined;
  return scale === PERCENT ? value / 100 : value * scale;
}
