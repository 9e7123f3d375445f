import type { ReadGuard } from '../../../host/read-guard.ts';
import type { Reading } from '../../../model/metric.ts';
import { instanceKey, type MigName } from '../listing.ts';
import { Activities } from './activities.ts';
import type { Bound } from './bound.ts';
import { CHANGE } from './changes.ts';
import { CODE } from './codes.ts';
import { ECC_TOTALS } from './field-plan.ts';
import type { Values } from './getter.ts';
import type { FoundInstance, InstanceHandles } from './instances.ts';
import type { Handle } from './library.ts';
import { type Listing, NO_LISTING } from './process-list.ts';
import type { Shares } from './process-shares.ts';
import { type EccForm, type Question, Respondent, withhold } from './questions.ts';
import { VOLTA } from './words.ts';

interface Instance extends FoundInstance {
  readonly respondent: Respondent;
  /** As of the GPU. */
  more: readonly Reading[];
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

const EVERYTHING = { slow: true, facts: true };
const NO_FAULTS: ReadonlySet<number> = new Set();

/** One GPU under one handle, with its instances: the values of the last round, by the paths of the document of `nvidia-smi`. */
export class Gpu {
  readonly handle: Handle;
  readonly values: Values;
  /** Grows with each change of what there is: split, instances. */
  generation = 0;
  /** Readings of its own that have no path: links, activity. */
  more: readonly Reading[] = [];
  faults = NO_FAULTS;
  readonly #bound: Bound;
  readonly #respondent: Respondent;
  readonly #guard: ReadGuard | undefined;
  readonly #place: string;
  readonly #eccForm: EccForm;
  readonly #activities: Activities;
  #links: readonly Reading[] = [];
  #instances: readonly Instance[] = [];
  #handles: InstanceHandles = [];
  #mode: Values[string];
  #listing: Listing = NO_LISTING;
  #shares: Shares | undefined;
  /** Those of errors, when they were last told by memory. */
  #corrected: Values[string];
  #uncorrected: Values[string];
  #change: number = CHANGE.none;

  constructor(handle: Handle, identity: Values, bound: Bound, place: string, guard: ReadGuard | undefined) {
    this.handle = handle;
    this.values = identity;
    this.#bound = bound;
    this.#place = place;
    this.#guard = guard;
    this.#respondent = new Respondent(handle, identity, place, guard);
    this.#activities = this.#noted('nvmlGpmQueryDeviceSupport', () => new Activities(bound.gpm, handle));
    const architecture = identity['nvml/architecture'];
    this.#eccForm = typeof architecture === 'number' && architecture <= VOLTA ? 'byBits' : 'unified';
  }

  /** What changes quickly, and what else is due. Gives the code that concerns the node, at which the round ended. */
  refresh(due: Due): number | undefined {
    const isBack = this.faults.has(CODE.gpuIsLost);
    this.faults = NO_FAULTS;
    const ended = this.#round(isBack ? { ...due, ...EVERYTHING } : due);
    if (ended !== undefined && ended !== CODE.gpuIsLost) return ended;
    if (ended === CODE.gpuIsLost) this.#lose();
    else if (this.faults.has(CODE.resetRequired)) this.#needReset();
    return undefined;
  }

  /** What the rounds since the last call of this changed. */
  takeChange(): number {
    const change = this.#change | this.#respondent.takeChange();
    this.#change = CHANGE.none;
    return change;
  }

  get instances(): readonly Readonly<Pick<Instance, 'values' | 'more' | 'respondent'>>[] {
    return this.#instances;
  }

  /** Before the library's client ends. */
  close(): void {
    this.#activities.free();
  }

  /** Names of the instances, for those that told them. */
  names(): readonly (readonly [string, MigName])[] {
    const uuid = String(this.values.uuid);
    return this.#instances.flatMap(({ values, name }) =>
      name === undefined ? [] : [[instanceKey(uuid, String(values.gpu_instance_id), String(values.compute_instance_id)), name] as const],
    );
  }

  /** The code that ended it: of the node, or that the GPU is lost. */
  #round(due: Due): number | undefined {
    const { questions } = this.#bound;
    const generation = this.generation;
    let ended = this.#ask(questions.fast);
    if (due.slow) ended ??= this.#ask(questions.split);
    if (ended !== undefined) return ended;
    this.#refreshInstances(due.slow);
    // What was not supported for the sake of the instances may be by now.
    const isSplitAnew = generation !== this.generation;
    const { slow, facts } = isSplitAnew ? EVERYTHING : due;
    if (isSplitAnew) ended = this.#ask(questions.fast);
    ended ??= this.#askErrors(slow);
    if (ended !== undefined) return ended;
    this.#refreshProcesses(slow);
    if (facts) ended = this.#ask(questions.facts) ?? this.#ask(questions.lifetime[this.#eccForm]);
    if (slow) ended ??= this.#ask(questions.slow);
    if (ended === undefined) this.#refreshMore(due.nowMs, slow);
    return ended;
  }

  #refreshMore(nowMs: number, isDue: boolean): void {
    const linksBefore = this.#links;
    if (isDue) this.#links = this.#noted('nvmlDeviceGetNvLinkState', () => this.#bound.links.read(this.handle, linksBefore));
    const isBusyTold = typeof this.values['utilization/gpu_util'] === 'number';
    this.#note('nvmlGpmSampleGet');
    const isRead = this.#activities.refresh(nowMs, isDue, isBusyTold, this.#instances);
    this.#guard?.leaveNamed();
    if (isRead) for (const instance of this.#instances) instance.more = this.#activities.of(instance);
    if (isRead || linksBefore !== this.#links) this.more = [...this.#links, ...this.#activities.whole()];
  }

  #ask(questions: readonly Question[]): number | undefined {
    const { faults, node } = this.#respondent.ask(questions);
    if (faults.size > 0) this.faults = new Set([...this.faults, ...faults]);
    return node ?? (faults.has(CODE.gpuIsLost) ? CODE.gpuIsLost : undefined);
  }

  /** By memory, when there are more of them in all, or where the board does not tell how many there are in all. */
  #askErrors(isDue: boolean): number | undefined {
    const [corrected, uncorrected] = [this.values[ECC_TOTALS[0]], this.values[ECC_TOTALS[1]]];
    const isTold = typeof corrected === 'number' && typeof uncorrected === 'number';
    if (isTold && !isDue && corrected === this.#corrected && uncorrected === this.#uncorrected) return undefined;
    this.#corrected = corrected;
    this.#uncorrected = uncorrected;
    const { errors, instanceErrors } = this.#bound.questions;
    for (const { respondent } of this.#instances) respondent.ask(instanceErrors);
    return this.#ask(errors[this.#eccForm]);
  }

  /** Nothing but the loss itself: every other value is older than it. */
  #lose(): void {
    const { fast, split, slow, facts, errors, lifetime, fastInstance, instanceErrors, slowInstance } = this.#bound.questions;
    withholdAll([...fast, ...split, ...slow, ...facts, ...errors[this.#eccForm], ...lifetime[this.#eccForm]], this.values);
    this.#respondent.forget();
    for (const instance of this.#instances) {
      withholdAll([...fastInstance, ...instanceErrors, ...slowInstance], instance.values);
      instance.respondent.forget();
      instance.more = [];
    }
    this.values['temperature/gpu_temp'] = 'GPU is lost';
    this.values.processes = undefined;
    this.values['processes/process_info'] = undefined;
    this.#listing = NO_LISTING;
    this.#shares = undefined;
    this.#corrected = undefined;
    this.#links = [];
    this.more = [];
    this.#activities.free();
    this.faults = new Set([CODE.gpuIsLost]);
  }

  /** A call that is refused until a reset is the driver's word too. */
  #needReset(): void {
    const asked = this.values.gpu_recovery_action;
    if (asked !== undefined && asked !== 'None') return;
    this.values.gpu_recovery_action = 'GPU Reset';
    this.#respondent.forget();
  }

  /** `isDue`: also what was spent on them. */
  #refreshProcesses(isDue: boolean): void {
    const [listing, shares] = [this.#listing, this.#shares];
    this.#note('nvmlDeviceGetComputeRunningProcesses');
    this.#listing = this.#bound.processes.read(this.handle, listing, isDue);
    this.#guard?.leaveNamed();
    const { processes } = this.#listing;
    if (processes === undefined || processes.length === 0) this.#shares = undefined;
    else if (isDue) {
      const pids = processes.map(({ pid }) => String(pid));
      this.#shares = this.#noted('nvmlDeviceGetProcessUtilization', () => this.#bound.shares.read(this.handle, shares?.atUs ?? 0, pids));
    }
    if (this.#listing === listing && this.#shares === shares) return;
    this.#change |= arePids(listing.processes, processes) ? CHANGE.processes : CHANGE.other;
    this.values['processes/process_info'] = withShares(processes, this.#shares);
    this.values.processes = processes === undefined ? undefined : '';
  }

  /** Instances come and go without a reset; that also changes what the GPU tells of itself. */
  #refreshInstances(isDue: boolean): void {
    const mode = this.values['mig_mode/current_mig'];
    const isOtherMode = mode !== this.#mode;
    this.#mode = mode;
    if (isDue || isOtherMode) this.#lookForInstances(mode, isOtherMode);
    const { fastInstance, slowInstance } = this.#bound.questions;
    let isGone = false;
    for (const { respondent } of this.#instances) {
      if (respondent.ask(fastInstance).isUnknown === true) isGone = true;
      if (isDue) respondent.ask(slowInstance);
    }
    if (!isGone || isDue) return;
    this.#lookForInstances(mode, true);
    for (const { respondent } of this.#instances) respondent.ask(fastInstance);
  }

  #lookForInstances(mode: unknown, isNew: boolean): void {
    const handles = this.#noted('nvmlDeviceGetMigDeviceHandleByIndex', () =>
      this.#bound.finder.handles(this.handle, this.#bound.finder.most(this.handle, mode), this.#handles),
    );
    this.#findInstances(handles, isNew || handles !== this.#handles);
  }

  #findInstances(handles: InstanceHandles, isNew: boolean): void {
    this.#handles = handles;
    const found = this.#noted('nvmlDeviceGetGpuInstanceId', () =>
      handles.flatMap((handle, index) => (handle === undefined ? [] : (this.#bound.finder.describe(handle, index) ?? []))),
    );
    const isSame =
      !isNew && found.length === this.#instances.length && found.every((each, index) => isSameInstance(each, this.#instances[index]));
    if (isSame) return;
    this.generation += 1;
    this.#change |= CHANGE.other;
    this.#respondent.forgetUnsupported();
    this.#corrected = undefined;
    this.#instances = found.map((each) => {
      const respondent = new Respondent(each.handle, each.values, this.#place, this.#guard);
      respondent.ask(this.#bound.questions.slowInstance);
      return { ...each, respondent, more: [] };
    });
    this.values['mig_devices/mig_device'] = this.#instances.map(({ values }) => values);
  }

  #noted<T>(name: string, call: () => T): T {
    this.#note(name);
    const result = call();
    this.#guard?.leaveNamed();
    return result;
  }

  #note(name: string): void {
    if (this.#guard === undefined) return;
    const note = this.#guard.name(`${this.#place}/${name}`);
    if (note !== undefined) this.#guard.enterNamed(note);
  }
}

function isSameInstance(found: FoundInstance, known: FoundInstance | undefined): boolean {
  return (
    known !== undefined &&
    found.handle === known.handle &&
    found.name?.uuid === known.name?.uuid &&
    found.values.gpu_instance_id === known.values.gpu_instance_id &&
    found.values.compute_instance_id === known.values.compute_instance_id
  );
}

/** A process that came after the last look has none. */
function withShares(processes: readonly Values[] | undefined, shares: Shares | undefined): readonly Values[] | undefined {
  if (shares === undefined) return processes;
  return processes?.map((process) => ({ ...process, ...shares.byPid.get(String(process.pid)) }));
}

/** The same processes in the same order, with whatever memory. */
function arePids(before: readonly Values[] | undefined, now: readonly Values[] | undefined): boolean {
  return (
    before?.length === now?.length && before?.every(({ pid, type }, at) => pid === now?.[at]?.pid && type === now?.[at]?.type) === true
  );
}

function withholdAll(questions: readonly Question[], values: Values): void {
  for (const { paths } of questions) withhold(paths, values);
}
