import type { KeptFile } from '../../host/kept-files.ts';
import type { Labels, Reading } from '../../model/metric.ts';
import type { CounterRow } from './counters.ts';
import { type Count, scaleCount } from './parse.ts';

/** One file to read, with all that its reading needs made beforehand. */
export interface Slot {
  readonly row: CounterRow;
  readonly file: KeptFile;
  readonly labels: Labels;
  /** Series that this file feeds; another file of the same series is read only when this one has no value. */
  readonly series: number;
  readonly isJudged: boolean;
  /** What the last look gave; undefined when it gave no value, or another file of the series was preferred. */
  count: Count | undefined;
  /** Of that count; the same object until it changes. */
  reading: Reading | undefined;
  /** Where that stands among the readings of the pass. */
  place: number;
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

/** What one pass found changed against the one before. */
export class Changes {
  readonly #before: CounterPass | undefined;
  #readings: Reading[] | undefined;
  /** Values came or went, or a counter came to its ceiling or left it: then the pass is summed up anew. */
  #isOther: boolean;
  areJudged = false;

  constructor(before: CounterPass | undefined) {
    this.#before = before;
    this.#isOther = before === undefined;
  }

  /** Puts the new count into the slot. */
  add(slot: Slot, count: Count | undefined): void {
    const { row, labels, count: old } = slot;
    this.areJudged ||= slot.isJudged;
    slot.count = count;
    slot.reading = count === undefined ? undefined : { metric: row.metric.name, labels, value: metricValue(row, count) };
    if (slot.reading === undefined || old === undefined || isSaturated(row, old) !== isSaturated(row, count as Count)) this.#isOther = true;
    if (this.#isOther) return;
    this.#readings ??= this.#before?.readings.slice() ?? [];
    this.#readings[slot.place] = slot.reading as Reading;
  }

  /** The pass before with the values changed, or itself when none did; undefined when more than values changed. */
  patched(judgedCounts: () => ReadonlyMap<string, Count>): CounterPass | undefined {
    if (this.#isOther || this.#before === undefined || this.#readings === undefined) return this.#isOther ? undefined : this.#before;
    const { saturated, unreadable, files, classicFiles, classicUnreadable, raw: rawBefore } = this.#before;
    const raw = this.areJudged ? judgedCounts() : rawBefore;
    return { readings: this.#readings, raw, saturated, unreadable, files, classicFiles, classicUnreadable };
  }
}

export function isSaturated(row: CounterRow, count: Count): boolean {
  return row.ceilings?.includes(count) === true;
}

function metricValue(row: CounterRow, count: Count): Count {
  if (row.divisor !== undefined) return Number(count) / row.divisor;
  return scaleCount(count, row.scale ?? 1);
}
