import type { Reading } from '../../../model/metric.ts';
import { CODE } from './codes.ts';
import { BUSY, type GpmMetric, GRAPHICS, METRICS, readingOf, told } from './gpm-metrics.ts';
import { GPM_GET, GPM_METRIC, GPM_SUPPORT } from './layouts.ts';
import type { Handle, Library, NvmlFunction } from './library.ts';
import type { Memory } from './memory.ts';

/** The struct of driver 615, in which the array has a fixed length: no library up to that writes beyond it. */
const MOST_METRICS = 477;
/** In words: the code of the first metric, from there to its value, and from one metric to the next. */
const FIRST_CODE = (GPM_GET.header + GPM_METRIC.code) / 4;
const [VALUE, STRIDE] = [(GPM_METRIC.value - GPM_METRIC.code) / 4, GPM_METRIC.size / 4];
/** Words of a metric that are compared. */
const SEEN_STRIDE = 3;
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
  /** By metric: code and value as the library last wrote them. */
  readonly #seen = new Int32Array(METRICS.length * SEEN_STRIDE).fill(CODE.unknown);
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

  /** What was refused may be told by now. */
  reconsider(): void {
    this.#isRefused = false;
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
    for (let index = 0; index < METRICS.length; index += 1) if (this.#isOther(words, index) && this.#tell(index)) isSame = false;
    return isSame ? this.#readings : this.#all();
  }

  #isOther(words: Int32Array, index: number): boolean {
    const [seen, from, at] = [this.#seen, index * SEEN_STRIDE, FIRST_CODE + index * STRIDE];
    const [code, low, high] = [words[at] as number, words[at + VALUE] as number, words[at + VALUE + 1] as number];
    if (code === seen[from] && low === seen[from + 1] && high === seen[from + 2]) return false;
    seen[from] = code;
    seen[from + 1] = low;
    seen[from + 2] = high;
    return true;
  }

  /** True when that is another value. */
  #tell(index: number): boolean {
    const metric = METRICS[index] as GpmMetric;
    const value = told(this.#calls.memory, metric, index);
    if (value === this.#told[index]?.value) return false;
    this.#told[index] = value === undefined ? undefined : readingOf(metric.reading, value);
    return true;
  }

  #all(): readonly Reading[] {
    const readings = this.#told.filter((reading) => reading !== undefined);
    const busy = this.#isBusyTold ? undefined : this.#told[GRAPHICS]?.value;
    return busy === undefined ? readings : [...readings, readingOf(BUSY, busy)];
  }
}
