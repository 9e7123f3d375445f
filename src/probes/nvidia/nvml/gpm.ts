import type { MigSample, PartTimes } from '../sample.ts';
import type { ValueKey, Values } from '../values.ts';
import { CODE, GPM_GET, GPM_METRIC, GPM_SUPPORT } from './header.ts';
import { type Handle, type Library, type Memory, zeros } from './library.ts';
import type { Device, TrackedDevice } from './question.ts';

const [PERCENT, MEBIBYTE] = [1 / 100, 2 ** 20];
/** Source of ids and units: `nvmlGpmMetricId_t` of nvml.h 13.3. */
const METRICS: readonly (readonly [id: number, key: ValueKey, unit: number])[] = [
  [1, 'graphicsActivityRatio', PERCENT],
  [2, 'smActivityRatio', PERCENT],
  [3, 'occupancyRatio', PERCENT],
  [4, 'integerActivityRatio', PERCENT],
  [5, 'tensorActivityRatio', PERCENT],
  [6, 'dfmaActivityRatio', PERCENT],
  [7, 'hmmaActivityRatio', PERCENT],
  [8, 'dmmaActivityRatio', PERCENT],
  [9, 'immaActivityRatio', PERCENT],
  [10, 'memoryBandwidthRatio', PERCENT],
  [11, 'fp64ActivityRatio', PERCENT],
  [12, 'fp32ActivityRatio', PERCENT],
  [13, 'fp16ActivityRatio', PERCENT],
  [20, 'pcieMeanTransmitBytesPerSecond', MEBIBYTE],
  [21, 'pcieMeanReceiveBytesPerSecond', MEBIBYTE],
  [60, 'nvlinkMeanReceiveBytesPerSecond', MEBIBYTE],
  [61, 'nvlinkMeanTransmitBytesPerSecond', MEBIBYTE],
];

/** Fixed length of the array in the struct of driver 615. Libraries up to that version do not write beyond it. */
const MAX_METRICS = 477;
/** Minimum time between two samples. Source: the header. */
const MIN_INTERVAL_MS = 100;

interface Activity {
  /** Id of the GPU instance; undefined for a whole GPU. */
  readonly instance: number | undefined;
  /** Memory of two samples, the older first; empty when it is not allocated. */
  samples: readonly Handle[];
  /** Time of the newer sample; undefined before the first one and after a failed one. */
  sampledAtMs: number | undefined;
  /** The older of the two samples is the one that began the counting, or there are no two. */
  isStart: boolean;
  isRefused: boolean;
  /** Undefined before the third sample, and after a failed sample. */
  means: Values | undefined;
}

/**
 * Activity of a GPU and of its GPU instances, sampled at each read: one sample costs less than 0.2 ms, and a mean that ends with the read
 * says what the device did until now. Only Hopper and later boards support it.
 *
 * The first sample begins the counting. On an H100 the interval after it had an activity of 0 while tensor cores worked, so it is left out.
 */
export class Activities {
  readonly #gpu: TrackedDevice;
  readonly #isSupported: boolean;
  readonly #activities = new Map<string, Activity>();

  constructor(gpu: TrackedDevice, isWanted: boolean) {
    this.#gpu = gpu;
    this.#isSupported = isWanted && gpu.during('nvmlGpmQueryDeviceSupport', () => isSupported(gpu));
  }

  /** MIG has its own key: a refusal ends with MIG mode. */
  refresh(nowMs: number, isSplit: boolean, instances: readonly MigSample[]): void {
    if (!this.#isSupported) return;
    const wanted = new Map([
      [isSplit ? 'split' : 'whole', undefined],
      ...alone(instances).map((instance) => [keyOf(instance), Number(instance.gpuInstance)] as const),
    ]);
    for (const [key, activity] of this.#activities) {
      if (wanted.has(key)) continue;
      this.#freeSamples(activity);
      this.#activities.delete(key);
    }
    this.#gpu.during('nvmlGpmSampleGet', () => {
      for (const [key, instance] of wanted) {
        const activity = this.#activities.get(key) ?? begun(instance);
        this.#activities.set(key, activity);
        this.#read(activity, nowMs);
      }
    });
  }

  whole(): Values | undefined {
    return this.#ofWhole()?.means;
  }

  #ofWhole(): Activity | undefined {
    return this.#activities.get('whole') ?? this.#activities.get('split');
  }

  of(instance: MigSample): Values | undefined {
    return this.#activities.get(keyOf(instance))?.means;
  }

  /** Times of the means that the read at `nowMs` kept. `instance`: default the whole GPU. */
  times(nowMs: number, instance?: MigSample): PartTimes {
    const activity = instance === undefined ? this.#ofWhole() : this.#activities.get(keyOf(instance));
    const { means, sampledAtMs = nowMs } = activity ?? {};
    if (means === undefined || sampledAtMs === nowMs) return NONE_KEPT;
    return new Map(METRICS.map(([, key]) => [key, sampledAtMs]));
  }

  /** Frees all samples. They must not outlive the library's client. */
  free(): void {
    for (const activity of this.#activities.values()) this.#freeSamples(activity);
    this.#activities.clear();
  }

  /** Takes a sample unless the previous one is too recent. */
  #read(activity: Activity, nowMs: number): void {
    const { instance, sampledAtMs, isRefused } = activity;
    const { library, handle } = this.#gpu;
    if (isRefused || (sampledAtMs !== undefined && nowMs - sampledAtMs < MIN_INTERVAL_MS)) return;
    if (activity.samples.length === 0) activity.samples = this.#allocated();
    const [older, newer] = activity.samples;
    if (older === undefined || newer === undefined) return;
    const code =
      instance === undefined
        ? library.call('nvmlGpmSampleGet', 'hh', handle, older)
        : library.call('nvmlGpmMigSampleGet', 'huh', handle, instance, older);
    const isTaken = code === CODE.success;
    activity.isRefused = code === CODE.notSupported || code === CODE.noPermission;
    activity.means = isTaken && !activity.isStart ? between(library, newer, older) : undefined;
    activity.isStart = !isTaken || sampledAtMs === undefined;
    activity.sampledAtMs = isTaken ? nowMs : undefined;
    if (isTaken) activity.samples = [newer, older];
  }

  #allocated(): readonly Handle[] {
    const { library } = this.#gpu;
    const { scratch } = library;
    const samples = [0, 1].flatMap(() =>
      library.call('nvmlGpmSampleAlloc', 'p', scratch.address) === CODE.success ? [scratch.pointer(0)] : [],
    );
    if (samples.length < 2) this.#freeSamples({ samples });
    return samples.length < 2 ? [] : samples;
  }

  #freeSamples({ samples }: Pick<Activity, 'samples'>): void {
    for (const sample of samples) this.#gpu.library.call('nvmlGpmSampleFree', 'h', sample);
  }
}

const NONE_KEPT: PartTimes = new Map();

const begun = (instance: number | undefined): Activity => ({
  instance,
  samples: [],
  sampledAtMs: undefined,
  isStart: true,
  isRefused: false,
  means: undefined,
});

/** Returns the instances that have a GPU instance alone. Values of a shared GPU instance belong to no single compute instance. */
const alone = (instances: readonly MigSample[]): readonly MigSample[] =>
  instances.filter(({ gpuInstance }) => instances.filter((other) => other.gpuInstance === gpuInstance).length === 1);

/** The key contains the UUID, because the driver uses the ids again after an instance is removed. */
const keyOf = ({ gpuInstance, computeInstance, name }: MigSample): string => `${gpuInstance} ${computeInstance} ${name?.uuid ?? ''}`;

function isSupported({ library, handle }: Device): boolean {
  const { scratch } = library;
  scratch.setU32(0, GPM_SUPPORT.version);
  scratch.setU32(GPM_SUPPORT.isSupported, 0);
  const code = library.call('nvmlGpmQueryDeviceSupport', 'hp', handle, scratch.address);
  return code === CODE.success && scratch.u32(GPM_SUPPORT.isSupported) !== 0;
}

/** Returns the means between two samples; empty when the driver fails to compare them. */
function between(library: Library, older: Handle, newer: Handle): Values {
  const memory = zeros(library, GPM_GET.header + MAX_METRICS * GPM_METRIC.size);
  memory.setU32(0, GPM_GET.version);
  memory.setU32(GPM_GET.count, METRICS.length);
  memory.setPointer(GPM_GET.sample1, older);
  memory.setPointer(GPM_GET.sample2, newer);
  for (const [index, [id]] of METRICS.entries()) {
    memory.setU32(placeOf(index) + GPM_METRIC.id, id);
    memory.setU32(placeOf(index) + GPM_METRIC.code, CODE.unknown);
  }
  if (library.call('nvmlGpmMetricsGet', 'p', memory.address) !== CODE.success) return {};
  return Object.fromEntries(METRICS.map(([, key, unit], index) => [key, meanAt(memory, placeOf(index), unit)]));
}

const placeOf = (index: number): number => GPM_GET.header + index * GPM_METRIC.size;

/** Reads one mean. Each metric has its own code. A value that is negative or not a number gives undefined. */
function meanAt(memory: Memory, at: number, unit: number): number | undefined {
  const value = memory.f64(at + GPM_METRIC.value);
  if (memory.u32(at + GPM_METRIC.code) !== CODE.success || !Number.isFinite(value) || value < 0) return undefined;
  return unit === PERCENT ? value / 100 : value * unit;
}
