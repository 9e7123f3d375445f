import type { Tree } from '../../host/fs/tree.ts';
import { hours, type Millis, minutes } from '../../model/duration.ts';
import type { Labels, Reading } from '../../model/metric.ts';
import type { CounterRow, CounterSet } from './counters.ts';
import { allCounters } from './driver-counters.ts';
import { type Count, parseCount, scaleCount } from './parse.ts';

const ROWS = allCounters();

/** Some failing reads cost a firmware command and a line in the kernel log each; such files are left alone for so long. */
const RETRY_MS: Millis = hours(1);
/** One that had a value before fails with the same error while the firmware is busy: it is tried again so soon, and then ever more seldom. */
const FIRST_RETRY_MS: Millis = minutes(1);

/** Errors that say "never" rather than "not now". */
const LASTING_ERRORS: ReadonlySet<string> = new Set(['EINVAL', 'EOPNOTSUPP', 'ENOTSUP']);

/** What one read of the counters of a port, or of the device itself, gave. */
export interface Counters {
  readonly readings: readonly Reading[];
  /** Raw values by the names of their files. */
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

export const NO_COUNTERS: Counters = {
  readings: [],
  raw: new Map(),
  saturated: [],
  unreadable: 0,
  files: 0,
  classicFiles: 0,
  classicUnreadable: 0,
};

interface CounterFile {
  readonly row: CounterRow;
  readonly path: string;
  /** Monotonic clock before which the file is not tried again. */
  retryAtMs: number;
  /** How long it is left alone when it fails for good. */
  restMs: Millis;
}

/** One series and the files that could feed it, the preferred one first. */
interface Series {
  readonly labels: Labels;
  readonly files: CounterFile[];
  /** The first that had a value: another one counts other things, or fewer bits of them. */
  feeder?: CounterFile | undefined;
}

/** The counter files of one port or device. Files that feed no metric are never opened. */
export class CounterFiles {
  readonly #sys: Tree;
  readonly #places: readonly (readonly [CounterSet, string])[];
  readonly #labels: Labels;
  #series: readonly Series[] = [];

  /** `places`: where the counters lie, set to directory. `labels`: those of all series. */
  constructor(sys: Tree, places: readonly (readonly [CounterSet, string])[], labels: Labels = {}) {
    this.#sys = sys;
    this.#places = places;
    this.#labels = labels;
  }

  /** Looks which files there are. What is known of files that stay is kept. */
  list(): void {
    const files = new Map(this.#series.flatMap((series) => series.files.map((file) => [file.path, file] as const)));
    const feeders = new Set(this.#series.map(({ feeder }) => feeder));
    const places = new Map(this.#places.map(([set, directory]) => [set, { directory, names: new Set(this.#sys.list(directory)) }]));
    const found = new Map<string, Series>();
    for (const row of ROWS) {
      const place = places.get(row.set);
      if (place === undefined || !place.names.has(row.file)) continue;
      const path = `${place.directory}/${row.file}`;
      const file = files.get(path) ?? { row, path, retryAtMs: 0, restMs: RETRY_MS };
      const labels = { ...this.#labels, ...row.labels };
      const key = `${row.metric.name} ${JSON.stringify(labels)}`;
      const series = found.get(key) ?? { labels, files: [] };
      found.set(key, series);
      series.files.push(file);
      if (feeders.has(file)) series.feeder = file;
    }
    this.#series = [...found.values()];
  }

  /** Lets all files be tried again, after an event that may have brought them back. */
  forgive(): void {
    for (const { files } of this.#series) for (const file of files) file.retryAtMs = 0;
  }

  read(nowMs: number): Counters {
    const readings: Reading[] = [];
    const raw = new Map<string, Count>();
    const saturated: string[] = [];
    let [files, unreadable, classicFiles, classicUnreadable] = [0, 0, 0, 0];
    for (const series of this.#series) {
      files += series.files.length;
      for (const file of series.files) {
        const { row } = file;
        const count = series.feeder === undefined || series.feeder === file ? this.#read(file, nowMs) : undefined;
        const isClassic = row.set === 'counters';
        if (isClassic) classicFiles += 1;
        if (count === undefined) {
          unreadable += 1;
          if (isClassic) classicUnreadable += 1;
        } else {
          series.feeder = file;
          readings.push({ metric: row.metric.name, labels: series.labels, value: metricValue(row, count) });
          raw.set(row.file, count);
          if (row.ceilings?.includes(count) === true) saturated.push(row.file);
        }
        if (series.feeder === file) break;
      }
    }
    return { readings, raw, saturated, unreadable, files, classicFiles, classicUnreadable };
  }

  #read(file: CounterFile, nowMs: number): Count | undefined {
    if (file.retryAtMs > nowMs) return undefined;
    const { text, error } = this.#sys.reread(file.path);
    const count = text === undefined ? undefined : parseCount(text);
    if (count === 'not-available' || (error !== undefined && LASTING_ERRORS.has(error))) {
      file.retryAtMs = nowMs + file.restMs;
      file.restMs = Math.min(2 * file.restMs, RETRY_MS) as Millis;
    }
    if (count === undefined || typeof count === 'string') return undefined;
    file.restMs = FIRST_RETRY_MS;
    return count;
  }
}

function metricValue(row: CounterRow, count: Count): Count {
  return row.divisor === undefined ? scaleCount(count, row.scale ?? 1) : Number(count) / row.divisor;
}
