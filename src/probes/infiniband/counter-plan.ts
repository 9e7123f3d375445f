import type { KeptFile, KeptGroup } from '../../host/kept-files.ts';
import type { Tree } from '../../host/tree.ts';
import { hours, type Millis } from '../../model/duration.ts';
import type { Labels, Reading } from '../../model/metric.ts';
import { type CounterRow, type CounterSet, counterRows, JUDGED_FILES } from './counters.ts';
import { type Count, parseCountBytes, scaleCount } from './parse.ts';

/** One file to read, with all that its reading needs made beforehand. */
interface Slot {
  readonly row: CounterRow;
  readonly file: KeptFile;
  readonly labels: Labels;
  /** Series that this file feeds; another file of the same series is read only when this one has no value. */
  readonly series: number;
  /** Monotonic time before which the file is not tried again; 0 when it may be. */
  retryAtMs: number;
  readonly isJudged: boolean;
  /** What the last look gave; undefined when it gave no value, or another file of the series was preferred. */
  count: Count | undefined;
  /** Of that count; the same object until it changes. */
  reading: Reading | undefined;
}

/** What one pass over the files of a port (or of the device itself) gave. A pass that found nothing new is the one before. */
export interface CounterPass {
  readonly readings: readonly Reading[];
  /** Raw values of the files that are judged; the same object until one of them changes. */
  readonly raw: ReadonlyMap<string, Count>;
  /** Names of files whose counter stands at its ceiling; the same object until that changes. */
  readonly saturated: readonly string[];
  /** Files that exist and gave no value. */
  readonly unreadable: number;
  /** Files that exist and are exported. */
  readonly files: number;
  /** Of them in `counters/`. */
  readonly classicFiles: number;
  readonly classicUnreadable: number;
}

export const NOTHING_READ: CounterPass = {
  readings: [],
  raw: new Map(),
  saturated: [],
  unreadable: 0,
  files: 0,
  classicFiles: 0,
  classicUnreadable: 0,
};

/** Some failing reads cost a firmware command and a line in the kernel log each; such files are left alone for so long. */
const RETRY_MS: Millis = hours(1);

/** Errors that say "never" rather than "not now". */
const LASTING_ERRORS: ReadonlySet<string> = new Set(['EINVAL', 'ENOENT', 'EOPNOTSUPP', 'ENOTSUP']);

const rowsBySet: ReadonlyMap<CounterSet, ReadonlyMap<string, readonly [CounterRow, number]>> = new Map(
  (['counters', 'counters_ext', 'hw_counters', 'device'] as const).map((set) => [
    set,
    new Map(counterRows.flatMap((row, order) => (row.set === set ? [[row.file, [row, order] as const] as const] : []))),
  ]),
);

/** Where the counters of one port, or of a device, lie: set to directory. */
export type CounterPlaces = readonly (readonly [CounterSet, string])[];

export function portPlaces(portDirectory: string, withHardware: boolean): CounterPlaces {
  const classic = [
    ['counters_ext', `${portDirectory}/counters_ext`],
    ['counters', `${portDirectory}/counters`],
  ] as const;
  return withHardware ? [['hw_counters', `${portDirectory}/hw_counters`], ...classic] : classic;
}

const judgedFiles: ReadonlySet<string> = new Set(JUDGED_FILES);

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
  /** Per series: 1 once it has a value in this pass. */
  #served = new Uint8Array(0);
  #listed = '';
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
    const listed = found.map(([, directory, names]) => `${directory}\n${names.join('\n')}`).join('\n\n');
    if (listed === this.#listed) return;
    this.#listed = listed;
    const known = new Map(this.#slots.map((slot) => [slot.file.path, slot]));
    this.#slots = makeSlots(found, this.#port, known, (path) => this.#files.file(path));
    this.#served = new Uint8Array(this.#slots.length);
    this.#latest = undefined;
    for (const { file } of this.#slots) known.delete(file.path);
    for (const { file } of known.values()) this.#files.forget(file);
  }

  /** Lets all files be tried again, after an event that may have brought them back. */
  forgive(): void {
    for (const slot of this.#slots) slot.retryAtMs = 0;
  }

  read(nowMs: number): CounterPass {
    let changed = false;
    let judgedChanged = false;
    const served = this.#served.fill(0);
    for (const slot of this.#slots) {
      const count = served[slot.series] === 1 ? undefined : this.#readSlot(slot, nowMs);
      if (count !== undefined) served[slot.series] = 1;
      if (count === slot.count) continue;
      changed = true;
      judgedChanged ||= slot.isJudged;
      slot.count = count;
      slot.reading =
        count === undefined ? undefined : { metric: slot.row.metric.name, labels: slot.labels, value: metricValue(slot.row, count) };
    }
    if (changed || this.#latest === undefined) this.#latest = this.#summed(this.#latest, judgedChanged);
    return this.#latest;
  }

  /** The pass as the slots now have it. */
  #summed(before: CounterPass | undefined, judgedChanged: boolean): CounterPass {
    const readings: Reading[] = [];
    const saturated: string[] = [];
    const served = this.#served.fill(0);
    let unreadable = 0;
    let classicFiles = 0;
    let classicUnreadable = 0;
    for (const { row, series, count, reading } of this.#slots) {
      if (served[series] === 1) continue;
      const isClassic = row.set === 'counters';
      if (isClassic) classicFiles += 1;
      if (count === undefined || reading === undefined) {
        unreadable += 1;
        if (isClassic) classicUnreadable += 1;
        continue;
      }
      served[series] = 1;
      if (row.ceilings?.includes(count) === true) saturated.push(row.file);
      readings.push(reading);
    }
    return {
      readings,
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
    for (const { isJudged, row, count } of this.#slots) if (isJudged && count !== undefined) raw.set(row.file, count);
    return raw;
  }

  #readSlot(slot: Slot, nowMs: number): Count | undefined {
    if (slot.retryAtMs > nowMs) return undefined;
    const length = this.#files.read(slot.file);
    if (length < 0) {
      if (LASTING_ERRORS.has(this.#files.error)) slot.retryAtMs = nowMs + RETRY_MS;
      return undefined;
    }
    const count = parseCountBytes(this.#files.bytes, length);
    if (typeof count !== 'string') return count;
    if (count === 'not-available') slot.retryAtMs = nowMs + RETRY_MS;
    return undefined;
  }
}

function areEqual(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((name, index) => name === b[index]);
}

function metricValue(row: CounterRow, count: Count): Count {
  if (row.divisor !== undefined) return Number(count) / row.divisor;
  return scaleCount(count, row.scale ?? 1);
}

function makeSlots(
  found: readonly (readonly [CounterSet, string, readonly string[]])[],
  port: Labels,
  known: ReadonlyMap<string, Slot>,
  fileOf: (path: string) => KeptFile,
): readonly Slot[] {
  const series = new Map<string, number>();
  const slots: { order: number; slot: Slot }[] = [];
  for (const [set, directory, names] of found) {
    for (const name of names) {
      const entry = rowsBySet.get(set)?.get(name);
      if (entry === undefined) continue;
      const [row, order] = entry;
      const labels = { ...port, ...row.labels };
      const key = `${row.metric.name} ${JSON.stringify(labels)}`;
      const number = series.get(key) ?? series.size;
      series.set(key, number);
      const path = `${directory}/${name}`;
      const before = known.get(path);
      const { file = fileOf(path), retryAtMs = 0 } = before ?? {};
      const isJudged = judgedFiles.has(row.file);
      slots.push({ order, slot: { row, file, labels, series: number, retryAtMs, isJudged, count: undefined, reading: undefined } });
    }
  }
  return slots.sort((a, b) => cost(a) - cost(b) || a.order - b.order).map(({ slot }) => slot);
}

/**
 * One firmware query serves all hardware counters for the milliseconds of `lifespan`, so they are read in one go; each of the
 * others is a query of its own.
 */
function cost({ slot }: { readonly slot: Slot }): number {
  return slot.row.set === 'hw_counters' || slot.row.set === 'device' ? 0 : 1;
}
