import type { Labels, MetricSpec } from '../../model/metric.ts';
import { metrics } from './metrics.ts';
import type { Count } from './parse.ts';

/** Directory that a counter file lies in: three of a port, one of the device. */
export type CounterSet = 'counters' | 'counters_ext' | 'hw_counters' | 'device';

/** One counter file and the series that it feeds. */
export interface CounterRow {
  readonly set: CounterSet;
  readonly file: string;
  readonly metric: MetricSpec;
  /** Besides `port`. */
  readonly labels: Labels;
  /** The file's unit in units of the metric, where that is a whole number; default 1. */
  readonly scale?: number;
  /** For the one file whose unit is smaller than the metric's. */
  readonly divisor?: number;
  /** Raw values at which the counter sticks. */
  readonly ceilings?: readonly Count[];
}

/** A row of `hw_counters`. */
export function hardware(file: string, metric: MetricSpec, labels: Labels = {}): CounterRow {
  return { set: 'hw_counters', file, metric, labels };
}

/** Rows of `hw_counters` that count errors: file to kind. */
export function hardwareErrors(kinds: Readonly<Record<string, string>>): CounterRow[] {
  return Object.entries(kinds).map(([file, kind]) => hardware(file, metrics.errors, { kind }));
}
