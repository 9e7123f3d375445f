import type { DeviceRead } from '../model/collection.ts';
import type { ByteSource, ProgressSpec } from '../model/declaration.ts';
import { defined } from '../model/defined.ts';
import type { ReadTimes } from '../model/device-record.ts';
import { areSameLabels, type Reading, readMsOf, type SeriesChoice } from '../model/metric.ts';
import { ofMetric, type Readings, seriesValue } from '../model/readings.ts';
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
  /** Weighted share of time of each pipe that was read. */
  readonly pipes?: Readonly<Record<string, number>>;
  /** Mean where the device counts energy. */
  readonly watts?: number;
  readonly powerShare?: number;
  readonly memoryBytes?: number;
  /** Bytes per second of each link that was read. */
  readonly bytes: Readonly<Record<string, number>>;
}

/** Sum of the counters of one link at the read that gave them, and its growth since the read before. */
interface Sum {
  readonly value: number;
  readonly series: number;
  /** Monotonic clock. A link may be read less often than its device: its growth stays until its next read. */
  readonly atMs: number;
  readonly perSecond?: number | undefined;
}

/** Sums of the counters at one read, which the next read is compared with. */
export type Counters = Readonly<Record<string, Sum>>;

const JOULES = 'joules';

/** Compares a read with the counters of the one before. Pure. */
export function signalsOf(
  watched: Watched,
  read: DeviceRead<Readings> & ReadTimes,
  before: Counters | undefined,
): { readonly signals: Signals; readonly counters: Counters } {
  const { readings } = read;
  const counters = sumsOf(watched, read, before);
  const bytes: Record<string, number> = {};
  for (const { name, rate } of linksOf(watched)) {
    // Where the device reports a mean, it is of the time since the read before.
    const value = (rate && sumOf(readings, [rate])?.value) ?? counters[name]?.perSecond;
    if (value !== undefined) bytes[name] = value;
  }
  const { progress } = watched;
  if (progress === undefined) return { signals: { bytes }, counters };
  const { engine, power } = progress;
  const one = (metric: string, labels?: Reading['labels']): number | undefined =>
    seriesValue(readings, { metric, ...(labels && { labels }) });
  const first = (values: readonly (number | undefined)[]): number | undefined => values.find((value) => value !== undefined);
  const watts = counters[JOULES]?.perSecond ?? first(power.sensors.map((sensor) => one(shared.power.name, { sensor })));
  const limit = first(power.limits.map((name) => one(shared.powerLimit.name, { limit: name })));
  const signals = {
    busy: one(shared.utilization.name, { engine }),
    pipes: pipesIn(readings, progress),
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

function sumsOf(watched: Watched, { readings, monotonicMs }: DeviceRead<Readings> & ReadTimes, before: Counters | undefined): Counters {
  const sums: Record<string, Sum> = {};
  const add = (name: string, series: readonly Reading[]): void => {
    const atMs = Math.min(...series.map((one) => readMsOf(one, monotonicMs)));
    const was = before?.[name];
    const sum = { value: totalOf(series), series: series.length, atMs };
    // A read that is told again has the time of its begin, and at first that of its device's end.
    sums[name] = was !== undefined && atMs <= was.atMs ? was : { ...sum, perSecond: was && growthOf(was, sum) };
  };
  for (const { name, counters } of linksOf(watched)) {
    if (counters === undefined) continue;
    const { metrics, port } = counters;
    const isOfPort = (label = ''): boolean => port === '' || (label.startsWith(port) && /^\d*$/.test(label.slice(port.length)));
    const found = metrics.map((metric) => ofMetric(readings, metric).filter(({ labels }) => isOfPort(labels?.port)));
    // One direction alone is not the traffic.
    if (found.every(({ length }) => length > 0)) add(name, found.flat());
  }
  const joules = ofMetric(readings, shared.energy.name).filter(({ labels }) => areSameLabels(labels));
  if (joules.length > 0) add(JOULES, joules);
  return sums;
}

const growthOf = (from: Sum, to: Sum): number | undefined =>
  from.series !== to.series || to.value < from.value || to.atMs <= from.atMs
    ? undefined
    : ((to.value - from.value) * 1_000) / (to.atMs - from.atMs);

function pipesIn(readings: Readings, { pipes }: ProgressSpec): Readonly<Record<string, number>> {
  const found: Record<string, number> = {};
  for (const { weight = 1, ...choice } of pipes) {
    const share = seriesValue(readings, choice);
    if (share !== undefined) found[Object.values(choice.labels ?? {}).join() || choice.metric] = share * weight;
  }
  return found;
}

const totalOf = (series: readonly Reading[]): number => series.reduce((sum, { value }) => sum + Number(value), 0);

/** Sum of all series that have the labels; undefined without one. */
function sumOf(readings: Readings, choices: readonly SeriesChoice[]): { readonly value: number } | undefined {
  const metrics = new Set(choices.map(({ metric }) => metric));
  const series = [...metrics]
    .flatMap((metric) => ofMetric(readings, metric))
    .filter(({ metric, labels }) => choices.some((choice) => choice.metric === metric && has(labels, choice.labels)));
  return series.length === 0 ? undefined : { value: totalOf(series) };
}

const has = (labels: Reading['labels'] = {}, wanted: Reading['labels'] = {}): boolean =>
  Object.entries(wanted).every(([name, value]) => labels[name] === value);
