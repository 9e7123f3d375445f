import type { Labels, Reading } from '../model/metric.ts';
import type { DisplayReading } from './device-view.ts';
import { rateText, readingText } from './units.ts';

/** Growth of one counter per second; undefined after a reset, and until two reads are there. */
export type RateOf = (key: string, metric: string, labels: Labels | undefined) => number | undefined;

/** A reading that is shown, with the series that it comes from. */
export interface ChosenReading extends DisplayReading {
  readonly series: readonly Pick<Reading, 'metric' | 'labels'>[];
  /** The value is the growth of the series per second, and not their sum. */
  readonly isRate: boolean;
}

/** The readings of one device, and how fast its counters grow. */
export interface DeviceValues {
  of(metric: string): readonly Reading[];
  /** The readings of all metrics whose name ends with `suffix`. */
  ending(suffix: string): readonly Reading[];
  /** Sum of the growth of several counters per second; undefined while that of one of them is not known. */
  rate(series: readonly Reading[]): number | undefined;
}

/** `limit`: the value that fills the bar. */
export function plain(label: string, reading: Reading, limit?: number): ChosenReading {
  const { metric } = reading;
  const value = Number(reading.value);
  return { label, text: readingText(metric, reading.value), value, ...shareOf(value, limit), series: [reading], isRate: false };
}

export function against(label: string, reading: Reading, limit: Reading | undefined): ChosenReading {
  if (limit === undefined || Number(limit.value) <= 0) return plain(label, reading);
  const text = `${readingText(reading.metric, reading.value)} of ${readingText(limit.metric, limit.value)}`;
  return { ...plain(label, reading, Number(limit.value)), text };
}

export const NO_RATE = 'no rate yet';

/** The growth of counters of one metric. `limit`: the rate that fills the bar. */
export function grown(label: string, series: readonly Reading[], known: DeviceValues, limit?: number): ChosenReading {
  const rate = known.rate(series);
  const source = { series, isRate: true };
  if (rate === undefined) return { label, text: NO_RATE, ...source };
  // No time passes faster than time: what is above comes from the times of the two reads.
  const isTime = series[0]?.metric.endsWith('_seconds_total') === true;
  const value = isTime && limit !== undefined ? Math.min(rate, limit) : rate;
  return { label, text: rateText(series[0]?.metric ?? '', value), value, ...shareOf(value, limit), ...source };
}

/** The limit is not computed from the ratio: of a small value, the rounded ratio is 0. */
const shareOf = (value: number, limit: number | undefined): Pick<DisplayReading, 'ratio' | 'limit'> =>
  limit === undefined || !(limit > 0) || !Number.isFinite(value / limit)
    ? {}
    : { ratio: Math.round(Math.min(1, Math.max(0, value / limit)) * 1_000) / 1_000, limit };
