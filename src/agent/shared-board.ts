import type { CollectionDelta } from './collection-delta.ts';

/** Changed values that fit. More than move on any machine between two refreshes; a delta with more goes as a message. */
const CAPACITY = 16_384;
const NUMBERS_PER_VALUE = 3;
const HEADER = 3;
const LARGEST = 2n ** 63n - 1n;

/**
 * Memory in which a probe's thread leaves what changed: as numbers, since a message with the same content costs more than making it.
 * Written by the thread before it says so, read by the supervisor before it asks again.
 *
 * Doubles: length of the read in milliseconds, number of reports, number of changed values; then three for each: place of the report
 * (or -1 - place for a value that is a 64-bit integer), place of the reading in it, value.
 */
export class SharedBoard {
  readonly shared: SharedArrayBuffer;
  readonly #numbers: Float64Array;
  readonly #integers: BigInt64Array;

  constructor(shared: SharedArrayBuffer = new SharedArrayBuffer((HEADER + NUMBERS_PER_VALUE * CAPACITY) * 8)) {
    this.shared = shared;
    this.#numbers = new Float64Array(shared);
    this.#integers = new BigInt64Array(shared);
  }

  /** False when more than values changed, or more than fits: then nothing was written. */
  write(delta: CollectionDelta, durationMs: number): boolean {
    const { count, reports, findings, values, largeValues, rest } = delta;
    if (reports.length + findings.length > 0 || rest !== undefined || values.length / NUMBERS_PER_VALUE + largeValues.length > CAPACITY)
      return false;
    if (largeValues.some(([, , value]) => value > LARGEST || value < 0n)) return false;
    const numbers = this.#numbers;
    numbers[0] = durationMs;
    numbers[1] = count;
    numbers[2] = values.length / NUMBERS_PER_VALUE + largeValues.length;
    let at = HEADER;
    for (let place = 0; place < values.length; place += 1) numbers[at++] = values[place] as number;
    for (const [report, reading, value] of largeValues) {
      numbers[at++] = -1 - report;
      numbers[at++] = reading;
      this.#integers[at++] = value;
    }
    return true;
  }

  /** What was written last. */
  read(): { readonly delta: CollectionDelta; readonly durationMs: number } {
    const numbers = this.#numbers;
    const values: number[] = [];
    const largeValues: [number, number, bigint][] = [];
    const end = HEADER + NUMBERS_PER_VALUE * (numbers[2] as number);
    for (let at = HEADER; at < end; at += NUMBERS_PER_VALUE) {
      const [report, reading] = [numbers[at] as number, numbers[at + 1] as number];
      if (report >= 0) values.push(report, reading, numbers[at + 2] as number);
      else largeValues.push([-1 - report, reading, this.#integers[at + 2] as bigint]);
    }
    return { delta: { count: numbers[1] as number, reports: [], findings: [], values, largeValues }, durationMs: numbers[0] as number };
  }
}
