import type { ReadResult, Tree } from '../../host/fs/tree.ts';
import type { Labels } from '../../model/metric.ts';
import { areSameFields } from '../../model/readings.ts';
import { sameListWhenEqual } from '../../model/step-cache.ts';
import type { Pace } from '../kit/pace.ts';
import type { ReadingWriter } from '../kit/reading-writer.ts';
import { isLasting, newRetry, type Retry, wasAnswered, wasRefused } from '../kit/retry.ts';
import { type Count, type CounterRow, type CounterSet, type NoCount, parseCount, scaleCount } from './counters.ts';
import { allCounters } from './driver-counters.ts';
import { JUDGED_FILES } from './judged-counters.ts';

const ROWS = allCounters();
const KNOWN: ReadonlySet<string> = new Set(ROWS.map(({ set, file }) => `${set}/${file}`));
/** A setting of the kernel beside the counters of a driver. */
const LIFESPAN = 'lifespan';
const OF_DRIVERS: ReadonlySet<CounterSet> = new Set(['hw_counters', 'device']);

/** What one read of the counters of a port, or of the device itself, says beside the values. The same object as before while it is the same. */
export interface Counters {
  /** Raw values of the counters whose growth is judged, keyed by file name. */
  readonly raw: ReadonlyMap<string, Count>;
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
  readonly metric: string;
  readonly path: string;
  readonly isClassic: boolean;
  readonly isJudged: boolean;
  /** Of a counter that wraps with this driver. */
  readonly wrapsAt: number | undefined;
  /** What the file held at the last read, the count of it, its value in the unit of the metric, and whether the counter has stopped. */
  read: ReadResult | undefined;
  count: Count | NoCount | undefined;
  value: Count | undefined;
  isSaturated: boolean;
  /** The count that {@link Counters.raw} has. */
  told: Count | undefined;
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
  #last = NO_COUNTERS;
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
      const file = files.get(path) ?? {
        row,
        metric: row.metric.name,
        path,
        isClassic: row.set === 'counters',
        isJudged: JUDGED_FILES.has(row.file),
        wrapsAt,
        ...newRetry(),
        read: undefined,
        count: undefined,
        value: undefined,
        isSaturated: false,
        told: undefined,
      };
      const labels = { ...this.#labels, ...row.labels };
      const key = `${row.metric.name} ${JSON.stringify(labels)}`;
      const series = found.get(key) ?? { labels, files: [] };
      found.set(key, series);
      series.files.push(file);
      if (sources.has(file)) series.source = file;
    }
    this.#series = [...found.values()];
    this.#last = NO_COUNTERS;
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

  /** Writes the values of all files that have one. */
  read({ nowMs }: Pace, readings: ReadingWriter): Counters {
    const last = this.#last;
    let { raw } = last;
    let [saturated, allOnes] = [NONE, NONE];
    let [files, unreadable, classicFiles, classicUnreadable] = [0, 0, 0, 0];
    if (this.#isRefused) this.#tryOne(nowMs);
    const all = this.#series;
    // Iterators of `for … of` cost as much as the rest of the loop, which runs for each counter at each refresh.
    for (let at = 0; at < all.length; at += 1) {
      const series = all[at] as Series;
      const { files: ofSeries, labels } = series;
      files += ofSeries.length;
      for (let n = 0; n < ofSeries.length; n += 1) {
        const file = ofSeries[n] as CounterFile;
        if (series.source === undefined || series.source === file) this.#read(file, nowMs);
        else setTo(file, undefined);
        const { value, isClassic } = file;
        if (isClassic) classicFiles += 1;
        if (value === undefined) {
          unreadable += 1;
          if (isClassic) classicUnreadable += 1;
          if (file.count === 'all-ones') allOnes = [...allOnes, file.row.file];
        } else {
          series.source = file;
          readings.add(file.metric, value, labels, undefined, file.wrapsAt);
          if (file.isSaturated) saturated = [...saturated, file.row.file];
        }
        if (file.isJudged) raw = withTold(raw, file);
        if (series.source === file) break;
      }
    }
    this.#isRefused = classicFiles > 0 && classicUnreadable === classicFiles;
    saturated = sameListWhenEqual(last.saturated, saturated);
    allOnes = sameListWhenEqual(last.allOnes, allOnes);
    const now = { raw, saturated, allOnes, unreadable, files, classicFiles, classicUnreadable, unused: this.#unused };
    if (!areSameFields(last, now)) this.#last = now;
    return this.#last;
  }

  #tryOne(nowMs: number): void {
    const classic = this.#series.flatMap((series) => series.files.filter(({ row }) => row.set === 'counters'));
    const one = classic[this.#turn % classic.length];
    if (one === undefined || one.retryAtMs > nowMs) return;
    this.#turn += 1;
    this.#read(one, nowMs);
    for (const file of classic) file.retryAtMs = one.value === undefined ? one.retryAtMs : 0;
  }

  #read(file: CounterFile, nowMs: number): void {
    const read = file.retryAtMs > nowMs ? undefined : this.#sys.reread(file.path);
    if (read === file.read && file.value !== undefined) return;
    setTo(file, read);
    if (file.value !== undefined) wasAnswered(file);
    else if (file.count === 'not-available' || isLasting(read?.error)) wasRefused(file, nowMs);
  }
}

function setTo(file: CounterFile, read: ReadResult | undefined): void {
  const { row } = file;
  const count = read?.text === undefined ? undefined : parseCount(read.text);
  file.read = read;
  file.count = count;
  file.value = count === undefined || typeof count === 'string' ? undefined : metricValue(row, count);
  file.isSaturated = file.value !== undefined && row.ceilings?.includes(count as Count) === true;
}

/** The same map while the counter has the same count. */
function withTold(raw: Counters['raw'], file: CounterFile): Counters['raw'] {
  const now = file.value === undefined ? undefined : (file.count as Count);
  if (now === file.told) return raw;
  file.told = now;
  const counts = new Map(raw);
  if (now === undefined) counts.delete(file.row.file);
  else counts.set(file.row.file, now);
  return counts;
}

function metricValue(row: CounterRow, count: Count): Count {
  return row.divisor === undefined ? scaleCount(count, row.scale ?? 1) : Number(count) / row.divisor;
}
