import type { Tree } from '../../host/tree.ts';
import { hours, type Millis } from '../../model/duration.ts';
import type { Labels, Reading } from '../../model/metric.ts';
import { type CounterRow, type CounterSet, counterRows } from './counters.ts';
import { type Count, parseCount, scaleCount } from './parse.ts';

/** One file to read, with all that its reading needs made beforehand. */
interface Slot {
  readonly row: CounterRow;
  readonly path: string;
  readonly labels: Labels;
  /** Series that this file feeds; another file of the same series is read only when this one has no value. */
  readonly series: number;
  /** Monotonic time before which the file is not tried again; 0 when it may be. */
  retryAtMs: number;
}

/** What one pass over the files of a port (or of the device itself) gave. */
export interface CounterPass {
  readonly readings: readonly Reading[];
  /** Raw values by file name, for judging. Only `counters/` and `hw_counters/`. */
  readonly raw: ReadonlyMap<string, Count>;
  /** Names of files whose counter stands at its ceiling. */
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

/**
 * The counter files of one port or device, found once and then read again and again. Files that feed no metric are never
 * opened. Lives as long as its device; a new device of the same name gets a new plan.
 */
export class CounterPlan {
  readonly #sys: Tree;
  readonly #places: CounterPlaces;
  readonly #port: Labels;
  #slots: readonly Slot[] = [];
  #listed = '';

  constructor(sys: Tree, places: CounterPlaces, port: Labels) {
    this.#sys = sys;
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
    const known = new Map(this.#slots.map((slot) => [slot.path, slot.retryAtMs]));
    this.#slots = makeSlots(found, this.#port, known);
  }

  /** Lets all files be tried again, after an event that may have brought them back. */
  forgive(): void {
    for (const slot of this.#slots) slot.retryAtMs = 0;
  }

  read(nowMs: number): CounterPass {
    const readings: Reading[] = [];
    const raw = new Map<string, Count>();
    const saturated: string[] = [];
    const done = new Set<number>();
    let unreadable = 0;
    let classicFiles = 0;
    let classicUnreadable = 0;
    for (const slot of this.#slots) {
      const { row } = slot;
      if (done.has(slot.series)) continue;
      if (row.set === 'counters') classicFiles += 1;
      const count = this.#readSlot(slot, nowMs);
      if (count === undefined) {
        unreadable += 1;
        if (row.set === 'counters') classicUnreadable += 1;
        continue;
      }
      done.add(slot.series);
      raw.set(row.file, count);
      if (row.ceilings?.includes(count) === true) saturated.push(row.file);
      readings.push({ metric: row.metric.name, labels: slot.labels, value: metricValue(row, count) });
    }
    return { readings, raw, saturated, unreadable, files: this.#slots.length, classicFiles, classicUnreadable };
  }

  #readSlot(slot: Slot, nowMs: number): Count | undefined {
    if (slot.retryAtMs > nowMs) return undefined;
    const { text, error } = this.#sys.read(slot.path);
    if (error !== undefined) {
      if (LASTING_ERRORS.has(error)) slot.retryAtMs = nowMs + RETRY_MS;
      return undefined;
    }
    const count = parseCount(text);
    if (typeof count !== 'string') return count;
    if (count === 'not-available') slot.retryAtMs = nowMs + RETRY_MS;
    return undefined;
  }
}

function metricValue(row: CounterRow, count: Count): Count {
  if (row.divisor !== undefined) return Number(count) / row.divisor;
  return scaleCount(count, row.scale ?? 1);
}

function makeSlots(
  found: readonly (readonly [CounterSet, string, readonly string[]])[],
  port: Labels,
  known: ReadonlyMap<string, number>,
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
      slots.push({
        order,
        slot: { row, path, labels, series: number, retryAtMs: known.get(path) ?? 0 },
      });
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
