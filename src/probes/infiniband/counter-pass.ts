import type { KeptFile } from '../../host/kept-group.ts';
import type { SeriesId, Value } from '../../model/metric.ts';
import { Readings } from '../../model/readings.ts';
import type { CounterRow } from './counter-row.ts';
import { type Count, scaleCount } from './parse.ts';

/** One file to read, with all that its reading needs made beforehand. */
export interface Slot {
  readonly row: CounterRow;
  readonly file: KeptFile;
  readonly id: SeriesId;
  /** Number of the series that this file feeds; another file of the same series is read only when this one has no value. */
  readonly series: number;
  readonly isJudged: boolean;
  /** Where its value stands among the readings of the pass; -1 while it has none. */
  place: number;
}

/** What one pass over the files of a port (or of the device itself) gave. A pass that found nothing new is the one before. */
export interface CounterPass {
  readonly readings: Readings;
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
  readings: Readings.NONE,
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
  #values: Value[] | undefined;
  /** Values came or went, or a counter came to its ceiling or left it: then the pass is summed up anew. */
  #isOther: boolean;
  areJudged = false;

  constructor(before: CounterPass | undefined) {
    this.#before = before;
    this.#isOther = before === undefined;
  }

  /** Of one slot, from one count to another; undefined: none. */
  add({ row, isJudged, place }: Slot, before: Count | undefined, count: Count | undefined): void {
    this.areJudged ||= isJudged;
    if (count === undefined || before === undefined || isSaturated(row, before) !== isSaturated(row, count)) this.#isOther = true;
    if (this.#isOther || count === undefined) return;
    this.#values ??= this.#before?.readings.values.slice() ?? [];
    this.#values[place] = metricValue(row, count);
  }

  /** The pass before with the values changed, or itself when none did; undefined when more than values changed. */
  patched(judgedCounts: () => ReadonlyMap<string, Count>): CounterPass | undefined {
    const before = this.#before;
    if (this.#isOther || before === undefined) return undefined;
    if (this.#values === undefined) return before;
    const { saturated, unreadable, files, classicFiles, classicUnreadable } = before;
    const readings = new Readings(before.readings.series, this.#values);
    const raw = this.areJudged ? judgedCounts() : before.raw;
    return { readings, raw, saturated, unreadable, files, classicFiles, classicUnreadable };
  }
}

/** A count that stays where it is: the counter is full. */
export function isSaturated(row: CounterRow, count: Count): boolean {
  const { ceilings } = row;
  if (ceilings === undefined) return false;
  for (let at = 0; at < ceilings.length; at += 1) if (ceilings[at] === count) return true;
  return false;
}

export function metricValue(row: CounterRow, count: Count): Count {
  if (row.divisor !== undefined) return Number(count) / row.divisor;
  return scaleCount(count, row.scale ?? 1);
}
