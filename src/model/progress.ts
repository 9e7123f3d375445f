import type { Labels } from './metric.ts';

/** Chooses the series of one metric that have these labels. */
export interface SeriesChoice {
  readonly metric: string;
  readonly labels?: Labels;
}

/** Bytes over one kind of link of a device. The counters count where they are read, otherwise the rates. */
export interface ByteSource {
  readonly name: string;
  /** Counters of all ports of this kind: `port` is this word, alone or with a number. */
  readonly counters?: { readonly metrics: readonly string[]; readonly port: string };
  /** Means since the read before, in bytes per second. A sample of a shorter time is no mean. */
  readonly rates?: SeriesChoice;
}

/** What shows whether the work on a device moves on. Without it, a device of the family is never said to wait. */
export interface ProgressSpec {
  /** Engine of `device_utilization_ratio` that is busy while a kernel runs, also while the kernel only spins. */
  readonly engine: string;
  /** Shares of time, means since the read before, that a spinning kernel leaves near 0. */
  readonly activity: readonly SeriesChoice[];
  /** Sensor of `device_power_watts`, the best first, and the limit in force. */
  readonly power: { readonly sensors: readonly string[]; readonly limit: string };
  readonly bytes: readonly ByteSource[];
  /** Models whose utilization is known to be wrong, as a part of the name of the model, with the source. They are never judged. */
  readonly unreliable?: readonly { readonly model: string; readonly source: string }[];
}
