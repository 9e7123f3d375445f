import type { ReadGuard } from '../../../host/read-guard.ts';
import type { Reading } from '../../../model/metric.ts';
import { instanceKey, type MigName } from '../listing.ts';
import type { Bound } from './bound.ts';
import { CODE } from './codes.ts';
import type { Values } from './getter.ts';
import type { FoundInstance } from './instances.ts';
import type { Handle } from './library.ts';
import { type EccForm, type Question, Respondent, type Round, withhold } from './questions.ts';
import { VOLTA } from './words.ts';

interface Instance extends FoundInstance {
  readonly respondent: Respondent;
}

/** One GPU under one handle, with its instances: the values of the last round, by the paths of the document of `nvidia-smi`. */
export class Gpu {
  readonly handle: Handle;
  readonly values: Values;
  /** Grows with each change of what there is: split, instances. */
  generation = 0;
  /** True after a round that also asked for what stays. */
  isWhole = false;
  links: readonly Reading[] = [];
  faults: ReadonlySet<number> = new Set();
  readonly #bound: Bound;
  readonly #respondent: Respondent;
  readonly #guard: ReadGuard | undefined;
  readonly #place: string;
  readonly #eccForm: EccForm;
  #instances: readonly Instance[] = [];
  #handles: readonly (Handle | undefined)[] = [];
  #mode: Values[string];

  constructor(handle: Handle, identity: Values, bound: Bound, place: string, guard: ReadGuard | undefined) {
    this.handle = handle;
    this.values = identity;
    this.#bound = bound;
    this.#place = place;
    this.#guard = guard;
    this.#respondent = new Respondent(handle, identity, place, guard);
    const architecture = identity['nvml/architecture'];
    this.#eccForm = typeof architecture === 'number' && architecture <= VOLTA ? 'byBits' : 'unified';
  }

  /** `everything`: also what stays for minutes. Gives the code that concerns the node, at which the round ended. */
  refresh(everything: boolean): number | undefined {
    const { questions } = this.#bound;
    const isWhole = everything || this.faults.has(CODE.gpuIsLost);
    const fast = this.#respondent.ask(questions.fast, this.#eccForm);
    if (fast.node !== undefined) return fast.node;
    if (fast.faults.has(CODE.gpuIsLost)) return this.#lose(fast);
    const generation = this.generation;
    this.#refreshInstances(isWhole);
    // What was not supported for the sake of the instances may be by now.
    const again = generation === this.generation ? fast : this.#respondent.ask(questions.fast, this.#eccForm);
    if (again.node !== undefined) return again.node;
    if (again.faults.has(CODE.gpuIsLost)) return this.#lose(again);
    this.faults = again.faults;
    // A call that is refused until a reset is the driver's word too.
    const asked = this.values.gpu_recovery_action;
    if (again.faults.has(CODE.resetRequired) && (asked === undefined || asked === 'None')) this.values.gpu_recovery_action = 'GPU Reset';
    this.isWhole = isWhole;
    const node = this.#noted('nvmlDeviceGetComputeRunningProcesses', () => this.#refreshProcesses());
    if (node !== undefined || !isWhole) return node;
    const slow = this.#respondent.ask(questions.slow, this.#eccForm);
    if (slow.node !== undefined) return slow.node;
    if (slow.faults.has(CODE.gpuIsLost)) return this.#lose(slow);
    this.#settleLimits();
    if (slow.faults.size > 0) this.faults = new Set([...again.faults, ...slow.faults]);
    this.links = this.#noted('nvmlDeviceGetNvLinkState', () => this.#bound.links.read(this.handle));
    return undefined;
  }

  /** Names of the instances, for those that told them. */
  names(): readonly (readonly [string, MigName])[] {
    const uuid = String(this.values.uuid);
    return this.#instances.flatMap(({ values, name }) =>
      name === undefined ? [] : [[instanceKey(uuid, String(values.gpu_instance_id), String(values.compute_instance_id)), name] as const],
    );
  }

  /** Nothing but the loss itself: every other value is older than it. */
  #lose(round: Round): undefined {
    const { fast, slow, fastInstance, slowInstance } = this.#bound.questions;
    withholdAll([...fast, ...slow], this.values);
    for (const { values } of this.#instances) withholdAll([...fastInstance, ...slowInstance], values);
    this.values['temperature/gpu_temp'] = 'GPU is lost';
    this.values.processes = undefined;
    this.values['processes/process_info'] = undefined;
    this.links = [];
    this.faults = round.faults;
    this.isWhole = true;
  }

  #refreshProcesses(): undefined {
    const before = this.values['processes/process_info'];
    const listed = this.#bound.processes.read(this.handle, Array.isArray(before) ? before : undefined);
    this.values['processes/process_info'] = listed;
    this.values.processes = listed === undefined ? undefined : '';
  }

  /** Instances come and go without a reset; that also changes what the GPU tells of itself. */
  #refreshInstances(everything: boolean): void {
    const mode = this.values['mig_mode/current_mig'];
    const handles = this.#noted('nvmlDeviceGetMigDeviceHandleByIndex', () => this.#bound.finder.handles(this.handle, mode));
    const isSame = handles.length === this.#handles.length && handles.every((handle, index) => handle === this.#handles[index]);
    if (everything || !isSame || mode !== this.#mode) this.#findInstances(handles, !isSame || mode !== this.#mode);
    this.#mode = mode;
    const { fastInstance, slowInstance } = this.#bound.questions;
    for (const { respondent } of this.#instances) {
      respondent.ask(fastInstance);
      if (everything) respondent.ask(slowInstance);
    }
  }

  #findInstances(handles: readonly (Handle | undefined)[], isNew: boolean): void {
    this.#handles = handles;
    const found = this.#noted('nvmlDeviceGetGpuInstanceId', () =>
      handles.flatMap((handle, index) => (handle === undefined ? [] : (this.#bound.finder.describe(handle, index) ?? []))),
    );
    const isSame =
      !isNew && found.length === this.#instances.length && found.every((each, index) => isSameInstance(each, this.#instances[index]));
    if (isSame) return;
    this.generation += 1;
    this.#respondent.forgetUnsupported();
    this.#instances = found.map((each) => {
      const respondent = new Respondent(each.handle, each.values, this.#place, this.#guard);
      respondent.ask(this.#bound.questions.slowInstance);
      return { ...each, respondent };
    });
    this.values['mig_devices/mig_device'] = this.#instances.map(({ values }) => values);
  }

  /** Later boards tell limits as degrees left; the same in degrees would be told twice. */
  #settleLimits(): void {
    const { values } = this;
    if (!LIMITS.some((limit) => typeof values[`temperature/gpu_temp_${limit}_tlimit_threshold`] === 'number')) return;
    for (const limit of LIMITS) values[`temperature/gpu_temp_${limit}_threshold`] = undefined;
  }

  #noted<T>(name: string, call: () => T): T {
    const note = this.#guard?.name(`${this.#place}/${name}`);
    if (note !== undefined) this.#guard?.enterNamed(note);
    const result = call();
    if (note !== undefined) this.#guard?.leaveNamed();
    return result;
  }
}

const LIMITS = ['max', 'slow', 'max_mem', 'max_gpu'];

function isSameInstance(found: FoundInstance, known: FoundInstance | undefined): boolean {
  return (
    known !== undefined &&
    found.handle === known.handle &&
    found.name?.uuid === known.name?.uuid &&
    found.values.gpu_instance_id === known.values.gpu_instance_id &&
    found.values.compute_instance_id === known.values.compute_instance_id
  );
}

function withholdAll(questions: readonly Question[], values: Values): void {
  for (const { paths } of questions) withhold(paths, values);
}
