import type { DeviceProcess } from './collection.ts';
import type { ActivitySpec, DoubtedUtilization, IdleThresholds } from './declaration.ts';
import { type Labels, readMsOf, type SeriesChoice, type Value } from './metric.ts';
import { ofMetric, type Readings, seriesValue } from './readings.ts';
import { shared } from './shared-metrics.ts';

/** Sum of the byte counters of a device at one read. The next read needs it, because only the growth shows traffic. Plain data. */
export interface TrafficSum {
  readonly bytes: Value;
  /** Number of series in the sum. Two sums of different series have no growth. */
  readonly series: number;
  /** Monotonic clock of the read of the counters, which can be an earlier one than the device's. */
  readonly monotonicMs: number;
  /** Growth since the read before it; absent while there was none. */
  readonly bytesPerSecond?: number;
  /** Monotonic clock of that read. */
  readonly sinceMs?: number;
}

export interface ActivityInput {
  readonly readings: Readings;
  readonly processes: readonly DeviceProcess[];
  readonly hasAllProcesses?: boolean | undefined;
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
  /**
   * Monotonic clock up to which the signals tell this: their own read where it was an earlier one than the device's. What came after it is
   * not known yet.
   */
  readonly untilMs: number;
  /** What the next read needs as `previous`. Absent when a declared counter was not read. */
  readonly trafficSum?: TrafficSum;
}

type Signal = DeviceActivity['isIdle'];

/** Classifies what one device does by the definition of its family. Pure function. */
export function activityOf(spec: ActivitySpec, thresholds: IdleThresholds[string] | undefined, input: ActivityInput): DeviceActivity {
  const work = spec.utilization && workOf(spec.utilization, thresholds?.utilization ?? spec.utilization.above, input);
  const traffic = spec.traffic && trafficOf(spec.traffic, thresholds?.['bytes-per-second'] ?? spec.traffic.above, input);
  const signals = [work, traffic].filter((signal) => signal !== undefined);
  const isIdle = allOf(signals.map((signal) => signal.isIdle));
  const times = signals.filter((signal) => signal.isIdle === isIdle).map((signal) => signal.untilMs);
  // The latest sign of work is enough. Rest needs each signal.
  const untilMs = isIdle === false ? Math.max(...times) : Math.min(input.monotonicMs, ...times);
  return { isIdle, engines: work?.engines ?? {}, untilMs, ...traffic?.seen };
}

/** A device without any declared signal is unknown. */
function allOf(declared: readonly Signal[]): Signal {
  if (declared.includes(false)) return false;
  return declared.length === 0 || declared.includes('unknown') ? 'unknown' : true;
}

function workOf(
  spec: NonNullable<ActivitySpec['utilization']>,
  above: number,
  input: ActivityInput,
): Pick<DeviceActivity, 'isIdle' | 'engines' | 'untilMs'> {
  const { readings, processes, monotonicMs } = input;
  const { engines: counted } = spec;
  const counts = (engine: string): boolean => counted === undefined || counted.includes(engine);
  const means = meansIn(readings, spec);
  const shares = new Map([...sharesIn(input, spec)].filter(([engine]) => counts(engine)));
  const isRead = counted === undefined ? shares.size > 0 : counted.every((engine) => shares.has(engine));
  for (const { utilization = {} } of processes) {
    for (const [engine, share] of Object.entries(utilization)) {
      if (counts(engine) && !means.has(engine)) shares.set(engine, Math.max(share, shares.get(engine) ?? 0));
    }
  }
  const engines = Object.fromEntries([...shares].filter(([, share]) => share > above));
  const isIdle = Object.keys(engines).length > 0 ? false : isRead ? true : 'unknown';
  return { isIdle, engines, untilMs: sharesReadMs(readings, spec, monotonicMs) };
}

/** Time of the read of the shares: the latest of them, because each read of them is a new look. */
function sharesReadMs(readings: Readings, { means = {} }: NonNullable<ActivitySpec['utilization']>, deviceMs: number): number {
  const shares = new Set([shared.utilization.name, ...Object.values(means).map(({ metric }) => metric)]);
  const times = [...shares].flatMap((metric) => ofMetric(readings, metric).map((reading) => readMsOf(reading, deviceMs)));
  return times.length === 0 ? deviceMs : Math.max(...times);
}

/** Share of time of each engine that was read: the mean since the read before where the family has one, otherwise the utilization. */
export function sharesIn(
  input: Pick<ActivityInput, 'readings'> & Partial<ActivityInput>,
  spec: ActivitySpec['utilization'],
): Map<string, number> {
  const { readings } = input;
  const shares = new Map<string, number>();
  for (const { labels, value } of ofMetric(readings, shared.utilization.name)) {
    const engine = labels?.engine;
    if (engine !== undefined) shares.set(engine, Number(value));
  }
  if (spec?.doubted !== undefined && isAtRest(input, spec.doubted)) shares.set(spec.doubted.engine, 0);
  for (const [engine, mean] of meansIn(readings, spec)) shares.set(engine, mean);
  return shares;
}

/** Whether everything but the utilization of the engine says that the device rests. */
function isAtRest(
  { readings, processes, hasAllProcesses }: Pick<ActivityInput, 'readings'> & Partial<ActivityInput>,
  { still, clock, clockShare, power: { sensors, limits }, powerShare }: DoubtedUtilization,
): boolean {
  if (hasAllProcesses !== true || processes?.length !== 0) return false;
  const one = ({ name: metric }: { readonly name: string }, labels: Labels) => seriesValue(readings, { metric, labels });
  const first = (metric: { readonly name: string }, label: string, names: readonly string[]): number | undefined =>
    names.map((name) => one(metric, { [label]: name })).find((value) => value !== undefined);
  const isBelow = (value: number | undefined, most: number | undefined, share: number): boolean =>
    value !== undefined && most !== undefined && most > 0 && value <= share * most;
  return (
    one(shared.utilization, { engine: still }) === 0 &&
    isBelow(one(shared.clock, { clock }), one(shared.clockMax, { clock }), clockShare) &&
    isBelow(first(shared.power, 'sensor', sensors), first(shared.powerLimit, 'limit', limits), powerShare)
  );
}

function meansIn(readings: Readings, { means = {} }: Pick<NonNullable<ActivitySpec['utilization']>, 'means'> = {}): Map<string, number> {
  const found = new Map<string, number>();
  for (const engine in means) {
    const mean = seriesValue(readings, means[engine] as SeriesChoice);
    if (mean !== undefined) found.set(engine, mean);
  }
  return found;
}

interface Traffic {
  readonly isIdle: Signal;
  readonly untilMs: number;
  readonly seen: Pick<DeviceActivity, 'bytesPerSecond' | 'trafficSum'>;
}

function trafficOf({ metrics }: NonNullable<ActivitySpec['traffic']>, above: number, input: ActivityInput): Traffic {
  const sum = sumOf(metrics, input);
  if (sum === undefined) return { isIdle: 'unknown', untilMs: input.monotonicMs, seen: {} };
  const trafficSum = after(input.previous, sum);
  const { bytesPerSecond, monotonicMs: untilMs } = trafficSum;
  if (bytesPerSecond === undefined) return { isIdle: 'unknown', untilMs, seen: { trafficSum } };
  return { isIdle: bytesPerSecond <= above, untilMs, seen: { bytesPerSecond, trafficSum } };
}

function sumOf(metrics: readonly string[], { readings, monotonicMs }: ActivityInput): TrafficSum | undefined {
  const found = metrics.map((metric) => ofMetric(readings, metric));
  if (found.some(({ length }) => length === 0)) return undefined;
  const counters = found.flat();
  if (!counters.every(({ value }) => typeof value === 'bigint' || Number.isFinite(value))) return undefined;
  const sum = counters.reduce((total, { value }) => total + BigInt(typeof value === 'bigint' ? value : Math.trunc(value)), 0n);
  const bytes = sum <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(sum) : sum;
  return { bytes, series: counters.length, monotonicMs: Math.max(...counters.map((counter) => readMsOf(counter, monotonicMs))) };
}

/** The sum with its growth. Without a growth after a counter was set back, and between reads of different series. */
function after(before: TrafficSum | undefined, now: TrafficSum): TrafficSum {
  if (before === undefined || before.series !== now.series) return now;
  // The read of before, told again.
  if (now.monotonicMs <= before.monotonicMs) return before;
  const grown = Number(BigInt(now.bytes) - BigInt(before.bytes));
  const sinceMs = before.monotonicMs;
  return grown < 0 ? now : { ...now, sinceMs, bytesPerSecond: (grown * 1_000) / (now.monotonicMs - sinceMs) };
}
