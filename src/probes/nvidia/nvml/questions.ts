import type { ReadGuard } from '../../../host/read-guard.ts';
import { CODE, kindOf, printedFor } from './codes.ts';
import { FieldPlan, fastFields, slowFields, throttleFields } from './field-plan.ts';
import { type BoundGetter, bindGetter, type Getter, type Values } from './getter.ts';
import { bar1Getter, eccGetters, fastGetters, instanceErrors, memoryGetter, powerGetter, slowGetters } from './getters.ts';
import type { Handle, Library } from './library.ts';
import type { Memory } from './memory.ts';

/** How a board counts memory errors: by SRAM and DRAM, or up to Volta by single and double bits. */
export type EccForm = 'unified' | 'byBits';

/** A getter with a number, under which a device's notes on it are kept. */
export interface Question extends BoundGetter {
  readonly index: number;
  readonly ecc?: EccForm;
}

/** Everything that is asked of a GPU and of an instance, bound to one library and driver. */
export interface Questions {
  readonly fast: readonly Question[];
  readonly slow: readonly Question[];
  readonly fastInstance: readonly Question[];
  readonly slowInstance: readonly Question[];
}

export function bindQuestions(library: Library, scratch: Memory, driverBranch: number): Questions {
  let index = 0;
  const numbered = (bound: BoundGetter): Question => ({ ...bound, index: index++ });
  const plan = (fields: FieldPlan): Question =>
    numbered({ name: 'nvmlDeviceGetFieldValues', paths: fields.paths, read: (handle, values) => fields.read(handle, values) });
  const all = (getters: readonly Getter[]): Question[] => getters.map((getter) => numbered(bindGetter(library, scratch, getter)));
  const ecc = (period: 'volatile' | 'aggregate'): Question[] =>
    (['unified', 'byBits'] as const).flatMap((form) => all(eccGetters[period][form]).map((question) => ({ ...question, ecc: form })));
  const power = bindGetter(library, scratch, powerGetter);
  return {
    fast: [
      ...all(fastGetters),
      plan(new FieldPlan(library, [...fastFields, ...throttleFields(driverBranch)])),
      numbered(unlessTold('gpu_power_readings/instant_power_draw', power)),
      ...ecc('volatile'),
    ],
    slow: [...all(slowGetters), plan(new FieldPlan(library, slowFields)), ...ecc('aggregate')],
    fastInstance: all([memoryGetter, instanceErrors]),
    slowInstance: all([bar1Getter]),
  };
}

/** For what drivers tell in a better way or in this one. */
function unlessTold(path: string, getter: BoundGetter): BoundGetter {
  return { ...getter, read: (handle, values) => (values[path] === undefined ? getter.read(handle, values) : CODE.success) };
}

/** How a round of questions to one device ended. */
export interface Round {
  /** Codes of device faults that were met. */
  readonly faults: ReadonlySet<number>;
  /** The code at which the round was broken off, since it concerns the node. */
  readonly node?: number;
}

const NO_FAULTS: ReadonlySet<number> = new Set();

/**
 * One device as it is asked: what it does not support is asked once, which holds as long as its handle and its instances. Before each
 * call the guard notes it, so that a call that never comes back has a name.
 */
export class Respondent {
  readonly values: Values;
  readonly #handle: Handle;
  readonly #place: string;
  readonly #guard: ReadGuard | undefined;
  readonly #notes: (number | undefined)[] = [];
  readonly #unsupported: boolean[] = [];

  constructor(handle: Handle, values: Values, place: string, guard: ReadGuard | undefined) {
    this.#handle = handle;
    this.values = values;
    this.#place = place;
    this.#guard = guard;
  }

  forgetUnsupported(): void {
    this.#unsupported.length = 0;
  }

  /** A value that is refused is told as `nvidia-smi` prints it. A lost GPU is not asked further: each of its calls may block. */
  ask(questions: readonly Question[], ecc?: EccForm): Round {
    let faults: Set<number> | undefined;
    for (const question of questions) {
      const { index } = question;
      if (this.#unsupported[index] === true || (question.ecc !== undefined && question.ecc !== ecc)) continue;
      const code = this.#call(question);
      if (code === CODE.success) continue;
      const kind = kindOf(code);
      if (kind === 'node') return { faults: faults ?? NO_FAULTS, node: code };
      if (code === CODE.notSupported || code === CODE.functionNotFound) this.#unsupported[index] = true;
      if (kind !== 'device') continue;
      faults ??= new Set();
      faults.add(code);
      if (code === CODE.gpuIsLost) break;
    }
    return { faults: faults ?? NO_FAULTS };
  }

  #call(question: Question): number {
    const guard = this.#guard;
    if (guard === undefined) return told(question, question.read(this.#handle, this.values), this.values);
    const note = this.#notes[question.index] ?? guard.name(`${this.#place}/${question.name}`);
    this.#notes[question.index] = note;
    if (note !== undefined) guard.enterNamed(note);
    const code = question.read(this.#handle, this.values);
    if (note !== undefined) guard.leaveNamed();
    return told(question, code, this.values);
  }
}

/** Fields say for each entry how it ended, so a plan has told already. */
function told(question: Question, code: number, values: Values): number {
  if (code !== CODE.success && question.name !== 'nvmlDeviceGetFieldValues') withhold(question.paths, values, printedFor(code));
  return code;
}

export function withhold(paths: readonly string[], values: Values, word?: string): void {
  for (const path of paths) values[path] = word;
}
