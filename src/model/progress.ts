import type { SeriesChoice } from './metric.ts';

/** Bytes over one kind of link of a device. The counters count where they are read, otherwise the rates. */
export interface ByteSource {
  readonly name: string;
  /** Counters of all ports of this kind: `port` is this word, alone or with a number. */
  readonly counters?: { readonly metrics: readonly string[]; readonly port: string };
  /** Means since the read before, in bytes per second. A sample of a shorter time is no mean. */
  readonly rates?: SeriesChoice;
}

/** A pipe of a device. */
export interface Pipe extends SeriesChoice {
  /** Part of its activity that counts, 0 to 1: less than 1 for a pipe that a spinning kernel uses a little. 1 when absent. */
  readonly weight?: number;
}

/** What shows whether the work on a device moves on. Without it, a device of the family is never said to wait. */
export interface ProgressSpec {
  /** Engine of `device_utilization_ratio` that is busy while a kernel runs, also while the kernel only spins. */
  readonly engine: string;
  /** Shares of time of all pipes that can do work. A spinning kernel leaves them near 0. A device need not report each of them. */
  readonly pipes: readonly Pipe[];
  /** Sensor of `device_power_watts` and limit of `device_power_limit_watts`, the best first. */
  readonly power: { readonly sensors: readonly string[]; readonly limits: readonly string[] };
  readonly bytes: readonly ByteSource[];
  /** Models whose utilization is known to be wrong, as a part of the name of the model, with the source. They are never judged. */
  readonly unreliable?: readonly { readonly model: string; readonly source: string }[];
}
