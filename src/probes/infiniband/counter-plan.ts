import type { Tree } from '../../host/fs/tree.ts';
import type { KeptGroup } from '../../host/kept-group.ts';
import { hours, type Millis, minutes } from '../../model/duration.ts';
import type { Labels, SeriesId, Value } from '../../model/metric.ts';
import { Readings } from '../../model/readings.ts';
import { Changes, type CounterPass, isSaturated, metricValue, type Slot } from './counter-pass.ts';
import { type CounterPlaces, makeSlots } from './counter-slots.ts';
import { type Count, parseCountBytes } from './parse.ts';

/** Some failing reads cost a firmware command and a line in the kernel log each; such files are left alone for so long. */
const RETRY_MS: Millis = hours(1);
/** One that had a value before fails with the same error while the firmware is busy: it is tried again so soon, and then ever more seldom. */
const FIRST_RETRY_MS: Millis = minutes(1);

/** Errors that say "never" rather than "not now". */
const LASTING_ERRORS: ReadonlySet<string> = new Set(['EINVAL', 'EOPNOTSUPP', 'ENOTSUP']);

/**
 * The counter files of one port or device, found once and then read again and again. Files that feed no metric are never
 * opened. Lives as long as its device; a new device of the same name gets a new plan.
 */
export class CounterPlan {
  readonly #sys: Tree;
  readonly #files: KeptGroup;
  readonly #places: CounterPlaces;
  readonly #port: Labels;
  #slots: readonly Slot[] = [];
  /** Per slot: monotonic time before which the file is not tried again; 0 when it may be. */
  #retryAtMs = new Float64Array(0);
  /** Per slot how long the file is left alone when it fails for good. */
  #retryAfterMs = new Float64Array(0);
  /** Whether there is any such file. */
  #isAnyBarred = false;
  /** Per slot the number of its file. */
  #indexes = new Int32Array(0);
  /** Per slot its count, where that is a plain number; else NaN. Together, since all of it is looked at in each pass. */
  #numbers = new Float64Array(0);
  /** Per slot its count, where that is beyond 2^53. Else undefined: of a file without a value, or whose series another one feeds. */
  #large: (bigint | undefined)[] = [];
  /** Per slot its series; undefined when each has one of its own. */
  #series: Int32Array | undefined;
  /** Per series the slot that feeds it, -1 while none does: the first that ever had a value. Another file counts other things, or fewer bits of them. */
  #feeders = new Int32Array(0);
  /** Of each place the names in it. */
  #listed: readonly (readonly string[])[] = [];
  #latest: CounterPass | undefined;

  constructor(sys: Tree, files: KeptGroup, places: CounterPlaces, port: Labels) {
    this.#sys = sys;
    this.#files = files;
    this.#places = places;
    this.#port = port;
    this.relist();
  }

  /** Looks anew which files there are. What is known of files that stay is kept. */
  relist(): void {
    const found = this.#places.map(([set, directory]) => [set, directory, this.#sys.list(directory)] as const);
    if (found.every(([, , names], at) => areEqual(names, this.#listed[at]))) return;
    this.#listed = found.map(([, , names]) => names);
    const isFeeder = ({ series }: Slot, at: number): boolean => this.#feeders[series] === at || this.#countOf(at) !== undefined;
    const known = new Map(this.#slots.map((slot, at) => [slot.file.path, { file: slot.file, at, isFeeder: isFeeder(slot, at) }]));
    const knownOf = (times: Float64Array, path: string): number | undefined => times[known.get(path)?.at ?? -1];
    this.#slots = makeSlots(found, this.#port, (path) => known.get(path)?.file ?? this.#files.file(path));
    this.#retryAtMs = Float64Array.from(this.#slots, ({ file }) => knownOf(this.#retryAtMs, file.path) ?? 0);
    this.#retryAfterMs = Float64Array.from(this.#slots, ({ file }) => knownOf(this.#retryAfterMs, file.path) ?? RETRY_MS);
    this.#numbers = new Float64Array(this.#slots.length).fill(Number.NaN);
    this.#large = this.#slots.map(() => undefined);
    this.#isAnyBarred = this.#retryAtMs.some((ms) => ms > 0);
    this.#indexes = Int32Array.from(this.#slots, ({ file }) => file.index);
    const series = Int32Array.from(this.#slots, (slot) => slot.series);
    this.#series = new Set(series).size === series.length ? undefined : series;
    this.#feeders = new Int32Array(this.#slots.length).fill(-1);
    for (const [at, slot] of this.#slots.entries()) if (known.get(slot.file.path)?.isFeeder === true) this.#feeders[slot.series] = at;
    this.#latest = undefined;
    for (const { file } of this.#slots) known.delete(file.path);
    for (const { file } of known.values()) this.#files.forget(file);
  }

  /** Lets all files be tried again, after an event that may have brought them back. */
  forgive(): void {
    this.#retryAtMs.fill(0);
    this.#isAnyBarred = false;
  }

  read(nowMs: number): CounterPass {
    const changes = new Changes(this.#latest);
    const numbers = this.#numbers;
    for (let at = 0; at < numbers.length; at += 1) {
      const count = this.#series === undefined ? this.#countAt(at, nowMs) : this.#countOfSeries(this.#series[at] as number, at, nowMs);
      if (count === numbers[at]) continue;
      const before = this.#countOf(at);
      if (count === before) continue;
      changes.add(this.#slots[at] as Slot, before, count);
      numbers[at] = typeof count === 'number' ? count : Number.NaN;
      this.#large[at] = typeof count === 'bigint' ? count : undefined;
    }
    this.#latest = changes.patched(() => this.#judgedCounts()) ?? this.#summed(this.#latest, changes.areJudged);
    return this.#latest;
  }

  /** The pass as the slots now have it. */
  #summed(before: CounterPass | undefined, judgedChanged: boolean): CounterPass {
    const series: SeriesId[] = [];
    const values: Value[] = [];
    const saturated: string[] = [];
    let unreadable = 0;
    let classicFiles = 0;
    let classicUnreadable = 0;
    for (const [at, slot] of this.#slots.entries()) {
      slot.place = -1;
      const feeder = this.#feeders[slot.series] as number;
      if (feeder !== -1 && feeder < at) continue;
      const count = this.#countOf(at);
      const isClassic = slot.row.set === 'counters';
      if (isClassic) classicFiles += 1;
      if (count === undefined) {
        unreadable += 1;
        if (isClassic) classicUnreadable += 1;
        continue;
      }
      this.#retryAfterMs[at] = FIRST_RETRY_MS;
      if (isSaturated(slot.row, count)) saturated.push(slot.row.file);
      slot.place = values.push(metricValue(slot.row, count)) - 1;
      series.push(slot.id);
    }
    return {
      readings: new Readings(series, values),
      raw: before === undefined || judgedChanged ? this.#judgedCounts() : before.raw,
      saturated: before !== undefined && areEqual(before.saturated, saturated) ? before.saturated : saturated,
      unreadable,
      files: this.#slots.length,
      classicFiles,
      classicUnreadable,
    };
  }

  #judgedCounts(): ReadonlyMap<string, Count> {
    const raw = new Map<string, Count>();
    for (const [at, { isJudged, row }] of this.#slots.entries()) {
      const count = isJudged ? this.#countOf(at) : undefined;
      if (count !== undefined) raw.set(row.file, count);
    }
    return raw;
  }

  /** What the last look gave. */
  #countOf(at: number): Count | undefined {
    const number = this.#numbers[at] as number;
    return Number.isNaN(number) ? this.#large[at] : number;
  }

  #countOfSeries(series: number, at: number, nowMs: number): Count | undefined {
    const feeder = this.#feeders[series] as number;
    if (feeder !== -1 && feeder !== at) return undefined;
    const count = this.#countAt(at, nowMs);
    if (count !== undefined) this.#feeders[series] = at;
    return count;
  }

  #countAt(at: number, nowMs: number): Count | undefined {
    if (this.#isAnyBarred && (this.#retryAtMs[at] as number) > nowMs) return undefined;
    const files = this.#files;
    let length = files.readAt(this.#indexes[at] as number);
    if (length < 0) length = files.read((this.#slots[at] as Slot).file);
    if (length < 0) {
      if (LASTING_ERRORS.has(files.error)) this.#bar(at, nowMs);
      return undefined;
    }
    const count = parseCountBytes(files.bytes, length);
    if (typeof count !== 'string') return count;
    if (count === 'not-available') this.#bar(at, nowMs);
    return undefined;
  }

  #bar(at: number, nowMs: number): void {
    const afterMs = this.#retryAfterMs[at] as number;
    this.#retryAtMs[at] = nowMs + afterMs;
    this.#retryAfterMs[at] = Math.min(2 * afterMs, RETRY_MS);
    this.#isAnyBarred = true;
  }
}

function areEqual(a: readonly string[], b: readonly string[] | undefined): boolean {
  return a.length === b?.length && a.every((name, index) => name === b[index]);
}
