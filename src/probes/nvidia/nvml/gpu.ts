import {
  combinedRecovery,
  type GpuIdentity,
  type GpuSample,
  type MigName,
  type MigSample,
  type PartTimes,
  type Unread,
} from '../sample.ts';
import type { Values } from '../values.ts';
import { Activities } from './gpm.ts';
import type { DriverVersion } from './gpu-questions.ts';
import { ATTRIBUTES, CODE, kindOf, textOf, unreadFor } from './header.ts';
import type { Handle } from './library.ts';
import { Links } from './nvlink.ts';
import { Processes } from './processes.ts';
import { Answers, endsRound, placesOf, type Question, type TrackedDevice } from './question.ts';

const NAME_LENGTH = 96;
const MAX_INSTANCES = 64;

/** Codes of a valid answer, including "this instance does not exist". */
const ANSWERS: ReadonlySet<number> = new Set([CODE.success, CODE.notSupported, CODE.notFound, CODE.invalidArgument, CODE.functionNotFound]);
const isAnswer = (code: number): boolean => ANSWERS.has(code);

interface Instance {
  readonly handle: Handle;
  readonly facts: MigSample;
  readonly answers: Answers;
}

/** MIG instances of one GPU. They can be created and removed without a reset. */
class Instances {
  readonly #gpu: TrackedDevice;
  readonly #questions: readonly Question[];
  #isSplit = false;
  /** Code with which the driver failed to list the instances. Until it succeeds, the known instances are kept, and none is read. */
  #failure: number | undefined;
  #all: readonly Instance[] = [];
  /** Monotonic clock of the last read. */
  #nowMs = -Infinity;

  constructor(gpu: TrackedDevice, questions: readonly Question[]) {
    this.#gpu = gpu;
    this.#questions = questions;
  }

  get isSplit(): boolean {
    return this.#isSplit;
  }

  /**
   * Lists the instances and reads them. An instance can be destroyed and made again with the same ids between two reads, so each read lists
   * them. `isSplit` is undefined when the driver does not report it. `isDue`: slow values are read too. `nowMs`: monotonic clock. Returns the
   * code that ended the round.
   */
  refresh(isSplit: boolean | undefined, isDue: boolean, nowMs: number): number | undefined {
    this.#nowMs = nowMs;
    this.#isSplit = isSplit ?? this.#isSplit;
    const found = this.#find();
    this.#failure = typeof found === 'number' ? found : undefined;
    if (typeof found === 'number') return endsRound(found) ? found : undefined;
    const known = new Set(this.#all.map(({ answers }) => answers));
    this.#all = found;
    // Those that share a GPU instance have one memory.
    const isOtherSet = found.length !== known.size || found.some(({ answers }) => !known.has(answers));
    for (const { answers } of found) {
      const ended = isDue || isOtherSet ? answers.ask(nowMs, 'read', 'slow') : answers.ask(nowMs, 'read');
      if (ended !== undefined) return ended;
    }
    return undefined;
  }

  samples(): readonly MigSample[] {
    return this.#all.map(({ facts, answers }) => {
      if (this.#failure !== undefined) return { ...facts, isUnlisted: true };
      const { values, ...rest } = answers.sample();
      return { ...rest, ...facts, values: { ...values, ...facts.values }, times: answers.times(this.#nowMs) };
    });
  }

  unread(): readonly Unread[] {
    if (this.#failure === undefined) return [];
    const place = { value: 'instances', name: 'mig_devices' } as const;
    const [failed] = unreadFor(this.#failure, [place]);
    return [{ ...place, text: failed?.text ?? textOf(this.#failure), kind: 'error' }];
  }

  /** Removes the instances of a lost GPU. */
  forget(): void {
    this.#all = [];
    this.#failure = undefined;
  }

  /** Lists the instances. Those that are known by handle and UUID are the same ones. Returns the code with which the driver failed. */
  #find(): readonly Instance[] | number {
    const handles = this.#gpu.during('nvmlDeviceGetMigDeviceHandleByIndex', () => this.#handles());
    if (typeof handles === 'number') return handles;
    const found: Instance[] = [];
    for (const { handle, index } of handles) {
      const facts = this.#gpu.during('nvmlDeviceGetGpuInstanceId', () => this.#describe(handle, index));
      if (typeof facts === 'number') return facts;
      if (facts === undefined) continue;
      const known = this.#all.find((one) => one.handle === handle && isSame(one.facts, facts));
      found.push({ handle, facts, answers: known?.answers ?? new Answers(this.#questions, this.#gpu.instance(handle)) });
    }
    return found;
  }

  /** Returns handles and numbers, which can have gaps; or the code with which the driver failed. */
  #handles(): readonly { readonly handle: Handle; readonly index: number }[] | number {
    const { library, handle: gpu } = this.#gpu;
    const { scratch } = library;
    if (!this.#isSplit) return [];
    const code = library.call('nvmlDeviceGetMaxMigDeviceCount', 'hp', gpu, scratch.address);
    if (code !== CODE.success) return isAnswer(code) ? [] : code;
    const limit = Math.min(scratch.u32(0), MAX_INSTANCES);
    const found: { handle: Handle; index: number }[] = [];
    for (let index = 0; index < limit; index += 1) {
      const status = library.call('nvmlDeviceGetMigDeviceHandleByIndex', 'hup', gpu, index, scratch.address);
      if (!isAnswer(status)) return status;
      if (status === CODE.success) found.push({ handle: scratch.pointer(0), index });
    }
    return found;
  }

  /** Reads the facts of an instance. Returns undefined if it was removed, or the code with which the driver failed. */
  #describe(handle: Handle, index: number): MigSample | number | undefined {
    const { library } = this.#gpu;
    const { scratch } = library;
    const ids: string[] = [];
    for (const symbol of ['nvmlDeviceGetGpuInstanceId', 'nvmlDeviceGetComputeInstanceId']) {
      const code = library.call(symbol, 'hp', handle, scratch.address);
      if (code !== CODE.success) return isAnswer(code) ? undefined : code;
      ids.push(String(scratch.u32(0)));
    }
    const [gpuInstance = '', computeInstance = ''] = ids;
    const isCounted = library.call('nvmlDeviceGetAttributes_v2', 'hp', handle, scratch.address) === CODE.success;
    const multiprocessors = isCounted ? scratch.u32(ATTRIBUTES.multiprocessors) : undefined;
    return { index: String(index), gpuInstance, computeInstance, values: { multiprocessors }, name: this.#nameOf(handle) };
  }

  #nameOf(handle: Handle): MigName | undefined {
    const uuid = this.#text('nvmlDeviceGetUUID', handle);
    // The name of an instance ends in its profile: `NVIDIA H100 80GB HBM3 MIG 1g.10gb`.
    const profile = /\bMIG (\S+)$/.exec(this.#text('nvmlDeviceGetName', handle) ?? '')?.[1] ?? '';
    return uuid === undefined ? undefined : { uuid, profile };
  }

  #text(symbol: string, handle: Handle): string | undefined {
    const { library } = this.#gpu;
    const { scratch } = library;
    const code = library.call(symbol, 'hpu', handle, scratch.address, NAME_LENGTH);
    return code === CODE.success ? scratch.text(0, NAME_LENGTH) : undefined;
  }
}

/** Without a UUID it is unknown whether an instance was made again. */
const isSame = (before: MigSample, now: MigSample): boolean =>
  now.name !== undefined &&
  before.name?.uuid === now.name.uuid &&
  before.index === now.index &&
  before.gpuInstance === now.gpuInstance &&
  before.computeInstance === now.computeInstance;

/** Driver and questions with which GPUs are read. */
export interface Bound {
  readonly driver: DriverVersion;
  readonly gpuQuestions: readonly Question[];
  readonly instanceQuestions: readonly Question[];
  readonly isActivityWanted: boolean;
}

/** Groups of values to read in addition to the quickly changing values. */
export interface Due {
  /** Values whose calls take much CPU. */
  readonly costly: boolean;
  /** Values for which an interval of half a minute is enough. */
  readonly slow: boolean;
  /** Values that change only when an operator changes them. True only together with `slow`. */
  readonly facts: boolean;
  /** Monotonic time. */
  readonly nowMs: number;
}

/** One GPU with its handle and its instances. */
export class Gpu {
  readonly device: TrackedDevice;
  /** `index-<n>` when the library does not report it. */
  readonly pciAddress: string;
  readonly identity: GpuIdentity;
  readonly links: Links;
  readonly #answers: Answers;
  readonly #instances: Instances;
  readonly #processes: Processes;
  readonly #activities: Activities;
  /** Monotonic clock of the last round. */
  #nowMs = -Infinity;
  #isLost = false;

  constructor(device: TrackedDevice, pciAddress: string, identity: GpuIdentity, bound: Bound) {
    this.device = device;
    this.pciAddress = pciAddress;
    this.identity = identity;
    this.links = new Links(device);
    this.#answers = new Answers(bound.gpuQuestions, device);
    this.#instances = new Instances(device, bound.instanceQuestions);
    this.#processes = new Processes(device, bound.driver.branch);
    this.#activities = new Activities(device, bound.isActivityWanted);
  }

  get isLost(): boolean {
    return this.#isLost;
  }

  /** True when it is split into instances, or when this could not be read. */
  get maySplit(): boolean {
    return this.#answers.value('isMigOn') !== false;
  }

  /** Returns the codes of device faults among the latest answers. */
  faults(): ReadonlySet<number> {
    return new Set(this.#answers.codes().filter((code) => code !== CODE.success && kindOf(code) === 'device'));
  }

  /** Reads the quickly changing values and the values that are due. Returns the code if a node failure ended the round. */
  refresh(due: Due): number | undefined {
    this.#nowMs = due.nowMs;
    // A lost GPU that returns has no known values, so everything is read.
    const ended = this.#round(this.#isLost ? { costly: true, slow: true, facts: true, nowMs: due.nowMs } : due);
    this.#isLost = ended === CODE.gpuIsLost;
    if (!this.#isLost) return ended;
    // No value from before the loss stays.
    for (const part of [this.#answers, this.#instances, this.#processes, this.links]) part.forget();
    this.#activities.free();
    return undefined;
  }

  /** Returns the sample of the last round. `factsAtMs`: monotonic clock of the last round that read all facts of all GPUs. */
  sample(factsAtMs: number): GpuSample {
    const answered = this.#answers.sample();
    const identity = { ...answered.identity, ...this.identity };
    if (this.#isLost) return { identity, unread: unreadFor(CODE.gpuIsLost, placesOf(['temperatureCelsius'])) };
    const processes = this.#processes.list();
    // A call that fails with "reset required" also means a recovery action.
    const recovery = combinedRecovery(answered.recovery, this.faults().has(CODE.resetRequired) ? true : undefined);
    return {
      ...answered,
      identity,
      values: { ...answered.values, ...this.#trafficOfLinks(this.#activities.whole()) },
      recovery,
      ...this.links.sample(),
      instances: this.#instances.samples().map((instance) => ({
        ...instance,
        values: { ...instance.values, ...this.#trafficOfLinks(this.#activities.of(instance)) },
        times: new Map([...(instance.times ?? []), ...this.#activities.times(this.#nowMs, instance)]),
      })),
      times: this.#times(factsAtMs),
      unread: [...(answered.unread ?? []), ...this.#instances.unread()],
      ...(processes && { processes }),
    };
  }

  /** Must be called before the library's client ends. */
  close(): void {
    this.#activities.free();
  }

  /** Runs one round. Returns the code that ended it: a code of the node, or that the GPU is lost. */
  #round({ costly, slow: isDue, facts, nowMs }: Due): number | undefined {
    const answers = this.#answers;
    let ended = facts ? answers.ask(nowMs, 'once') : undefined;
    ended ??= costly ? answers.ask(nowMs, 'read', 'costly') : answers.ask(nowMs, 'read');
    const wasSplit = this.#instances.isSplit;
    ended ??= this.#instances.refresh(answers.value('isMigOn'), isDue, nowMs);
    // What was read of a split GPU tells nothing of the whole one: its links are down, for example.
    const slow = isDue || this.#instances.isSplit !== wasSplit;
    if (facts) ended ??= answers.ask(nowMs, 'facts');
    if (slow) ended ??= answers.ask(nowMs, 'slow');
    if (ended !== undefined) return ended;
    this.#processes.refresh(slow, nowMs, (answers.sample().values?.busyRatio ?? 0) > 0);
    if (slow) this.links.read(nowMs);
    if (facts) this.links.readEnds();
    this.#activities.refresh(nowMs, this.#instances.isSplit, this.#instances.samples());
    return undefined;
  }

  /** A GPU without links has no traffic of links: driver 580 answers 0 for an H200 of a virtual machine that was given none. */
  #trafficOfLinks(means: Values | undefined): Values | undefined {
    if (means === undefined || !this.links.areNone) return means;
    return { ...means, nvlinkMeanReceiveBytesPerSecond: undefined, nvlinkMeanTransmitBytesPerSecond: undefined };
  }

  #times(factsAtMs: number): PartTimes {
    const times = this.#answers.times(this.#nowMs);
    if (this.links.readMs !== this.#nowMs) times.set('links', this.links.readMs);
    if (factsAtMs !== this.#nowMs) times.set('peers', factsAtMs);
    for (const [part, atMs] of this.#activities.times(this.#nowMs)) times.set(part, atMs);
    return times;
  }
}
