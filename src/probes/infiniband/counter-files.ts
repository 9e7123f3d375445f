import type { ReadResult, Tree } from '../../host/fs/tree.ts';
import type { Labels, Reading } from '../../model/metric.ts';
import type { Pace } from '../kit/pace.ts';
import { isLasting, newRetry, type Retry, wasAnswered, wasRefused } from '../kit/retry.ts';
import { type Count, type CounterRow, type CounterSet, type NoCount, parseCount, scaleCount } from './counters.ts';
import { allCounters } from './driver-counters.ts';

const ROWS = allCounters();
const KNOWN: ReadonlySet<string> = new Set(ROWS.map(({ set, file }) => `${set}/${file}`));
/** A setting of the kernel beside the counters of a driver. */
const LIFESPAN = 'lifespan';
const OF_DRIVERS: ReadonlySet<CounterSet> = new Set(['hw_counters', 'device']);

/** Result of one read of the counters of a port, or of the device itself. */
export interface Counters {
  readonly readings: readonly Reading[];
  /** Raw values at the latest read, keyed by file name. */
  readonly raw: Pick<ReadonlyMap<string, Count>, 'get'>;
  /** Names of the files whose counter has its largest value. */
  readonly saturated: readonly string[];
  /** Names of the files that hold all ones of 64 bits: what a read gives that the hardware did not answer. */
  readonly allOnes: readonly string[];
  /** Number of files that exist and gave no value. */
  readonly unreadable: number;
  /** Number of files that exist and feed a metric. */
  readonly files: number;
  /** How many of `files` are in `counters/`. */
  readonly classicFiles: number;
  readonly classicUnreadable: number;
  /** Names of the files of the driver that feed no metric. They are never opened. */
  readonly unused: readonly string[];
}

export const NO_COUNTERS: Counters = {
  readings: [],
  raw: new Map(),
  saturated: [],
  allOnes: [],
  unreadable: 0,
  files: 0,
  classicFiles: 0,
  classicUnreadable: 0,
  unused: [],
};

const NONE: readonly string[] = [];

interface CounterFile extends Retry {
  readonly row: CounterRow;
  readonly path: string;
  /** Of a counter that wraps with this driver. */
  readonly wrapsAt: number | undefined;
  /** What the file held at the last read, the count of it, and the reading of the count. */
  read?: ReadResult;
  count?: Count | NoCount | undefined;
  reading?: Reading;
  /** The count that {@link Counters.raw} has. */
  told?: Count | undefined;
}

/** One series and the files that can feed it, in order of preference. */
interface Series {
  readonly labels: Labels;
  readonly files: CounterFile[];
  /** The first file that had a value. The series never changes its file, because another file counts other events or has fewer bits. */
  source?: CounterFile | undefined;
}

/** Reads the counter files of one port or device. It never opens a file that feeds no metric. */
export class CounterFiles {
  readonly #sys: Tree;
  readonly #places: readonly (readonly [CounterSet, string])[];
  readonly #labels: Labels;
  readonly #driver: string | undefined;
  #series: readonly Series[] = [];
  /** One map for all reads: a map for each read is most of what a read would leave to the garbage collector. */
  readonly #raw = new Map<string, Count>();
  #unused: readonly string[] = [];
  /** No file of `counters/` had a value at the last read. Then one of them is tried for all, in turn: each refusal can cost a line in the kernel log. */
  #isRefused = false;
  #turn = 0;

  /** `places` maps each counter set to its directory. All series get `labels`. */
  constructor(sys: Tree, driver: string | undefined, places: readonly (readonly [CounterSet, string])[], labels: Labels = {}) {
    this.#sys = sys;
    this.#places = places;
    this.#labels = labels;
    this.#driver = driver;
  }

  /** Lists the files that exist. It keeps the state of files that it already knows. */
  list(): void {
    const files = new Map(this.#series.flatMap((series) => series.files.map((file) => [file.path, file] as const)));
    const sources = new Set(this.#series.map(({ source }) => source));
    const places = new Map(this.#places.map(([set, directory]) => [set, { directory, names: new Set(this.#sys.list(directory)) }]));
    const found = new Map<string, Series>();
    for (const row of ROWS) {
      const place = places.get(row.set);
      if (place === undefined || !place.names.has(row.file)) continue;
      const path = `${place.directory}/${row.file}`;
      const { wraps } = row;
      const wrapsAt = wraps !== undefined && wraps.driver === this.#driver ? Number(metricValue(row, wraps.at)) : undefined;
      const file = files.get(path) ?? { row, path, wrapsAt, ...newRetry() };
      const labels = { ...this.#labels, ...row.labels };
      const key = `${row.metric.name} ${JSON.stringify(labels)}`;
      const series = found.get(key) ?? { labels, files: [] };
      found.set(key, series);
      series.files.push(file);
      if (sources.has(file)) series.source = file;
    }
    this.#series = [...found.values()];
    this.#raw.clear();
    for (const { files: all } of this.#series) for (const file of all) file.told = undefined;
    this.#unused = [...places].flatMap(([set, { names }]) =>
      OF_DRIVERS.has(set) ? [...names].filter((name) => !KNOWN.has(`${set}/${name}`) && name !== LIFESPAN) : [],
    );
  }

  /** Ends all waits for a retry, for an event after which failed files may work again. */
  resetRetries(): void {
    for (const { files } of this.#series) for (const file of files) file.retryAtMs = 0;
    this.#isRefused = false;
  }

  read({ nowMs }: Pace): Counters {
    const readings: Reading[] = [];
    let [saturated, allOnes] = [NONE, NONE];
    let [files, unreadable, classicFiles, classicUnreadable] = [0, 0, 0, 0];
    if (this.#isRefused) this.#tryOne(nowMs);
    for (const series of this.#series) {
      files += series.files.length;
      for (const file of series.files) {
        const { row } = file;
        const count = series.source === undefined || series.source === file ? this.#read(file, nowMs) : undefined;
        const isClassic = row.set === 'counters';
        if (isClassic) classicFiles += 1;
        if (typeof count !== 'number' && typeof count !== 'bigint') {
          if (count === 'all-ones') allOnes = [...allOnes, row.file];
          unreadable += 1;
          this.#tell(file, undefined);
          if (isClassic) classicUnreadable += 1;
        } else {
          series.source = file;
          readings.push(readingOf(file, series.labels, count));
          this.#tell(file, count);
          if (row.ceilings?.includes(count) === true) saturated = [...saturated, row.file];
        }
        if (series.source === file) break;
      }
    }
    this.#isRefused = classicFiles > 0 && classicUnreadable === classicFiles;
    return { readings, raw: this.#raw, saturated, allOnes, unreadable, files, classicFiles, classicUnreadable, unused: this.#unused };
  }

  #tryOne(nowMs: number): void {
    const classic = this.#series.flatMap((series) => series.files.filter(({ row }) => row.set === 'counters'));
    const one = classic[this.#turn % classic.length];
    if (one === undefined || one.retryAtMs > nowMs) return;
    this.#turn += 1;
    const count = this.#read(one, nowMs);
    const isRead = count !== undefined && typeof count !== 'string';
    for (const file of classic) file.retryAtMs = isRead ? 0 : one.retryAtMs;
  }

  #tell(file: CounterFile, count: Count | undefined): void {
    if (count === file.told) return;
    if (count === undefined) this.#raw.delete(file.row.file);
    else this.#raw.set(file.row.file, count);
    file.told = count;
  }

  #read(file: CounterFile, nowMs: number): Count | NoCount | undefined {
    if (file.retryAtMs > nowMs) return undefined;
    const read = this.#sys.reread(file.path);
    const { text, error } = read;
    const count = read === file.read ? file.count : text === undefined ? undefined : parseCount(text);
    file.read = read;
    file.count = count;
    if (count === 'not-available' || isLasting(error)) wasRefused(file, nowMs);
    if (count !== undefined && typeof count !== 'string') wasAnswered(file);
    return count;
  }
}

/** The reading of before while the count is the same. */
function readingOf(file: CounterFile, labels: Labels, count: Count): Reading {
  const { row, wrapsAt, reading: before } = file;
  const value = metricValue(row, count);
  if (before !== undefined && before.value === value && before.labels === labels) return before;
  const reading = { metric: row.metric.name, labels, value, ...(wrapsAt === undefined ? {} : { wrapsAt }) };
  file.reading = reading;
  return reading;
}

function metricValue(row: CounterRow, count: Count): Count {
  return row.divisor === undefined ? scaleCount(count, row.scale ?? 1) : Number(count) / row.divisor;
}
