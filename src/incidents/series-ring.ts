import type { Labels } from '../model/metric.ts';

/** Times of one read differ by less: the time is computed anew after a step of the wall clock. */
export const SAME_READ_MS = 20;

/**
 * The latest values of one series. Most series never change, so a ring has memory of its own only after the first change. An absent value
 * is NaN in the ring.
 */
export class SeriesRing {
  readonly metric: string;
  readonly labels: Labels;
  readonly #length: number;
  #values: Float64Array | undefined;
  #constant = Number.NaN;
  /** Index of the first sample with a value. */
  #from = 0;
  /** Index of the last sample, with or without a value; -1 before the first. */
  lastSet = -1;
  /** Index of the last sample with a value. */
  lastValue = -1;
  /** Wall clock of the read that gave the latest value, once a sample had an earlier read than its device's. */
  #readAtMs: number | undefined;
  /** Those of the reads before it, since the value changed first. */
  #reads: number[] | undefined;

  constructor(metric: string, labels: Labels, length: number) {
    this.metric = metric;
    this.labels = labels;
    this.#length = length;
  }

  get bytes(): number {
    return this.#values?.byteLength ?? 0;
  }

  /** The series has a source that is read at its own interval. */
  get isPaced(): boolean {
    return this.#readAtMs !== undefined;
  }

  /**
   * Sets the sample `n`, which is the last one or the one after it. `atMs`: wall clock of the read that gave the value. `isKept`: an earlier
   * read than the device's.
   */
  set(n: number, value: number, atMs: number, isKept: boolean): void {
    if (!Number.isFinite(value)) {
      this.skip(n);
      return;
    }
    if (this.lastSet < 0) {
      this.#constant = value;
      this.#from = n;
    } else if (this.#values === undefined && value !== this.#constant) {
      this.#unfold(n);
    }
    if (this.#values !== undefined) this.#values[n % this.#length] = value;
    if (isKept || this.#readAtMs !== undefined) this.#readNow(atMs, isKept);
    this.lastSet = n;
    this.lastValue = n;
  }

  /** Says that the sample `n` has no value. */
  skip(n: number): void {
    if (this.lastSet < 0) return;
    if (this.#values === undefined) this.#unfold(n);
    (this.#values as Float64Array)[n % this.#length] = Number.NaN;
    this.lastSet = n;
  }

  /** Value of one of the last `length` samples; undefined when it is absent. */
  at(n: number): number | undefined {
    if (n < this.#from || n > this.lastSet) return undefined;
    const value = this.#values === undefined ? this.#constant : (this.#values[n % this.#length] as number);
    return Number.isNaN(value) ? undefined : value;
  }

  /** Wall clock of the read that gave the value of a sample. `timeMs`: that of the sample. */
  readAt(timeMs: number): number {
    if (this.#readAtMs === undefined || timeMs >= this.#readAtMs) return this.#readAtMs ?? timeMs;
    return this.#reads?.findLast((atMs) => atMs <= timeMs) ?? timeMs;
  }

  /** The first sample that shows a read can be later than the read, and a kept value names the begin of the read that a sample dates. */
  #readNow(atMs: number, isKept: boolean): void {
    const before = this.#readAtMs;
    if (before !== undefined && (isKept ? atMs <= before + SAME_READ_MS : atMs <= before)) return;
    this.#readAtMs = atMs;
    if (before === undefined || this.#values === undefined) return;
    this.#reads ??= [];
    this.#reads.push(before);
    if (this.#reads.length > this.#length) this.#reads.shift();
  }

  #unfold(before: number): void {
    const values = new Float64Array(this.#length).fill(Number.NaN);
    for (let n = Math.max(this.#from, before - this.#length); n < before; n += 1) values[n % this.#length] = this.#constant;
    this.#values = values;
  }
}
