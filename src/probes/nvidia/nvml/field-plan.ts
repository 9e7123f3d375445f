import { CHANGE, changeAt } from './changes.ts';
import { CODE, printedFor } from './codes.ts';
import type { DriverVersion } from './driver-version.ts';
import type { Question } from './getter.ts';
import { FIELD } from './layouts.ts';
import type { Library, NvmlFunction } from './library.ts';
import type { Memory } from './memory.ts';
import { type Form, NOT_ASKED, type Sheet, type Values } from './sheet.ts';
import { RECOVERY_WORDS } from './words.ts';

/** One value of `nvmlDeviceGetFieldValues`. */
export interface FieldEntry {
  readonly id: number;
  readonly scope?: number;
  readonly path: string;
  /** From the library's unit to the base unit. */
  readonly per?: number;
  /** A number that is none of these is told as unknown, so that it does not pass for nothing. */
  readonly words?: Readonly<Record<number, string>>;
  /** Told only where the driver counts in 64 bits: the smaller one runs over several times between two reads. */
  readonly isWide?: true;
}

const [MODULE, MEMORY] = [1, 2];
const NANOSECONDS = 1e9;
const COUNTERS = 'clocks_event_reasons_counters/clocks_event_reasons_counters';

/** Errors in all memories together since the driver was loaded: while they stay, the counters of each memory need not be asked for. */
export const ECC_TOTALS = ['nvml/ecc/corrected', 'nvml/ecc/uncorrected'] as const;

/** Read at each refresh, in one call. Ids: nvml.h 13.3. */
export const fastFields: readonly FieldEntry[] = [
  { id: 82, path: 'temperature/memory_temp' },
  { id: 83, path: 'nvml/energy', per: 1_000 },
  { id: 186, path: 'gpu_power_readings/instant_power_draw', per: 1_000 },
  { id: 185, path: 'gpu_power_readings/average_power_draw', per: 1_000 },
  { id: 186, scope: MODULE, path: 'module_power_readings/instant_power_draw', per: 1_000 },
  { id: 186, scope: MEMORY, path: 'gpu_memory_power_readings/instant_power_draw', per: 1_000 },
  { id: 95, path: 'pci/replay_rollover_counter' },
  { id: 74, path: `${COUNTERS}_sw_power_cap`, per: NANOSECONDS },
  { id: 76, path: `${COUNTERS}_sync_boost`, per: NANOSECONDS },
  { id: 77, path: 'nvml/throttled/board_limit', per: NANOSECONDS },
  { id: 78, path: 'nvml/throttled/low_utilization', per: NANOSECONDS },
  { id: 79, path: 'nvml/throttled/reliability', per: NANOSECONDS },
  { id: 230, path: 'gpu_recovery_action', words: RECOVERY_WORDS },
  { id: 197, path: 'nvml/pcie/transmitted', isWide: true },
  { id: 198, path: 'nvml/pcie/received', isWide: true },
  { id: 3, path: ECC_TOTALS[0] },
  { id: 4, path: ECC_TOTALS[1] },
];

/**
 * Time with clocks lowered for heat and by the power supply. Their ids were given anew within the branch 580, where 251 to 253 became
 * settings of power smoothing; before them, the policy counter of heat stood for the first. Source: the bindings for Python, which
 * come with 575.51, 580.65 and 580.82.
 */
export function throttleFields({ branch, build }: DriverVersion): readonly FieldEntry[] {
  const isRenumbered = branch > 580 || (branch === 580 && build >= 82);
  const first = isRenumbered ? 269 : branch >= 575 ? 251 : undefined;
  if (first === undefined) return [{ id: 75, path: `${COUNTERS}_sw_therm_slowdown`, per: NANOSECONDS }];
  return ['sw_therm_slowdown', 'hw_therm_slowdown', 'hw_power_brake'].map((reason, index) => ({
    id: first + index,
    path: `${COUNTERS}_${reason}`,
    per: NANOSECONDS,
  }));
}

/** Pages, which boards up to Turing retire. */
export const slowFields: readonly FieldEntry[] = [
  { id: 29, path: 'retired_pages/multiple_single_bit_retirement/retired_count' },
  { id: 30, path: 'retired_pages/double_bit_retirement/retired_count' },
  { id: 31, path: 'retired_pages/pending_retirement' },
];

/** Limits as degrees left, which later boards give in the place of degrees. */
export const factFields: readonly FieldEntry[] = [
  { id: 193, path: 'temperature/gpu_temp_max_tlimit_threshold' },
  { id: 194, path: 'temperature/gpu_temp_slow_tlimit_threshold' },
  { id: 195, path: 'temperature/gpu_temp_max_mem_tlimit_threshold' },
  { id: 196, path: 'temperature/gpu_temp_max_gpu_tlimit_threshold' },
];

/** `nvmlValueType_t`: unsigned long and unsigned long long, of eight bytes on Linux. */
const WIDE: ReadonlySet<number> = new Set([2, 3]);

/** Words of one entry that are compared: code and type, and the value. */
const [TYPE, CODE_WORD, LOW, HIGH] = [FIELD.type / 4, FIELD.code / 4, FIELD.value / 4, FIELD.value / 4 + 1];
const STRIDE = FIELD.size / 4;
const SEEN_STRIDE = 4;

/** Reads a fixed list of fields with one call. */
export class FieldPlan implements Question {
  readonly name = 'nvmlDeviceGetFieldValues';
  readonly index: number;
  readonly word: number;
  readonly path: number;
  readonly paths: readonly string[];
  readonly unless = undefined;
  readonly hasOwnCodes = true;
  readonly #entries: readonly FieldEntry[];
  readonly #changes: readonly number[];
  readonly #memory: Memory;
  readonly #call: NvmlFunction | undefined;

  /** `entries`: at least one. */
  constructor(library: Library, entries: readonly FieldEntry[], form: Form) {
    this.#entries = entries;
    this.paths = entries.map(({ path }) => path);
    this.#changes = this.paths.map(changeAt);
    const { index, word, path } = form.add(this.paths, entries.length * SEEN_STRIDE);
    [this.index, this.word, this.path] = [index, word, path];
    this.#memory = library.memory(entries.length * FIELD.size);
    this.#call = library.bind('nvmlDeviceGetFieldValues', 'hip');
    for (const [entry, { id, scope = 0 }] of entries.entries()) {
      this.#memory.setU32(entry * FIELD.size + FIELD.id, id);
      this.#memory.setU32(entry * FIELD.size + FIELD.scope, scope);
    }
  }

  /** The code of the call, or the first of one entry that is no mere absence; then also those that answered are told. */
  read(sheet: Sheet): number {
    const code = this.#call?.(sheet.handle, this.#entries.length, this.#memory.address) ?? CODE.functionNotFound;
    if (code !== CODE.success) {
      this.#refuse(sheet, code);
      return code;
    }
    const { words } = this.#memory;
    const before = sheet.words;
    const count = this.#entries.length;
    if (sheet.codes[this.index] === NOT_ASKED) before.fill(NOT_ASKED, this.word, this.word + count * SEEN_STRIDE);
    let worst: number = CODE.success;
    for (let index = 0, at = 0, known = this.word; index < count; index += 1, at += STRIDE, known += SEEN_STRIDE) {
      const told = words[at + CODE_WORD] as number;
      const isSameCode = told === before[known];
      if (told !== CODE.success) {
        if (told !== CODE.notSupported && worst === CODE.success && printedFor(told) !== undefined) worst = told;
        if (isSameCode) continue;
      }
      const [type, low, high] = [words[at + TYPE] as number, words[at + LOW] as number, words[at + HIGH] as number];
      const isSameKind = isSameCode && type === before[known + 1];
      if (isSameKind && low === before[known + 2] && high === before[known + 3]) continue;
      before[known] = told;
      before[known + 1] = type;
      before[known + 2] = low;
      before[known + 3] = high;
      this.#tell(sheet, index, told, isSameKind);
    }
    return worst;
  }

  #tell(sheet: Sheet, index: number, code: number, isSameKind: boolean): void {
    const entry = this.#entries[index] as FieldEntry;
    const at = index * FIELD.size;
    const isNarrow = entry.isWide === true && !WIDE.has(this.#memory.u32(at + FIELD.type));
    const value = isNarrow ? undefined : baseValue(entry, fieldNumber(this.#memory, at));
    sheet.values[entry.path] = code === CODE.success ? value : printedFor(code);
    sheet.move(this.path + index, 1, isSameKind ? (this.#changes[index] as number) : CHANGE.other);
  }

  /** The call as a whole, so no entry has a value. */
  #refuse(sheet: Sheet, code: number): void {
    const { index, word, path } = this;
    if (sheet.codes[index] === NOT_ASKED || sheet.words[word] !== NOT_ASKED) sheet.move(path, this.paths.length, CHANGE.other);
    sheet.words.fill(NOT_ASKED, word, word + this.#entries.length * SEEN_STRIDE);
    for (const { path: at } of this.#entries) sheet.values[at] = printedFor(code);
  }
}

function baseValue({ words, per = 1 }: FieldEntry, number: number | undefined): Values[string] {
  if (number === undefined) return undefined;
  return words === undefined ? number / per : (words[number] ?? `Unknown (${number})`);
}

/** By `nvmlValueType_t`. */
export function fieldNumber(memory: Memory, at: number): number | undefined {
  const value = at + FIELD.value;
  switch (memory.u32(at + FIELD.type)) {
    case 0:
      return memory.f64(value);
    case 1:
      return memory.u32(value);
    case 2:
    case 3:
      return memory.u64(value);
    case 4:
      return memory.i64(value);
    case 5:
      return memory.i32(value);
    case 6:
      return memory.u16(value);
    default:
      return undefined;
  }
}
