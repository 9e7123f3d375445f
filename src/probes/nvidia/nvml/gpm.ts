import type { MigSample } from '../sample.ts';
import type { ValueKey, Values } from '../values.ts';
import type { CallNotes } from './call-notes.ts';
import { CODE } from './codes.ts';
import { GPM_GET, GPM_METRIC, GPM_SUPPORT } from './layouts.ts';
import type { Handle, Library } from './library.ts';
import type { Memory } from './memory.ts';

const [PERCENT, MEBIBYTE] = [1 / 100, 2 ** 20];
/** Ids and units: `nvmlGpmMetricId_t` of nvml.h 13.3. */
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

/** The struct of driver 615, in which the array has a fixed length: no library up to that writes beyond it. */
const MOST_METRICS = 477;
/** Between two samples, by the header. */
const LEAST_MS = 100;

const SYMBOLS = [
  'nvmlGpmQueryDeviceSupport',
  'nvmlGpmSampleAlloc',
  'nvmlGpmSampleFree',
  'nvmlGpmSampleGet',
  'nvmlGpmMigSampleGet',
  'nvmlGpmMetricsGet',
];
const LETTERS = ['hp', 'p', 'h', 'hh', 'huh', 'p'];

/** The functions that sample the activity of GPUs: Hopper and later. */
export class Gpm {
  readonly #library: Library;
  /** Of `nvmlGpmMetricsGet_t`. */
  readonly #memory: Memory;

  private constructor(library: Library) {
    this.#library = library;
    this.#memory = library.memory(GPM_GET.header + MOST_METRICS * GPM_METRIC.size);
  }

  /** Undefined where the driver has no such functions. */
  static of(library: Library): Gpm | undefined {
    const isThere = SYMBOLS.every((symbol, at) => library.bind(symbol, LETTERS[at] as string) !== undefined);
    return isThere ? new Gpm(library) : undefined;
  }

  isSupportedBy(gpu: Handle): boolean {
    const { scratch } = this.#library;
    scratch.setU32(0, GPM_SUPPORT.version);
    scratch.setU32(GPM_SUPPORT.isSupported, 0);
    const code = this.#library.call('nvmlGpmQueryDeviceSupport', 'hp', gpu, scratch.address);
    return code === CODE.success && scratch.u32(GPM_SUPPORT.isSupported) !== 0;
  }

  /** Memory for one sample. */
  alloc(): Handle | undefined {
    const code = this.#library.call('nvmlGpmSampleAlloc', 'p', this.#library.scratch.address);
    return code === CODE.success ? this.#library.scratch.pointer(0) : undefined;
  }

  free(sample: Handle): void {
    this.#library.call('nvmlGpmSampleFree', 'h', sample);
  }

  /** Takes a sample of a GPU, or of one of its instances, and gives the code. */
  sample(gpu: Handle, instance: number | undefined, into: Handle): number {
    if (instance === undefined) return this.#library.call('nvmlGpmSampleGet', 'hh', gpu, into);
    return this.#library.call('nvmlGpmMigSampleGet', 'huh', gpu, instance, into);
  }

  /** Means between two samples; empty where the driver fails to compare them. */
  between(older: Handle, newer: Handle): Values {
    const memory = this.#memory;
    const place = (index: number): number => GPM_GET.header + index * GPM_METRIC.size;
    memory.clear(place(METRICS.length));
    memory.setU32(0, GPM_GET.version);
    memory.setU32(GPM_GET.count, METRICS.length);
    memory.setPointer(GPM_GET.sample1, older);
    memory.setPointer(GPM_GET.sample2, newer);
    for (const [index, [id]] of METRICS.entries()) {
      memory.setU32(place(index) + GPM_METRIC.id, id);
      memory.setU32(place(index) + GPM_METRIC.code, CODE.unknown);
    }
    if (this.#library.call('nvmlGpmMetricsGet', 'p', memory.address) !== CODE.success) return {};
    return Object.fromEntries(METRICS.map(([, key, unit], index) => [key, told(memory, place(index), unit)]));
  }
}

/** Each metric has a code of its own. What is no number, or less than nothing, is not told. */
function told(memory: Memory, at: number, unit: number): number | undefined {
  const value = memory.f64(at + GPM_METRIC.value);
  if (memory.u32(at + GPM_METRIC.code) !== CODE.success || !Number.isFinite(value) || value < 0) return undefined;
  return unit === PERCENT ? value / 100 : value * unit;
}

/** The activity of one GPU or GPU instance. */
class Activity {
  readonly #gpm: Gpm;
  readonly #gpu: Handle;
  /** Id of the GPU instance; undefined for a whole GPU. */
  readonly #instance: number | undefined;
  #samples: readonly [older: Handle, newer: Handle] | undefined;
  #sampledAtMs: number | undefined;
  #isRefused = false;
  #told: Values | undefined;

  constructor(gpm: Gpm, gpu: Handle, instance: number | undefined) {
    this.#gpm = gpm;
    this.#gpu = gpu;
    this.#instance = instance;
  }

  /** Undefined before there is a second sample, and after one that failed. */
  get told(): Values | undefined {
    return this.#told;
  }

  /** There is one sample, and nothing to compare it with. */
  get isWaiting(): boolean {
    return this.#sampledAtMs !== undefined && this.#told === undefined;
  }

  /** Takes a sample unless the one before is too young. */
  read(nowMs: number): void {
    const sinceMs = this.#sampledAtMs;
    if (this.#isRefused || (sinceMs !== undefined && nowMs - sinceMs < LEAST_MS)) return;
    this.#samples ??= this.#allocated();
    if (this.#samples === undefined) return;
    const [older, newer] = this.#samples;
    const code = this.#gpm.sample(this.#gpu, this.#instance, older);
    this.#isRefused = code === CODE.notSupported || code === CODE.noPermission;
    this.#sampledAtMs = code === CODE.success ? nowMs : undefined;
    this.#told = code === CODE.success && sinceMs !== undefined ? this.#gpm.between(newer, older) : undefined;
    if (code === CODE.success) this.#samples = [newer, older];
  }

  free(): void {
    for (const sample of this.#samples ?? []) this.#gpm.free(sample);
    this.#samples = undefined;
  }

  #allocated(): readonly [Handle, Handle] | undefined {
    const older = this.#gpm.alloc();
    const newer = older === undefined ? undefined : this.#gpm.alloc();
    if (older !== undefined && newer !== undefined) return [older, newer];
    if (older !== undefined) this.#gpm.free(older);
    return undefined;
  }
}

/** The activity of a GPU and of its GPU instances, where the board tells it. */
export class Activities {
  readonly #gpm: Gpm | undefined;
  readonly #gpu: Handle;
  readonly #notes: CallNotes;
  readonly #activities = new Map<string, Activity>();

  /** Without functions nothing is told. */
  constructor(gpm: Gpm | undefined, gpu: Handle, notes: CallNotes) {
    const isSupported = gpm !== undefined && notes.during('nvmlGpmQueryDeviceSupport', () => gpm.isSupportedBy(gpu));
    this.#gpm = isSupported ? gpm : undefined;
    this.#gpu = gpu;
    this.#notes = notes;
  }

  /** `isDue`: by the pace; what waits for its second sample is read before that. What the GPU refuses while it is split it may tell afterwards. */
  refresh(nowMs: number, isDue: boolean, isSplit: boolean, instances: readonly MigSample[]): void {
    const gpm = this.#gpm;
    const isWaiting = [...this.#activities.values()].some((activity) => activity.isWaiting);
    if (gpm === undefined || !(isDue || isWaiting)) return;
    const wanted = new Map<string, number | undefined>([
      [isSplit ? 'split' : 'whole', undefined],
      ...alone(instances).map((instance) => [keyOf(instance), Number(instance.gpuInstance)] as const),
    ]);
    for (const [key, activity] of this.#activities) {
      if (wanted.has(key)) continue;
      activity.free();
      this.#activities.delete(key);
    }
    this.#notes.during('nvmlGpmSampleGet', () => {
      for (const [key, instance] of wanted) {
        const activity = this.#activities.get(key) ?? new Activity(gpm, this.#gpu, instance);
        this.#activities.set(key, activity);
        activity.read(nowMs);
      }
    });
  }

  whole(): Values | undefined {
    return (this.#activities.get('whole') ?? this.#activities.get('split'))?.told;
  }

  of(instance: MigSample): Values | undefined {
    return this.#activities.get(keyOf(instance))?.told;
  }

  /** Samples do not outlive the library's client. */
  free(): void {
    for (const activity of this.#activities.values()) activity.free();
    this.#activities.clear();
  }
}

/** Compute instances that share a GPU instance share its figures, which are nobody's own. */
const alone = (instances: readonly MigSample[]): readonly MigSample[] =>
  instances.filter(({ gpuInstance }) => instances.filter((other) => other.gpuInstance === gpuInstance).length === 1);

/** Ids are given anew after an instance is gone. */
const keyOf = ({ gpuInstance, computeInstance, name }: MigSample): string => `${gpuInstance} ${computeInstance} ${name?.uuid ?? ''}`;
