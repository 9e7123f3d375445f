import type { MigName, MigSample, Unread } from '../sample.ts';
import { CODE, textOf, unreadFor } from './codes.ts';
import { ATTRIBUTES } from './layouts.ts';
import type { Handle, Library } from './library.ts';
import { Answers, type CallTracker, endsRound, type Question } from './question.ts';

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
export class Instances {
  readonly #library: Library;
  readonly #questions: readonly Question[];
  readonly #gpu: Handle;
  readonly #tracker: CallTracker;
  #isSplit = false;
  /** Code with which the driver failed to list the instances. Until it succeeds, the known instances are kept, and none is read. */
  #failure: number | undefined;
  #all: readonly Instance[] = [];
  /** Monotonic clock of the last read. */
  #nowMs = -Infinity;

  constructor(library: Library, questions: readonly Question[], gpu: Handle, tracker: CallTracker) {
    this.#library = library;
    this.#questions = questions;
    this.#gpu = gpu;
    this.#tracker = tracker;
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
    const handles = this.#tracker.during('nvmlDeviceGetMigDeviceHandleByIndex', () => this.#handles());
    if (typeof handles === 'number') return handles;
    const found: Instance[] = [];
    for (const { handle, index } of handles) {
      const facts = this.#tracker.during('nvmlDeviceGetGpuInstanceId', () => this.#describe(handle, index));
      if (typeof facts === 'number') return facts;
      if (facts === undefined) continue;
      const known = this.#all.find((one) => one.handle === handle && isSame(one.facts, facts));
      found.push({ handle, facts, answers: known?.answers ?? new Answers(this.#questions, handle, this.#tracker) });
    }
    return found;
  }

  /** Returns handles and numbers, which can have gaps; or the code with which the driver failed. */
  #handles(): readonly { readonly handle: Handle; readonly index: number }[] | number {
    const { scratch } = this.#library;
    if (!this.#isSplit) return [];
    const code = this.#library.call('nvmlDeviceGetMaxMigDeviceCount', 'hp', this.#gpu, scratch.address);
    if (code !== CODE.success) return isAnswer(code) ? [] : code;
    const limit = Math.min(scratch.u32(0), MAX_INSTANCES);
    const found: { handle: Handle; index: number }[] = [];
    for (let index = 0; index < limit; index += 1) {
      const status = this.#library.call('nvmlDeviceGetMigDeviceHandleByIndex', 'hup', this.#gpu, index, scratch.address);
      if (!isAnswer(status)) return status;
      if (status === CODE.success) found.push({ handle: scratch.pointer(0), index });
    }
    return found;
  }

  /** Reads the facts of an instance. Returns undefined if it was removed, or the code with which the driver failed. */
  #describe(handle: Handle, index: number): MigSample | number | undefined {
    const { scratch } = this.#library;
    const ids: string[] = [];
    for (const symbol of ['nvmlDeviceGetGpuInstanceId', 'nvmlDeviceGetComputeInstanceId']) {
      const code = this.#library.call(symbol, 'hp', handle, scratch.address);
      if (code !== CODE.success) return isAnswer(code) ? undefined : code;
      ids.push(String(scratch.u32(0)));
    }
    const [gpuInstance = '', computeInstance = ''] = ids;
    const isCounted = this.#library.call('nvmlDeviceGetAttributes_v2', 'hp', handle, scratch.address) === CODE.success;
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
    const { scratch } = this.#library;
    const code = this.#library.call(symbol, 'hpu', handle, scratch.address, NAME_LENGTH);
    return code === CODE.success ? scratch.text(0, NAME_LENGTH) : undefined;
  }
}

/** Without a UUID nobody can tell whether an instance was made again. */
const isSame = (before: MigSample, now: MigSample): boolean =>
  now.name !== undefined &&
  before.name?.uuid === now.name.uuid &&
  before.index === now.index &&
  before.gpuInstance === now.gpuInstance &&
  before.computeInstance === now.computeInstance;
