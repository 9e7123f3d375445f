import type { Labels } from './metric.ts';

/**
 * A reading that people see first of a device. `traffic` is what goes in and out, as one reading; `in` and `out` are two. The others say
 * themselves what they are. All of them come from shared metrics.
 */
export type SharedReading = 'busy' | 'memory' | 'power' | 'temperature' | 'in' | 'out' | 'traffic' | 'link';

/** A reading of a metric that the family declares. Plain data. */
export interface OwnReading {
  /** One or two words: `Wear`. */
  readonly label: string;
  /** A counter is shown by its growth per second. Several series are added. */
  readonly metric: string;
  /** Labels that a series must have; others may have any value. */
  readonly labels?: Labels;
  /** The value that fills the bar. Absent: there is no bar. */
  readonly full?: number;
  /** Words for values that are no amounts: `{ 1: 'asleep' }`. A value without a word is not shown. */
  readonly words?: Readonly<Record<number, string>>;
}

export type ShownReading = SharedReading | OwnReading;

/**
 * What people see first, keyed by `Device.kind`, the most telling first. The first is also the one that has a trend. Three that are known
 * are shown, so that a fourth takes the place of one that is not.
 */
export type ShownReadings = Readonly<Record<string, readonly ShownReading[]>>;
