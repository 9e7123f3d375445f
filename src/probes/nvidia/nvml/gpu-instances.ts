import type { Reading } from '../../../model/metric.ts';
import { migFields } from '../fields.ts';
import { instanceKey, type MigName } from '../listing.ts';
import type { Bound } from './bound.ts';
import type { CallNotes } from './call-notes.ts';
import { printedFor, wordOf } from './codes.ts';
import type { FoundInstance, InstanceHandles } from './instances.ts';
import type { Handle } from './library.ts';
import { ElementMemo } from './memo.ts';
import { Respondent, withholdAll } from './respondent.ts';
import { Sheet, type Values } from './sheet.ts';

export interface Instance extends FoundInstance {
  readonly respondent: Respondent;
  readonly memo: ElementMemo;
  /** Readings of its own that have no path. */
  more: readonly Reading[];
}

/** The instances of one GPU, which come and go without a reset. */
export class GpuInstances {
  readonly #bound: Pick<Bound, 'questions' | 'finder'>;
  readonly #handle: Handle;
  readonly #values: Values;
  readonly #notes: CallNotes;
  #handles: InstanceHandles = [];
  #mode: Values[string];
  /** With which the driver failed to tell of them. */
  #failure: number | undefined;
  #all: readonly Instance[] = [];

  /** `values`: of the GPU. */
  constructor(bound: Pick<Bound, 'questions' | 'finder'>, handle: Handle, values: Values, notes: CallNotes) {
    this.#bound = bound;
    this.#handle = handle;
    this.#values = values;
    this.#notes = notes;
  }

  /** Another list whenever one came or went. */
  get all(): readonly Instance[] {
    return this.#all;
  }

  /** Names, for those that told them. */
  names(): readonly (readonly [string, MigName])[] {
    const uuid = String(this.#values.uuid);
    return this.#all.flatMap(({ values, name }) =>
      name === undefined ? [] : [[instanceKey(uuid, String(values.gpu_instance_id), String(values.compute_instance_id)), name] as const],
    );
  }

  /** True when instances came or went, which also changes what the GPU tells of itself, or the driver began or ceased to fail. */
  refresh(isDue: boolean): boolean {
    const told = this.#values['mig_mode/current_mig'];
    const isOtherMode = typeof told === 'number' && told !== this.#mode;
    if (isOtherMode) this.#mode = told;
    const [before, failure] = [this.#all, this.#failure];
    if (isDue || isOtherMode) this.#look(isOtherMode);
    const { fastInstance, slowInstance } = this.#bound.questions;
    let isGone = false;
    for (const { respondent } of this.#all) {
      if (respondent.ask(fastInstance).isUnknown === true) isGone = true;
      if (isDue) respondent.ask(slowInstance);
    }
    if (isGone && !isDue) {
      this.#look(true);
      for (const { respondent } of this.#all) respondent.ask(fastInstance);
    }
    return this.#all !== before || this.#failure !== failure;
  }

  /** The GPU is lost: every value is older than that. */
  lose(): void {
    const { fastInstance, instanceErrors, slowInstance } = this.#bound.questions;
    for (const instance of this.#all) {
      withholdAll([...fastInstance, ...instanceErrors, ...slowInstance], instance.values);
      instance.respondent.forget();
      instance.more = [];
    }
  }

  #look(isNew: boolean): void {
    const handles = this.#notes.during('nvmlDeviceGetMigDeviceHandleByIndex', () =>
      this.#bound.finder.handles(this.#handle, this.#mode, this.#handles),
    );
    if (typeof handles === 'number') {
      this.#fail(handles);
      return;
    }
    const isSame = !isNew && handles === this.#handles && this.#failure === undefined;
    this.#handles = handles;
    this.#notes.during('nvmlDeviceGetGpuInstanceId', () => {
      if (!isSame || !this.#areStillThere()) this.#describe(isNew);
    });
  }

  /** Those that were found before are kept. The code as long as the driver fails. */
  #fail(code: number | undefined): void {
    this.#failure = code;
    this.#values.mig_devices = code === undefined ? undefined : (printedFor(code) ?? wordOf(code));
  }

  /** Handles may be given anew, the name of an instance is not. */
  #areStillThere(): boolean {
    let count = 0;
    for (const handle of this.#handles) if (handle !== undefined) count += 1;
    return count === this.#all.length && this.#all.every((instance) => this.#bound.finder.isStill(instance));
  }

  #describe(isNew: boolean): void {
    const found: FoundInstance[] = [];
    for (const [index, handle] of this.#handles.entries()) {
      const described = handle === undefined ? undefined : this.#bound.finder.describe(handle, index);
      if (typeof described === 'number') {
        this.#fail(described);
        return;
      }
      if (described !== undefined) found.push(described);
    }
    this.#fail(undefined);
    if (!isNew && found.length === this.#all.length && found.every((each, index) => isSameInstance(each, this.#all[index]))) return;
    this.#all = found.map((each) => {
      const { instance, slowInstance } = this.#bound.questions;
      const sheet = new Sheet(each.handle, each.values, instance);
      const respondent = new Respondent(sheet, this.#notes);
      respondent.ask(slowInstance);
      return { ...each, respondent, memo: new ElementMemo(sheet, migFields), more: [] };
    });
    this.#values['mig_devices/mig_device'] = this.#all.map(({ values }) => values);
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
