import type { DeviceRead } from '../model/collection.ts';
import { defined } from '../model/defined.ts';
import type { ReadTimes } from '../model/device-record.ts';
import { areSameLabels, type Reading } from '../model/metric.ts';
import type { ByteSource, ProgressSpec, SeriesChoice } from '../model/progress.ts';
import { shared } from '../model/shared-metrics.ts';

/** Which values of a family show work. A network adapter has bytes only. */
export interface Watched {
  readonly progress?: ProgressSpec | undefined;
  /** Counters of bytes of a family that only moves data. */
  readonly traffic?: readonly string[] | undefined;
}

/** What one device did since the read before. A value that was not read is absent. */
export interface Signals {
  readonly busy?: number;
  /** The highest of the shares that the family declares; absent unless all of them were read. */
  readonly activity?: number;
  /** Mean where the device counts energy. */
  readonly watts?: number;
  readonly powerShare?: number;
  readonly memoryBytes?: number;
  /** Bytes per second of each link that was read. */
  readonly bytes: Readonly<Record<string, number>>;
}

/** Sums of the counters at one read, which the next read is compared with. */
export interface Counters {
  readonly atMs: number;
  readonly sums: Readonly<Record<string, { readonly value: number; readonly series: number }>>;
}

const JOULES = 'joules';

/** Compares a read with the counters of the one before. Pure. */
export function signalsOf(
  watched: Watched,
  read: DeviceRead & ReadTimes,
  before: Counters | undefined,
): { readonly signals: Signals; readonly counters: Counters } {
  const { readings, monotonicMs } = read;
  const sums = sumsOf(watched, readings);
  const counters: Counters = { atMs: monotonicMs, sums };
  const spanSeconds = (monotonicMs - (before?.atMs ?? monotonicMs)) / 1_000;
  const grown = (name: string): number | undefined => {
    const [from, to] = [before?.sums[name], sums[name]];
    if (from === undefined || to === undefined || from.series !== to.series || to.value < from.value || !(spanSeconds > 0))
      return undefined;
    return (to.value - from.value) / spanSeconds;
  };
  const bytes: Record<string, number> = {};
  for (const { name, rate } of linksOf(watched)) {
    const value = name in sums ? grown(name) : rate && sumOf(readings, [rate])?.value;
    if (value !== undefined) bytes[name] = value;
  }
  const { progress } = watched;
  if (progress === undefined) return { signals: { bytes }, counters };
  const { engine, activity, power } = progress;
  const one = (metric: string, labels?: Reading['labels']): number | undefined =>
    seriesValue(readings, { metric, ...(labels && { labels }) });
  const shares = activity.map((choice) => seriesValue(readings, choice));
  const watts = grown(JOULES) ?? power.sensors.map((sensor) => one(shared.power.name, { sensor })).find((value) => value !== undefined);
  const limit = one(shared.powerLimit.name, { limit: power.limit });
  const signals = {
    busy: one(shared.utilization.name, { engine }),
    activity: shares.includes(undefined) ? undefined : Math.max(...(shares as number[])),
    watts,
    powerShare: watts === undefined || limit === undefined || !(limit > 0) ? undefined : watts / limit,
    memoryBytes: one(shared.memoryUsed.name),
  };
  return { signals: { ...defined(signals), bytes }, counters };
}

interface Link {
  readonly name: string;
  readonly counters?: NonNullable<ByteSource['counters']>;
  readonly rate?: SeriesChoice;
}

function linksOf({ progress, traffic }: Watched): readonly Link[] {
  const own = traffic === undefined ? [] : [{ name: 'traffic', counters: { metrics: traffic, port: '' } }];
  return [
    ...own,
    ...(progress?.bytes ?? []).map(({ name, counters, rates: rate }) => ({ name, ...(counters && { counters }), ...(rate && { rate }) })),
  ];
}

function sumsOf(watched: Watched, readings: readonly Reading[]): Counters['sums'] {
  const sums: Record<string, { value: number; series: number }> = {};
  for (const { name, counters } of linksOf(watched)) {
    if (counters === undefined) continue;
    const { metrics, port } = counters;
    const isOfPort = (label = ''): boolean => port === '' || (label.startsWith(port) && /^\d*$/.test(label.slice(port.length)));
    const series = readings.filter(({ metric, labels }) => metrics.includes(metric) && isOfPort(labels?.port));
    // One direction alone is not the traffic.
    if (metrics.every((metric) => series.some((one) => one.metric === metric)))
      sums[name] = { value: totalOf(series), series: series.length };
  }
  const joules = seriesValue(readings, { metric: shared.energy.name });
  if (joules !== undefined) sums[JOULES] = { value: joules, series: 1 };
  return sums;
}

const totalOf = (series: readonly Reading[]): number => series.reduce((sum, { value }) => sum + Number(value), 0);

/** Sum of all series that have the labels; undefined without one. */
function sumOf(readings: readonly Reading[], choices: readonly SeriesChoice[]): { readonly value: number } | undefined {
  const series = readings.filter(({ metric, labels }) => choices.some((choice) => choice.metric === metric && has(labels, choice.labels)));
  return series.length === 0 ? undefined : { value: totalOf(series) };
}

const has = (labels: Reading['labels'] = {}, wanted: Reading['labels'] = {}): boolean =>
  Object.entries(wanted).every(([name, value]) => labels[name] === value);

function seriesValue(readings: readonly Reading[], { metric, labels }: SeriesChoice): number | undefined {
  const value = readings.find((one) => one.metric === metric && areSameLabels(one.labels, labels))?.value;
  return value === undefined || !Number.isFinite(Number(value)) ? undefined : Number(value);
}
