import type { ActivitySpec, IdleThresholds } from './activity.ts';
import type { DeviceProcess } from './collection.ts';
import { type Reading, type SeriesChoice, seriesValue, type Value } from './metric.ts';
import { shared } from './shared-metrics.ts';

/** Sum of the byte counters of a device at one read. The next read needs it, because only the growth shows traffic. Plain data. */
export interface TrafficSum {
  readonly bytes: Value;
  /** Number of series in the sum. Two sums of different series have no growth. */
  readonly series: number;
  /** Monotonic clock of the read. */
  readonly monotonicMs: number;
}

export interface ActivityInput {
  readonly readings: readonly Reading[];
  readonly processes: readonly DeviceProcess[];
  /** Monotonic clock of the read that gave both. */
  readonly monotonicMs: number;
  /** Result of an earlier read. */
  readonly previous?: TrafficSum | undefined;
}

export interface DeviceActivity {
  /** False as soon as one signal shows work. True only when each declared signal was read and shows none. */
  readonly isIdle: boolean | 'unknown';
  /** Engines above the threshold, with their share of time, 0 to 1. Of an engine and its processes the larger value counts. */
  readonly engines: Readonly<Record<string, number>>;
  /** Absent while no growth is known. */
  readonly bytesPerSecond?: number;
  /** What the next read needs as `previous`. Absent when a declared counter was not read. */
  readonly trafficSum?: TrafficSum;
}

type Signal = DeviceActivity['isIdle'];

/** Classifies what one device does by the definition of its family. Pure function. */
export function activityOf(spec: ActivitySpec, thresholds: IdleThresholds[string] | undefined, input: ActivityInput): DeviceActivity {
  const work = spec.utilization && workOf(spec.utilization, thresholds?.utilization ?? spec.utilization.above, input);
  const traffic = spec.traffic && trafficOf(spec.traffic, thresholds?.['bytes-per-second'] ?? spec.traffic.above, input);
  return { isIdle: allOf([work?.isIdle, traffic?.isIdle]), engines: work?.engines ?? {}, ...traffic?.seen };
}

/** A device without any declared signal is unknown. */
function allOf(signals: readonly (Signal | undefined)[]): Signal {
  const declared = signals.filter((signal) => signal !== undefined);
  if (declared.includes(false)) return false;
  return declared.length === 0 || declared.includes('unknown') ? 'unknown' : true;
}

function workOf(
  spec: NonNullable<ActivitySpec['utilization']>,
  above: number,
  { readings, processes }: ActivityInput,
): Pick<DeviceActivity, 'isIdle' | 'engines'> {
  const { engines: counted } = spec;
  const counts = (engine: string): boolean => counted === undefined || counted.includes(engine);
  const means = meansIn(readings, spec);
  const shares = new Map([...sharesIn(readings, spec)].filter(([engine]) => counts(engine)));
  const isRead = counted === undefined ? shares.size > 0 : counted.every((engine) => shares.has(engine));
  for (const { utilization = {} } of processes) {
    for (const [engine, share] of Object.entries(utilization)) {
      if (counts(engine) && !means.has(engine)) shares.set(engine, Math.max(share, shares.get(engine) ?? 0));
    }
  }
  const engines = Object.fromEntries([...shares].filter(([, share]) => share > above));
  return { isIdle: Object.keys(engines).length > 0 ? false : isRead ? true : 'unknown', engines };
}

/** Share of time of each engine that was read: the mean since the read before where the family has one, otherwise the utilization. */
export function sharesIn(readings: readonly Reading[], spec: ActivitySpec['utilization']): Map<string, number> {
  const shares = new Map<string, number>();
  for (const { metric, labels, value } of readings) {
    const engine = labels?.engine;
    if (metric === shared.utilization.name && engine !== undefined) shares.set(engine, Number(value));
  }
  for (const [engine, mean] of meansIn(readings, spec)) shares.set(engine, mean);
  return shares;
}

function meansIn(
  readings: readonly Reading[],
  { means = {} }: Pick<NonNullable<ActivitySpec['utilization']>, 'means'> = {},
): Map<string, number> {
  const found = new Map<string, number>();
  for (const engine in means) {
    const mean = seriesValue(readings, means[engine] as SeriesChoice);
    if (mean !== undefined) found.set(engine, mean);
  }
  return found;
}

interface Traffic {
  readonly isIdle: Signal;
  readonly seen: Pick<DeviceActivity, 'bytesPerSecond' | 'trafficSum'>;
}

function trafficOf({ metrics }: NonNullable<ActivitySpec['traffic']>, above: number, input: ActivityInput): Traffic {
  const trafficSum = sumOf(metrics, input);
  if (trafficSum === undefined) return { isIdle: 'unknown', seen: {} };
  const bytesPerSecond = growthOf(input.previous, trafficSum);
  if (bytesPerSecond === undefined) return { isIdle: 'unknown', seen: { trafficSum } };
  return { isIdle: bytesPerSecond <= above, seen: { bytesPerSecond, trafficSum } };
}

function sumOf(metrics: readonly string[], { readings, monotonicMs }: ActivityInput): TrafficSum | undefined {
  const counters = readings.filter(({ metric }) => metrics.includes(metric));
  if (!metrics.every((name) => counters.some(({ metric }) => metric === name))) return undefined;
  if (!counters.every(({ value }) => typeof value === 'bigint' || Number.isFinite(value))) return undefined;
  const sum = counters.reduce((total, { value }) => total + BigInt(typeof value === 'bigint' ? value : Math.trunc(value)), 0n);
  const bytes = sum <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(sum) : sum;
  return { bytes, series: counters.length, monotonicMs };
}

/** Bytes per second; undefined after a counter was set back, and between reads of different series. */
function growthOf(before: TrafficSum | undefined, now: TrafficSum): number | undefined {
  if (before === undefined || before.series !== now.series || now.monotonicMs <= before.monotonicMs) return undefined;
  const grown = Number(BigInt(now.bytes) - BigInt(before.bytes));
  return grown < 0 ? undefined : (grown * 1_000) / (now.monotonicMs - before.monotonicMs);
}
