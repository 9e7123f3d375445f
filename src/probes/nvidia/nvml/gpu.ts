import type { GpuIdentity, GpuSample, LinkSample, Unread } from '../sample.ts';
import { recoveryOf } from '../states.ts';
import type { CallNotes } from './call-notes.ts';
import { CODE, kindOf, wordOf } from './codes.ts';
import type { DriverVersion } from './driver-version.ts';
import { Activities } from './gpm.ts';
import { Instances } from './instances.ts';
import type { Handle, Library } from './library.ts';
import { type LinkEnds, NO_ENDS, readLinkEnds, readLinks } from './nvlink.ts';
import { Processes } from './processes.ts';
import { Answers, type Question } from './question.ts';

/** What reads GPUs, bound to one library and driver. */
export interface Bound {
  readonly library: Library;
  readonly driver: DriverVersion;
  readonly gpuQuestions: readonly Question[];
  readonly instanceQuestions: readonly Question[];
  readonly isActivityWanted: boolean;
}

/** What is due besides what changes quickly. */
export interface Due {
  /** What can wait for half a minute. */
  readonly slow: boolean;
  /** What stays until somebody changes it. Never without the slow. */
  readonly facts: boolean;
  /** Monotonic. */
  readonly nowMs: number;
}

const LOST: Unread = { name: 'temperature/gpu_temp', said: wordOf(CODE.gpuIsLost), kind: 'lost' };

/** One GPU under one handle, with its instances. */
export class Gpu {
  readonly handle: Handle;
  readonly identity: GpuIdentity;
  readonly notes: CallNotes;
  readonly #library: Library;
  readonly #answers: Answers;
  readonly #instances: Instances;
  readonly #processes: Processes;
  readonly #activities: Activities;
  #links: readonly LinkSample[] = [];
  #ends: LinkEnds = NO_ENDS;
  #isLost = false;

  constructor(handle: Handle, identity: GpuIdentity, bound: Bound, notes: CallNotes) {
    this.handle = handle;
    this.identity = identity;
    this.notes = notes;
    this.#library = bound.library;
    this.#answers = new Answers(bound.gpuQuestions, handle, notes);
    this.#instances = new Instances(bound.library, bound.instanceQuestions, handle, notes);
    this.#processes = new Processes(bound.library, bound.driver.branch, handle, notes);
    this.#activities = new Activities(bound.library, handle, notes, bound.isActivityWanted);
  }

  get isLost(): boolean {
    return this.#isLost;
  }

  /** How its NVLinks are wired, as last told. */
  get linkEnds(): LinkEnds {
    return this.#ends;
  }

  /** Codes of faults of the device among the latest answers. */
  faults(): ReadonlySet<number> {
    return new Set(this.#answers.codes().filter((code) => kindOf(code) === 'device'));
  }

  /** Asks for what changes quickly, and for what else is due. Gives the code that concerns the node, at which the round ended. */
  refresh(due: Due): number | undefined {
    // Of one that is back nothing is known.
    const ended = this.#round(this.#isLost ? { ...due, slow: true, facts: true } : due);
    this.#isLost = ended === CODE.gpuIsLost;
    if (this.#isLost) this.#forget();
    return this.#isLost ? undefined : ended;
  }

  /** What it told at last. */
  sample(): GpuSample {
    if (this.#isLost) return { identity: { ...this.#answers.told().identity, ...this.identity }, unread: [LOST] };
    const told = this.#answers.told();
    const instances = this.#instances.samples();
    const processes = this.#processes.told();
    // A call that is refused until a reset is the driver's word too.
    const recovery = recoveryOf(told.recovery, this.faults().has(CODE.resetRequired) ? true : undefined);
    return {
      ...told,
      identity: { ...told.identity, ...this.identity },
      values: { ...told.values, ...this.#activities.whole() },
      recovery,
      links: this.#links,
      instances: instances.map((instance) => ({ ...instance, values: { ...instance.values, ...this.#activities.of(instance) } })),
      unread: [...(told.unread ?? []), ...this.#instances.unread()],
      ...(processes && { processes }),
    };
  }

  /** Before the library's client ends. */
  close(): void {
    this.#activities.free();
  }

  /** Gives the code that ended it: of the node, or that the GPU is lost. */
  #round({ slow, facts, nowMs }: Due): number | undefined {
    const answers = this.#answers;
    let ended = facts ? answers.ask('once') : undefined;
    ended ??= answers.ask('read');
    ended ??= this.#instances.refresh(answers.told().values?.isMigOn, slow);
    if (facts) ended ??= answers.ask('facts');
    if (slow) ended ??= answers.ask('slow');
    if (ended !== undefined) return ended;
    this.#processes.refresh(slow);
    if (slow) this.#links = this.notes.during('nvmlDeviceGetNvLinkState', () => readLinks(this.#library, this.handle));
    if (facts)
      this.#ends = this.notes.during('nvmlDeviceGetNvLinkRemotePciInfo', () => readLinkEnds(this.#library, this.handle, this.#links));
    this.#activities.refresh(nowMs, slow, this.#instances.isSplit, this.#instances.samples());
    return undefined;
  }

  /** Every value is older than the loss. How the links are wired is not. */
  #forget(): void {
    this.#answers.forget();
    this.#instances.forget();
    this.#processes.forget();
    this.#activities.free();
    this.#links = [];
  }
}
