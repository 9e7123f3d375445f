import type { Reading } from '../../../model/metric.ts';
import type { Element } from '../document.ts';
import { gpuFields } from '../fields.ts';
import type { MigName } from '../listing.ts';
import { Activities } from './activities.ts';
import type { Bound } from './bound.ts';
import type { CallNotes } from './call-notes.ts';
import { CHANGE } from './changes.ts';
import { CODE } from './codes.ts';
import type { Due } from './due.ts';
import type { Question } from './getter.ts';
import { GpuInstances } from './gpu-instances.ts';
import { GpuProcesses } from './gpu-processes.ts';
import type { Handle } from './library.ts';
import { ElementMemo } from './memo.ts';
import { GpuLinks } from './nvlink.ts';
import type { EccForm } from './questions.ts';
import { Respondent, withholdAll } from './respondent.ts';
import { Sheet, type Values } from './sheet.ts';
import { TroubleWatch } from './trouble.ts';
import { VOLTA } from './words.ts';

const EVERYTHING = { slow: true, facts: true };
const NO_FAULTS: ReadonlySet<number> = new Set();
const LOST: ReadonlySet<number> = new Set([CODE.gpuIsLost]);
const RESET_REQUIRED = 'gpu_reset_status/reset_required';
const PROTECTED = 'cc_protected_memory_usage/total';

/** One GPU under one handle, with its instances: the values of the last round, by the paths of the document of `nvidia-smi`. */
export class Gpu {
  readonly handle: Handle;
  readonly values: Values;
  readonly notes: CallNotes;
  /** Grows with each change of what there is: split, instances. */
  generation = 0;
  /** Readings of its own that have no path: links, activity. */
  more: readonly Reading[] = [];
  faults = NO_FAULTS;
  readonly #memo: ElementMemo;
  readonly #bound: Bound;
  readonly #respondent: Respondent;
  readonly #activities: Activities;
  readonly #links: GpuLinks;
  readonly #instances: GpuInstances;
  readonly #processes: GpuProcesses;
  readonly #trouble: TroubleWatch;
  #change: number = CHANGE.none;
  #isSplitAnew = false;
  #isIdentified = false;

  constructor(handle: Handle, identity: Values, bound: Bound, notes: CallNotes) {
    this.handle = handle;
    this.values = identity;
    this.#bound = bound;
    this.notes = notes;
    const sheet = new Sheet(handle, identity, bound.questions.gpu);
    this.#respondent = new Respondent(sheet, this.notes);
    this.#memo = new ElementMemo(sheet, gpuFields);
    this.#activities = this.notes.during('nvmlGpmQueryDeviceSupport', () => new Activities(bound.gpm, handle));
    this.#links = new GpuLinks(bound.links, handle);
    this.#instances = new GpuInstances(bound, handle, identity, this.notes);
    this.#processes = new GpuProcesses(bound, handle, identity, this.notes);
    this.#trouble = new TroubleWatch(identity);
  }

  /** What changes quickly, and what else is due. Gives the code that concerns the node, at which the round ended. */
  refresh(due: Due): number | undefined {
    const isBack = this.faults.has(CODE.gpuIsLost);
    const ended = this.#round(isBack ? { ...due, ...EVERYTHING } : due);
    if (ended !== undefined && ended !== CODE.gpuIsLost) return ended;
    if (ended === CODE.gpuIsLost) this.#lose();
    this.faults = ended === CODE.gpuIsLost ? LOST : this.#respondent.faults;
    this.#noteReset();
    return undefined;
  }

  /** Notes what the rounds since the last call of this changed, for those who make something of it. */
  remember(): void {
    const change = this.#change | this.#respondent.takeChange();
    this.#change = CHANGE.none;
    this.#memo.begin(change, this.more);
    // What concerns a GPU as a whole concerns its instances, and their processes are in its list.
    const inherited = change & (CHANGE.other | CHANGE.processes);
    for (const { memo, respondent, more } of this.#instances.all) memo.begin(respondent.takeChange() | inherited, more);
  }

  /** What was made of its values, or of those of one of its instances. */
  memoOf(element: Element): ElementMemo | undefined {
    return this.values === element ? this.#memo : this.#instances.all.find(({ values }) => values === element)?.memo;
  }

  /** Before the library's client ends. */
  close(): void {
    this.#activities.free();
  }

  /** Names of the instances, for those that told them. */
  names(): readonly (readonly [string, MigName])[] {
    return this.#instances.names();
  }

  get #eccForm(): EccForm {
    const architecture = this.values['nvml/architecture'];
    return typeof architecture === 'number' && architecture <= VOLTA ? 'byBits' : 'unified';
  }

  /** The code that ended it: of the node, or that the GPU is lost. */
  #round(due: Due): number | undefined {
    const { questions } = this.#bound;
    let ended = due.facts ? this.#identify() : undefined;
    ended ??= this.#ask(questions.fast);
    if (due.slow) ended ??= this.#ask(questions.split);
    if (ended !== undefined) return ended;
    const isSplitAnew = this.#instances.refresh(due.slow);
    if (isSplitAnew) this.#splitAnew();
    // What was not supported for the sake of the instances may be by now.
    const now = isSplitAnew ? { ...due, ...EVERYTHING } : due;
    if (isSplitAnew) ended = this.#ask(questions.fast);
    ended ??= this.#askErrors(now);
    if (ended !== undefined) return ended;
    this.#change |= this.#processes.refresh(now.slow);
    if (now.facts) ended = this.#ask(questions.facts) ?? this.#ask(questions.lifetime[this.#eccForm]);
    if (now.slow) ended ??= this.#askSlow(now.facts);
    if (ended === undefined) this.#refreshMore(now);
    return ended;
  }

  #identify(): number | undefined {
    if (this.#isIdentified) return undefined;
    const { identity } = this.#bound.questions;
    const ended = this.#ask(identity);
    this.#isIdentified = this.#respondent.isAnswered(identity);
    return ended;
  }

  #splitAnew(): void {
    this.generation += 1;
    this.#change |= CHANGE.other;
    this.#respondent.forgetUnsupported();
    this.#links.forget();
    this.#activities.reconsider();
    this.#trouble.forget();
    this.#isSplitAnew = true;
  }

  #askSlow(isFacts: boolean): number | undefined {
    const { slow, protectedMemory } = this.#bound.questions;
    const ended = this.#ask(slow);
    if (ended !== undefined || !(isFacts || Number(this.values[PROTECTED]) > 0)) return ended;
    return this.#ask(protectedMemory);
  }

  /** The same list as long as its parts are. */
  #refreshMore({ nowMs, slow }: Due): void {
    const [linksBefore, wholeBefore] = [this.#links.readings, this.#activities.whole()];
    if (slow) this.notes.during('nvmlDeviceGetNvLinkState', () => this.#links.refresh());
    if (this.#isActive(nowMs, slow)) for (const instance of this.#instances.all) instance.more = this.#activities.of(instance);
    const [links, whole] = [this.#links.readings, this.#activities.whole()];
    if (links !== linksBefore || whole !== wholeBefore || this.#isSplitAnew) this.more = [...links, ...whole];
    this.#isSplitAnew = false;
  }

  #isActive(nowMs: number, isDue: boolean): boolean {
    if (!this.#activities.isDue(isDue)) return false;
    const isBusyTold = typeof this.values['utilization/gpu_util'] === 'number';
    this.notes.during('nvmlGpmSampleGet', () => this.#activities.refresh(nowMs, isBusyTold, this.#instances.all));
    return true;
  }

  #ask(questions: readonly Question[]): number | undefined {
    return this.#respondent.ask(questions).ended;
  }

  /**
   * Errors by memory, and repairs: with the facts, and at once at a sign of trouble. Where the board does not tell how many errors there
   * are in all, errors at each read and repairs with what can wait.
   */
  #askErrors({ slow, facts, isTroubled }: Due): number | undefined {
    const mayDiffer = (this.#respondent.sheet.change & CHANGE.other) !== 0;
    const isDue = this.#trouble.take(mayDiffer) || facts || isTroubled;
    if (this.#trouble.isTold && !isDue) return undefined;
    const { errors, repairs, instanceErrors } = this.#bound.questions;
    for (const { respondent } of this.#instances.all) respondent.ask(instanceErrors);
    const ended = this.#ask(errors[this.#eccForm]);
    return isDue || slow ? (ended ?? this.#ask(repairs)) : ended;
  }

  /** Nothing but the loss itself: every other value is older than it. */
  #lose(): void {
    const { questions } = this.#bound;
    const { fast, split, slow, facts, errors, repairs, protectedMemory, lifetime } = questions;
    const ecc = [...errors[this.#eccForm], ...lifetime[this.#eccForm]];
    withholdAll([...fast, ...split, ...slow, ...facts, ...ecc, ...repairs, ...protectedMemory], this.values);
    this.#respondent.forget();
    this.#instances.lose();
    this.values['temperature/gpu_temp'] = 'GPU is lost';
    this.#processes.forget();
    this.#links.forget();
    this.#trouble.forget();
    this.more = [];
    this.#activities.free();
  }

  /** A call that is refused until a reset is the driver's word too. */
  #noteReset(): void {
    const flag = this.faults.has(CODE.resetRequired) ? 1 : undefined;
    if (flag === this.values[RESET_REQUIRED]) return;
    this.values[RESET_REQUIRED] = flag;
    this.#change |= CHANGE.other;
  }
}
