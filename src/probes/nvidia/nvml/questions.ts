import type { ReadGuard } from '../../../host/read-guard.ts';
import { CHANGE, NOT_ASKED, type Seen, unseen } from './changes.ts';
import { CODE, kindOf, printedFor } from './codes.ts';
import { FieldPlan, factFields, fastFields, slowFields, throttleFields } from './field-plan.ts';
import { type BoundGetter, bindGetter, type Getter, type Values } from './getter.ts';
import {
  bar1Getter,
  eccGetters,
  factGetters,
  fastGetters,
  instanceErrors,
  memoryGetter,
  powerGetter,
  slowGetters,
  splitGetters,
  TEMPERATURE_MARGINS,
  thresholdGetters,
} from './getters.ts';
import type { Handle, Library } from './library.ts';

/** How a board counts memory errors: by SRAM and DRAM, or up to Volta by single and double bits. */
export type EccForm = 'unified' | 'byBits';

/** A getter with a number, under which a device's notes on it are kept. */
export interface Question extends BoundGetter {
  readonly index: number;
}

/** Everything that is asked of a GPU and of an instance, bound to one library and driver. */
export interface Questions {
  readonly fast: readonly Question[];
  /** Errors by memory, since the driver was loaded: asked for when their totals grow, and with the slow ones. */
  readonly errors: Readonly<Record<EccForm, readonly Question[]>>;
  readonly slow: readonly Question[];
  /** Whether the GPU is split: with the slow ones, and before them. */
  readonly split: readonly Question[];
  readonly facts: readonly Question[];
  readonly lifetime: Readonly<Record<EccForm, readonly Question[]>>;
  readonly fastInstance: readonly Question[];
  /** With the errors of its GPU. */
  readonly instanceErrors: readonly Question[];
  readonly slowInstance: readonly Question[];
}

export function bindQuestions(library: Library, driverBranch: number): Questions {
  let index = 0;
  const numbered = (bound: BoundGetter): Question => ({
    index: index++,
    name: bound.name,
    paths: bound.paths,
    words: bound.words,
    read: bound.read.bind(bound),
  });
  const bind = (getter: Getter): BoundGetter => bindGetter(library, getter);
  const all = (getters: readonly Getter[]): Question[] => getters.map((getter) => numbered(bind(getter)));
  const ecc = (period: 'volatile' | 'aggregate'): Questions['errors'] => ({
    unified: all(eccGetters[period].unified),
    byBits: all(eccGetters[period].byBits),
  });
  return {
    fast: [
      ...all(fastGetters),
      numbered(new FieldPlan(library, [...fastFields, ...throttleFields(driverBranch)])),
      numbered(unlessTold(['gpu_power_readings/instant_power_draw'], bind(powerGetter))),
    ],
    errors: ecc('volatile'),
    split: all(splitGetters),
    slow: [...all(slowGetters), numbered(new FieldPlan(library, slowFields))],
    facts: [
      ...all(factGetters),
      numbered(new FieldPlan(library, factFields)),
      // The same limit in degrees and as degrees left would be told twice.
      ...thresholdGetters.map((getter) => numbered(unlessTold(TEMPERATURE_MARGINS, bind(getter)))),
    ],
    lifetime: ecc('aggregate'),
    fastInstance: all([memoryGetter]),
    instanceErrors: all([instanceErrors]),
    slowInstance: all([bar1Getter]),
  };
}

/** For what drivers tell in a better way or in this one. */
function unlessTold(better: readonly string[], getter: BoundGetter): BoundGetter {
  const isTold = (values: Values): boolean => better.some((path) => typeof values[path] === 'number');
  return { ...getter, read: (handle, values, seen) => (isTold(values) ? NOT_ASKED : getter.read(handle, values, seen)) };
}

/** How a round of questions to one device ended. */
export interface Round {
  /** Codes of device faults that were met. */
  readonly faults: ReadonlySet<number>;
  /** The code at which the round was broken off, since it concerns the node. */
  readonly node?: number;
  /** The library does not know the device (any more). */
  readonly isUnknown?: true;
}

const SOUND: Round = { faults: new Set() };

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
  readonly #seen: (Seen | undefined)[] = [];
  #change: number = CHANGE.none;

  constructor(handle: Handle, values: Values, place: string, guard: ReadGuard | undefined) {
    this.#handle = handle;
    this.values = values;
    this.#place = place;
    this.#guard = guard;
  }

  /** What answers changed since the last call of this. */
  takeChange(): number {
    const change = this.#change;
    this.#change = CHANGE.none;
    return change;
  }

  /** Tells everything again at the next round: the values were overwritten. */
  forget(): void {
    this.#seen.length = 0;
    this.#change = CHANGE.other;
  }

  forgetUnsupported(): void {
    this.#unsupported.length = 0;
  }

  /** A value that is refused is told as `nvidia-smi` prints it. A lost GPU is not asked further: each of its calls may block. */
  ask(questions: readonly Question[]): Round {
    let faults: Set<number> | undefined;
    let isUnknown = false;
    for (const question of questions) {
      if (this.#unsupported[question.index] === true) continue;
      const code = this.#call(question);
      if (code === CODE.success || code === NOT_ASKED) continue;
      const kind = kindOf(code);
      if (kind === 'node') {
        this.#guard?.leaveNamed();
        return { faults: faults ?? SOUND.faults, node: code };
      }
      if (code === CODE.notSupported || code === CODE.functionNotFound) this.#unsupported[question.index] = true;
      isUnknown ||= code === CODE.invalidArgument || code === CODE.notFound;
      if (kind !== 'device') continue;
      faults ??= new Set();
      faults.add(code);
      if (code === CODE.gpuIsLost) break;
    }
    this.#guard?.leaveNamed();
    if (faults === undefined && !isUnknown) return SOUND;
    return { faults: faults ?? SOUND.faults, ...(isUnknown ? { isUnknown } : {}) };
  }

  /** The note of one call is replaced by that of the next: what is done between them does not hang. */
  #call(question: Question): number {
    if (this.#guard !== undefined) this.#note(this.#guard, question);
    const seen = this.#seen[question.index] ?? this.#firstSeen(question);
    seen.change = CHANGE.none;
    const code = question.read(this.#handle, this.values, seen);
    // Fields say for each entry how it ended, so a plan has told already.
    if (code !== CODE.success && code !== seen.code && question.name !== 'nvmlDeviceGetFieldValues') {
      withhold(question.paths, this.values, code === NOT_ASKED ? undefined : printedFor(code));
      seen.change = CHANGE.other;
    }
    seen.code = code;
    this.#change |= seen.change;
    return code;
  }

  #note(guard: ReadGuard, { index, name }: Question): void {
    const note = this.#notes[index] ?? guard.name(`${this.#place}/${name}`);
    this.#notes[index] = note;
    if (note !== undefined) guard.enterNamed(note);
  }

  #firstSeen({ index, words }: Question): Seen {
    const seen = unseen(words);
    this.#seen[index] = seen;
    return seen;
  }
}

export function withhold(paths: readonly string[], values: Values, word?: string): void {
  for (const path of paths) values[path] = word;
}
