import type { Value } from '../model/metric.ts';

/** Changed values that fit. More than move on any machine between two refreshes; reports of which more changed go as messages. */
const CAPACITY = 16_384;
const NUMBERS_PER_VALUE = 3;
const HEADER = 2;
const LARGEST = 2n ** 63n - 1n;

/**
 * Memory in which a probe's thread leaves what changed: as numbers, since a message with the same content costs more than making it.
 * Written by the thread before it says so, read by the supervisor before it asks again.
 *
 * Doubles: length of the read in milliseconds, number of changed values; then three for each: place of the report (or -1 - place for
 * a value that is a 64-bit integer), place of the reading in it, value.
 */
export class SharedBoard {
  readonly shared: SharedArrayBuffer;
  readonly #numbers: Float64Array;
  readonly #integers: BigInt64Array;
  readonly #capacity: number;

  /** Over the memory of another board, or with room for that many values. */
  constructor(from: SharedArrayBuffer | number = CAPACITY) {
    this.shared = typeof from === 'number' ? new SharedArrayBuffer((HEADER + NUMBERS_PER_VALUE * from) * 8) : from;
    this.#numbers = new Float64Array(this.shared);
    this.#integers = new BigInt64Array(this.shared);
    this.#capacity = (this.#numbers.length - HEADER) / NUMBERS_PER_VALUE;
  }

  /** How many values stand on it. Set to a smaller number, the last ones are taken back. */
  get count(): number {
    return this.#numbers[1] as number;
  }

  set count(count: number) {
    this.#numbers[1] = count;
  }

  get durationMs(): number {
    return this.#numbers[0] as number;
  }

  set durationMs(durationMs: number) {
    this.#numbers[0] = durationMs;
  }

  /** False when it does not fit: then nothing was written. */
  add(report: number, reading: number, value: Value): boolean {
    const count = this.count;
    if (count === this.#capacity) return false;
    const at = HEADER + NUMBERS_PER_VALUE * count;
    if (typeof value === 'number') {
      this.#numbers[at] = report;
      this.#numbers[at + 2] = value;
    } else {
      if (value < 0n || value > LARGEST) return false;
      this.#numbers[at] = -1 - report;
      this.#integers[at + 2] = value;
    }
    this.#numbers[at + 1] = reading;
    this.count = count + 1;
    return true;
  }

  /** Place of the report of the n-th value. */
  reportOf(n: number): number {
    const report = this.#numbers[HEADER + NUMBERS_PER_VALUE * n] as number;
    return report < 0 ? -1 - report : report;
  }

  readingOf(n: number): number {
    return this.#numbers[HEADER + NUMBERS_PER_VALUE * n + 1] as number;
  }

  valueOf(n: number): Value {
    const at = HEADER + NUMBERS_PER_VALUE * n;
    return (this.#numbers[at] as number) < 0 ? (this.#integers[at + 2] as bigint) : (this.#numbers[at + 2] as number);
  }
}
