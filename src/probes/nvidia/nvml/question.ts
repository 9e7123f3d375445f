import type { StepGuard } from '../../../host/fs/step-guard.ts';
import type { GpuIdentity, GpuSample, Part, Place, Unread } from '../sample.ts';
import { VALUES, type ValueKey, type Values } from '../values.ts';
import { CODE, FIELD, failureOf, kindOf, unreadFor } from './header.ts';
import type { Handle, Library, Memory } from './library.ts';

/**
 * Interval of a question: each read; ten seconds, for a call that takes more than half a millisecond of CPU (`costly`); half a minute (`slow`),
 * five minutes (`facts`), or five minutes until it is answered (`once`).
 */
export type Interval = 'read' | 'costly' | 'slow' | 'facts' | 'once';

/** What a call needs to know. */
export interface Device {
  readonly library: Library;
  readonly handle: Handle;
}

/** Calls that read values of a GPU or an instance. */
export interface Question {
  /** Name of the newest function, which identifies the running call. */
  readonly symbol: string;
  readonly interval: Interval;
  /** When it returns true, the question is skipped, because earlier answers have a better value. */
  readonly unless?: ((answers: Answers) => boolean) | undefined;
  ask(device: Device): Answer;
}

export interface Answer {
  /** Return code. If each value has its own code, this is the first code that is a failure. */
  readonly code: number;
  readonly sample: GpuSample;
}

/** Returns true when the GPU is lost or the code concerns the whole node. Further calls are useless then, and may block on a lost GPU. */
export const endsRound = (code: number): boolean => code === CODE.gpuIsLost || kindOf(code) === 'node';

/** Returns the places of values; values that `nvidia-smi` does not print have none. */
export const placesOf = (keys: readonly ValueKey[]): readonly Place[] =>
  keys.flatMap((value) => VALUES[value].paths.slice(0, 1).map((name) => ({ value, name })));

/** Converts from the unit of the library to the unit of the value. */
type Convert = (raw: number) => number | boolean | undefined;
export const SAME: Convert = (raw) => raw;
export const PERCENT: Convert = (raw) => raw / 100;
export const MILLI: Convert = (raw) => raw / 1_000;
export const NANO: Convert = (raw) => raw / 1e9;
export const MEGA: Convert = (raw) => raw * 1e6;
export const FLAG: Convert = (raw) => raw !== 0;

/** Reads one value of an answer. */
type Read = (out: Memory) => ReturnType<Convert>;
export function at(offset: number, convert = SAME): Read {
  return (out) => convert(out.u32(offset));
}
export function int32At(offset: number): Read {
  return (out) => out.i32(offset);
}
export function longAt(offset: number): Read {
  return (out) => out.u64(offset);
}

/** One function of the driver and its arguments. */
interface NvmlCall {
  readonly symbol: string;
  /** Arguments between the handle and the answers. */
  readonly before?: readonly number[];
  /** Number of pointers for answers, eight bytes apart. Default 1. */
  readonly outs?: number;
  /** Arguments after the answers, such as the length of a text. */
  readonly after?: readonly number[];
  /** First word of a versioned struct, if the answer is one. */
  readonly version?: number;
}
export interface CallVariant extends NvmlCall {
  parse(out: Memory): GpuSample;
}
interface ValueVariant extends NvmlCall {
  readonly reads: { readonly [key in ValueKey]?: Read };
}

/** Question that reads values with the newest function of the driver. */
export function valueQuestion(interval: Interval, first: ValueVariant, ...older: readonly ValueVariant[]): Question {
  const variant = ({ reads, ...call }: ValueVariant): CallVariant => {
    const each = Object.entries(reads);
    return { ...call, parse: (out) => ({ values: Object.fromEntries(each.map(([key, read]) => [key, read(out)])) }) };
  };
  return question(interval, placesOf(Object.keys(first.reads) as ValueKey[]), variant(first), ...older.map(variant));
}

const OUT_STRIDE = 8;
/** Size of the largest answer. */
const ANSWER_BYTES = 1_024;

/** Question that uses the newest function of the driver. `places` holds what is unreadable when it fails. */
export function question(interval: Interval, places: readonly Place[], first: CallVariant, ...older: readonly CallVariant[]): Question {
  const variants = [first, ...older].map((variant) => ({ ...variant, letters: lettersOf(variant) }));
  const ask = (device: Device): Answer => {
    let code: number = CODE.functionNotFound;
    for (const variant of variants) {
      code = call(device, variant);
      if (code === CODE.success) return { code, sample: variant.parse(device.library.scratch) };
      // The struct is newer than the driver, or the function is missing: the next older function is tried.
      if (code !== CODE.versionMismatch && code !== CODE.functionNotFound) break;
    }
    return { code, sample: { unread: unreadFor(code, places) } };
  };
  return { symbol: first.symbol, interval, ask };
}

const lettersOf = ({ before = [], outs = 1, after = [] }: CallVariant): string =>
  `h${'i'.repeat(before.length)}${'p'.repeat(outs)}${'u'.repeat(after.length)}`;

function call({ library, handle }: Device, variant: CallVariant & { readonly letters: string }): number {
  const { symbol, before = NO_NUMBERS, outs = 1, after = NO_NUMBERS, version, letters } = variant;
  const { scratch } = library;
  // A library of another version may not write all bytes, so bytes of an earlier call are cleared.
  scratch.clear(ANSWER_BYTES);
  if (version !== undefined) scratch.setU32(0, version);
  if (outs === 1) return library.call(symbol, letters, handle, ...before, scratch.address, ...after);
  const pointers = Array.from({ length: outs }, (_, index) => scratch.address + index * OUT_STRIDE);
  return library.call(symbol, letters, handle, ...before, ...pointers, ...after);
}

const NO_NUMBERS: readonly number[] = [];

/** Bytes of the largest number that a call answers. */
const NUMBER_BYTES = 8;

/** Calls a function that writes one number at the start of the scratch memory, where bytes of an earlier call are cleared. */
export function callForNumber({ library, handle }: Device, symbol: string, types: string, ...values: Handle[]): number {
  library.scratch.clear(NUMBER_BYTES);
  return library.call(symbol, `h${types}p`, handle, ...values, library.scratch.address);
}

/** One value of `nvmlDeviceGetFieldValues`. Source of the ids: nvml.h 13.3. */
export interface Field {
  readonly id: number;
  readonly scope?: number;
  readonly places: readonly Place[];
  /** The value is used only if the driver counts in 64 bits: a smaller counter overflows several times between two reads. */
  readonly isWide?: true;
  parse(value: number): GpuSample;
}

export const field = (id: number, key: ValueKey, convert: Convert = SAME, more: Pick<Field, 'scope' | 'isWide'> = {}): Field => ({
  id,
  places: placesOf([key]),
  ...more,
  parse: (value) => ({ values: { [key]: convert(value) } }),
});

const FIELD_VALUES = 'nvmlDeviceGetFieldValues';

/** Question that reads several fields with one call. */
export function fieldQuestion(interval: Interval, fields: readonly Field[]): Question {
  const all = fields.flatMap(({ places }) => places);
  const ask = (device: Device): Answer => {
    const values = fieldValues(device, fields);
    if (typeof values === 'number') return { code: values, sample: { unread: unreadFor(values, all) } };
    const samples = fields.map(({ parse, places, isWide }, at): GpuSample => {
      const { code, value, isLong } = values[at] as FieldValue;
      if (code !== CODE.success) return { unread: unreadFor(code, places) };
      return value === undefined || (isWide === true && !isLong) ? {} : parse(value);
    });
    const failed = values.find(({ code }) => failureOf(code) !== undefined);
    return { code: failed?.code ?? CODE.success, sample: joined(samples) };
  };
  return { symbol: FIELD_VALUES, interval, ask };
}

interface FieldValue {
  readonly code: number;
  readonly value: number | undefined;
  /** True when the value has 64 bits. */
  readonly isLong: boolean;
}

/** Returns the values; or the code, when the whole call failed. */
export function fieldValues({ library, handle }: Device, fields: readonly Pick<Field, 'id' | 'scope'>[]): readonly FieldValue[] | number {
  const { scratch } = library;
  scratch.clear(fields.length * FIELD.size);
  for (const [index, { id, scope = 0 }] of fields.entries()) {
    scratch.setU32(index * FIELD.size + FIELD.id, id);
    scratch.setU32(index * FIELD.size + FIELD.scope, scope);
  }
  const code = library.call(FIELD_VALUES, 'hip', handle, fields.length, scratch.address);
  return code === CODE.success ? fields.map((_, index) => fieldValue(scratch, index * FIELD.size)) : code;
}

/** Functions that read a value, indexed by `nvmlValueType_t`. Unsigned long has eight bytes on Linux. */
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

/** A GPU, or an instance of one, as the library knows it. It records which call is running, so that a call that hangs can be identified. */
export class TrackedDevice implements Device {
  readonly library: Library;
  readonly handle: Handle;
  readonly guard: StepGuard | undefined;
  /** Path of the GPU in the guard. */
  readonly place: string;

  constructor(library: Library, handle: Handle, guard: StepGuard | undefined, place: string) {
    this.library = library;
    this.handle = handle;
    this.guard = guard;
    this.place = place;
  }

  instance(handle: Handle): TrackedDevice {
    return new TrackedDevice(this.library, handle, this.guard, this.place);
  }

  /** `name` is the name of the call, or of the first of several calls. */
  during<T>(name: string, call: () => T): T {
    this.guard?.enter(`${this.place}/${name}`, 'call');
    const result = call();
    this.guard?.leave();
    return result;
  }
}

type Dated = Answer & { readonly atMs: number; readonly parts: readonly Part[] };

/** The latest answers of one device to a list of questions. */
export class Answers {
  readonly #questions: readonly Question[];
  readonly #device: TrackedDevice;
  /** In the order of the questions. */
  readonly #answers: (Dated | undefined)[];
  /** All answers together; undefined after a new one. */
  #joined: GpuSample | undefined;

  constructor(questions: readonly Question[], device: TrackedDevice) {
    this.#questions = questions;
    this.#device = device;
    this.#answers = questions.map(() => undefined);
  }

  /** Asks the questions with these intervals in their order. `atMs`: monotonic clock. Returns the code that ended the round, if one did. */
  ask(atMs: number, ...intervals: readonly [Interval, Interval?]): number | undefined {
    const device = this.#device;
    for (let at = 0; at < this.#questions.length; at += 1) {
      const question = this.#questions[at] as Question;
      const { interval } = question;
      if (interval !== intervals[0] && interval !== intervals[1]) continue;
      if (interval === 'once' && isSettled(this.#answers[at])) continue;
      this.#set(at, undefined);
      if (question.unless?.(this) === true) continue;
      const answer = device.during(question.symbol, () => question.ask(device));
      this.#set(at, { ...answer, atMs, parts: partsOf(answer.sample) });
      if (endsRound(answer.code)) return answer.code;
    }
    return undefined;
  }

  sample(): GpuSample {
    this.#joined ??= joined(this.#answers.flatMap((answer) => answer?.sample ?? []));
    return this.#joined;
  }

  value<K extends ValueKey>(key: K): Values[K] {
    return this.told('values', key);
  }

  /** One field of {@link sample}, without making it. */
  told<K extends keyof GpuIdentity>(part: 'identity', key: K): GpuIdentity[K];
  told<K extends ValueKey>(part: 'values', key: K): Values[K];
  told(part: 'identity' | 'values', key: string): unknown {
    for (let at = this.#answers.length - 1; at >= 0; at -= 1) {
      const fields: object | undefined = this.#answers[at]?.sample[part];
      if (fields !== undefined && key in fields) return fields[key as keyof typeof fields];
    }
    return undefined;
  }

  /** Times of the parts that the read at `nowMs` kept. */
  times(nowMs: number): Map<Part, number> {
    const times = new Map<Part, number>();
    for (const answer of this.#answers)
      if (answer !== undefined && answer.atMs !== nowMs) for (const part of answer.parts) times.set(part, answer.atMs);
    return times;
  }

  codes(): readonly number[] {
    return this.#answers.flatMap((answer) => answer?.code ?? []);
  }

  /** Drops all answers from before a loss, except those that are asked once. */
  forget(): void {
    for (const [at, { interval }] of this.#questions.entries()) if (interval !== 'once') this.#set(at, undefined);
  }

  #set(at: number, answer: Dated | undefined): void {
    this.#joined = undefined;
    this.#answers[at] = answer;
  }
}

function partsOf({ values = {}, ecc = {}, fabric = {}, recovery }: GpuSample): readonly Part[] {
  const parts = [...Object.keys(values), ...Object.keys(ecc)] as Part[];
  if (Object.keys(fabric).length > 0) parts.push('fabric');
  if (recovery !== undefined) parts.push('recovery');
  return parts;
}

/** Returns true when there is no need to ask again: the question was answered, or the value does not exist. */
const isSettled = (answer: Answer | undefined): boolean => answer !== undefined && ['ok', 'absent'].includes(kindOf(answer.code));

/** Merges the samples of several answers. The last one that has a value counts. */
function joined(parts: readonly GpuSample[]): GpuSample {
  const [identity, values, ecc, fabric, unread] = [{}, {}, {}, {}, [] as Unread[]];
  for (const part of parts) {
    if (part.values !== undefined) Object.assign(values, part.values);
    if (part.identity !== undefined) Object.assign(identity, part.identity);
    if (part.ecc !== undefined) Object.assign(ecc, part.ecc);
    if (part.fabric !== undefined) Object.assign(fabric, part.fabric);
    if (part.unread !== undefined) unread.push(...part.unread);
  }
  const isInforomSound = parts.some((part) => part.isInforomSound === true);
  const recovery = parts.find((part) => part.recovery !== undefined)?.recovery;
  return { identity, values, ecc, fabric, recovery, isInforomSound, unread };
}
