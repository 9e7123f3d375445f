import { type GpuSample, joined, type Unread } from '../sample.ts';
import { VALUES, type ValueKey } from '../values.ts';
import type { CallNotes } from './call-notes.ts';
import { CODE, kindOf, printedFor } from './codes.ts';
import { FIELD } from './layouts.ts';
import type { Handle, Library } from './library.ts';
import type { Memory } from './memory.ts';

/** How often a question is put: at each read, every half minute, every five minutes, or every five minutes until it is answered. */
export type Pace = 'read' | 'slow' | 'facts' | 'once';

/** Something that is asked of a GPU or an instance. */
export interface Question {
  /** Of the newest function, for the note of what is being called. */
  readonly symbol: string;
  readonly pace: Pace;
  /** The driver tells the same in a better way, so it is not asked. */
  readonly unless?: ((told: GpuSample) => boolean) | undefined;
  ask(device: Handle): Answer;
}

export interface Answer {
  /** Of several values that have a code each, the first that is no mere absence. */
  readonly code: number;
  readonly told: GpuSample;
}

/** The GPU is lost, or the code concerns the whole node: nothing else needs to be asked. Each call of a lost GPU may block. */
export const endsRound = (code: number): boolean => code === CODE.gpuIsLost || kindOf(code) === 'node';

/** What `nvidia-smi` would print in the place of values, by their names. */
export function refused(code: number, names: readonly string[]): readonly Unread[] {
  const said = printedFor(code);
  return said === undefined ? [] : names.map((name) => ({ name, said, kind: code === CODE.gpuIsLost ? 'lost' : 'error' }));
}

/** Names that `nvidia-smi` has for values, as far as it tells them. */
const namesOf = (keys: readonly ValueKey[]): readonly string[] => keys.flatMap((key) => VALUES[key].paths[0] ?? []);

/** From the library's unit to that of the value. */
type Convert = (told: number) => number | boolean | undefined;
export const SAME: Convert = (told) => told;
export const PERCENT: Convert = (told) => told / 100;
export const MILLI: Convert = (told) => told / 1_000;
export const NANO: Convert = (told) => told / 1e9;
export const MEGA: Convert = (told) => told * 1e6;
export const FLAG: Convert = (told) => told !== 0;

/** Reads one value of an answer. */
type Read = (out: Memory) => ReturnType<Convert>;
export function at(offset: number, convert = SAME): Read {
  return (out) => convert(out.u32(offset));
}
export function signedAt(offset: number): Read {
  return (out) => out.i32(offset);
}
export function longAt(offset: number): Read {
  return (out) => out.u64(offset);
}

/** One function of the driver, by which something is asked. */
interface Function {
  readonly symbol: string;
  /** Between the handle and the answers. */
  readonly before?: readonly number[];
  /** Pointers for answers, eight bytes apart. Default 1. */
  readonly outs?: number;
  /** After the answers: the length of a text. */
  readonly after?: readonly number[];
  /** First word of a versioned struct. */
  readonly version?: number;
}
export interface Way extends Function {
  tell(out: Memory): GpuSample;
}
export interface ValueWay extends Function {
  readonly reads: { readonly [key in ValueKey]?: Read };
}

/** Asks for values by the newest way that the driver has. */
export function valueQuestion(library: Library, pace: Pace, first: ValueWay, ...older: readonly ValueWay[]): Question {
  const way = ({ reads, ...call }: ValueWay): Way => ({
    ...call,
    tell: (out) => ({ values: Object.fromEntries(Object.entries(reads).map(([key, read]) => [key, read(out)])) }),
  });
  return question(library, pace, namesOf(Object.keys(first.reads) as ValueKey[]), [way(first), ...older.map(way)]);
}

const OUT_STRIDE = 8;
/** As much as any answer has. */
const ANSWER_BYTES = 256;

/** Asks by the newest way that the driver has. `names`: of the values, as `nvidia-smi` has them. */
export function question(library: Library, pace: Pace, names: readonly string[], ways: readonly [Way, ...Way[]]): Question {
  const ask = (device: Handle): Answer => {
    let code: number = CODE.functionNotFound;
    for (const way of ways) {
      code = call(library, way, device);
      if (code === CODE.success) return { code, told: way.tell(library.scratch) };
      // A struct newer than the driver, or a function that is not there: the next older way.
      if (code !== CODE.versionMismatch && code !== CODE.functionNotFound) break;
    }
    return { code, told: { unread: refused(code, names) } };
  };
  return { symbol: ways[0].symbol, pace, ask };
}

function call(library: Library, { symbol, before = [], outs = 1, after = [], version }: Way, device: Handle): number {
  const { scratch } = library;
  // What a library of another version leaves out must not be what another call wrote.
  scratch.clear(ANSWER_BYTES);
  if (version !== undefined) scratch.setU32(0, version);
  const pointers = Array.from({ length: outs }, (_, index) => scratch.address + index * OUT_STRIDE);
  const letters = `h${'i'.repeat(before.length)}${'p'.repeat(outs)}${'u'.repeat(after.length)}`;
  return library.call(symbol, letters, device, ...before, ...pointers, ...after);
}

/** One value of `nvmlDeviceGetFieldValues`. Ids: nvml.h 13.3. */
export interface Field {
  readonly id: number;
  readonly scope?: number;
  /** As `nvidia-smi` has it; absent for what that does not tell. */
  readonly name?: string | undefined;
  /** Told only where the driver counts in 64 bits: a smaller counter runs over several times between two reads. */
  readonly isWide?: true;
  tell(value: number): GpuSample;
}

export const field = (id: number, key: ValueKey, convert: Convert = SAME, more: Pick<Field, 'scope' | 'isWide'> = {}): Field => ({
  id,
  name: namesOf([key])[0],
  ...more,
  tell: (value) => ({ values: { [key]: convert(value) } }),
});

const FIELD_VALUES = 'nvmlDeviceGetFieldValues';

/** Asks for several fields with one call. */
export function fieldQuestion(library: Library, pace: Pace, fields: readonly Field[]): Question {
  const ask = (device: Handle): Answer => {
    const values = fieldValues(library, device, fields);
    const names = fields.map(({ name = [] }) => [name].flat());
    if (typeof values === 'number') return { code: values, told: { unread: refused(values, names.flat()) } };
    const told = fields.map(({ tell, isWide }, at): GpuSample => {
      const { code, value, isLong } = values[at] as FieldValue;
      if (code !== CODE.success) return { unread: refused(code, names[at] ?? []) };
      return value === undefined || (isWide === true && !isLong) ? {} : tell(value);
    });
    const failed = values.find(({ code }) => printedFor(code) !== undefined);
    return { code: failed?.code ?? CODE.success, told: joined(told) };
  };
  return { symbol: FIELD_VALUES, pace, ask };
}

interface FieldValue {
  readonly code: number;
  readonly value: number | undefined;
  /** It has 64 bits. */
  readonly isLong: boolean;
}

/** The code, where the call as a whole was refused. */
export function fieldValues(
  library: Library,
  device: Handle,
  fields: readonly Pick<Field, 'id' | 'scope'>[],
): readonly FieldValue[] | number {
  const { scratch } = library;
  scratch.clear(fields.length * FIELD.size);
  for (const [index, { id, scope = 0 }] of fields.entries()) {
    scratch.setU32(index * FIELD.size + FIELD.id, id);
    scratch.setU32(index * FIELD.size + FIELD.scope, scope);
  }
  const code = library.call(FIELD_VALUES, 'hip', device, fields.length, scratch.address);
  return code === CODE.success ? fields.map((_, index) => fieldValue(scratch, index * FIELD.size)) : code;
}

/** Readers by `nvmlValueType_t`; unsigned long has eight bytes on Linux. */
const TYPES: readonly ((memory: Memory, at: number) => number)[] = [
  (memory, at) => memory.f64(at),
  (memory, at) => memory.u32(at),
  (memory, at) => memory.u64(at),
  (memory, at) => memory.u64(at),
  (memory, at) => memory.i64(at),
  (memory, at) => memory.i32(at),
  (memory, at) => memory.u16(at),
];
const [UNSIGNED_LONG, UNSIGNED_LONG_LONG] = [2, 3];

function fieldValue(memory: Memory, at: number): FieldValue {
  const type = memory.u32(at + FIELD.type);
  return {
    code: memory.u32(at + FIELD.code),
    value: TYPES[type]?.(memory, at + FIELD.value),
    isLong: type === UNSIGNED_LONG || type === UNSIGNED_LONG_LONG,
  };
}

/** The latest answers of one device to a list of questions. */
export class Answers {
  readonly #questions: readonly Question[];
  readonly #device: Handle;
  readonly #notes: CallNotes;
  readonly #answers = new Map<Question, Answer>();

  constructor(questions: readonly Question[], device: Handle, notes: CallNotes) {
    this.#questions = questions;
    this.#device = device;
    this.#notes = notes;
  }

  /** Puts the questions of some paces, in their order. Gives the code that ended the round, if one did. */
  ask(...paces: readonly Pace[]): number | undefined {
    for (const question of this.#questions.filter(({ pace }) => paces.includes(pace))) {
      if (question.pace === 'once' && isSettled(this.#answers.get(question))) continue;
      this.#answers.delete(question);
      if (question.unless?.(this.told()) === true) continue;
      const answer = this.#notes.during(question.symbol, () => question.ask(this.#device));
      this.#answers.set(question, answer);
      if (endsRound(answer.code)) return answer.code;
    }
    return undefined;
  }

  told(): GpuSample {
    return joined(this.#all().map(({ told }) => told));
  }

  codes(): readonly number[] {
    return this.#all().map(({ code }) => code);
  }

  /** Everything but what is asked once: it is older than a loss. */
  forget(): void {
    for (const question of this.#questions) if (question.pace !== 'once') this.#answers.delete(question);
  }

  /** In the order of the questions. */
  #all(): readonly Answer[] {
    return this.#questions.flatMap((each) => this.#answers.get(each) ?? []);
  }
}

/** Asking again would change nothing: it was answered, or there is nothing to tell. */
const isSettled = (answer: Answer | undefined): boolean => answer !== undefined && ['ok', 'absent'].includes(kindOf(answer.code));
