import type { ActivitySpec, IdleThresholds } from '../model/declaration.ts';
import { activityOf, sharesIn, type TrafficSum } from '../model/device-activity.ts';
import { ofMetric, type Readings } from '../model/readings.ts';
import type { UsedDevice } from './holders.ts';

/** How a family shows work, with the thresholds of the configuration. */
export interface FamilyActivity {
  readonly spec: ActivitySpec;
  readonly thresholds?: IdleThresholds[string] | undefined;
  /** Sensors of the power of a whole device, the best first. */
  readonly powerSensors?: readonly string[] | undefined;
}

/** Share of time of each engine, 0 to 1. */
type Engines = Readonly<Record<string, number>>;

/** What one read says about the time before it. */
export interface Work {
  readonly isIdle: boolean | 'unknown';
  /** Each engine that was read; `traffic` is 1 while the device moves data, else 0. */
  readonly engines: Engines;
  /** Monotonic clock up to which it says that. */
  readonly untilMs: number;
  /** Monotonic clock from which on, where only the growth of counters shows the work. */
  readonly sinceMs?: number | undefined;
}

/** Engine name under which the time counts in which a device moved data. */
const TRAFFIC = 'traffic';
const unknownWork = (untilMs: number): Work => ({ isIdle: 'unknown', engines: {}, untilMs });

/** Work of a device. It is unknown when its family declares no activity. */
export function workOfDevice(
  family: FamilyActivity | undefined,
  { readings, processes, current }: UsedDevice,
  monotonicMs: number,
  previous: TrafficSum | undefined,
): { readonly work: Work; readonly trafficSum?: TrafficSum | undefined } {
  if (family === undefined) return { work: unknownWork(monotonicMs) };
  const { spec, thresholds } = family;
  const input = { readings, processes, hasAllProcesses: current?.hasAllProcesses, monotonicMs, previous };
  const { isIdle, engines, bytesPerSecond, untilMs, trafficSum } = activityOf(spec, thresholds, input);
  const shares = { ...enginesIn(input, spec), ...capped(engines) };
  if (spec.traffic !== undefined && bytesPerSecond !== undefined) {
    shares[TRAFFIC] = bytesPerSecond > (thresholds?.['bytes-per-second'] ?? spec.traffic.above) ? 1 : 0;
  }
  const sinceMs = Object.keys(engines).length === 0 ? trafficSum?.sinceMs : undefined;
  return { work: { isIdle, engines: shares, untilMs, sinceMs }, trafficSum };
}

/** Work of one of several containers on a device. `own` are the readings of its processes. A shared device does not show whose data it moves. */
export function workOfSharer(family: FamilyActivity | undefined, device: Work, own: Readings): Work {
  const { untilMs } = device;
  if (device.isIdle !== false) return { ...device, engines: Object.fromEntries(Object.keys(device.engines).map((engine) => [engine, 0])) };
  const engines = enginesIn({ readings: own });
  const declared = family?.spec.utilization;
  if (declared === undefined || Object.keys(engines).length === 0) return unknownWork(untilMs);
  const { above, engines: counted } = declared;
  const isIdle = Object.entries(engines).every(
    ([engine, share]) => share <= (family?.thresholds?.utilization ?? above) || counted?.includes(engine) === false,
  );
  return { isIdle: isIdle && device.engines[TRAFFIC] === 1 ? 'unknown' : isIdle, engines, untilMs };
}

/** A growth tells nothing of who came after this part of its time. */
const FOREIGN_PART = 0.1;

/** Work since a moment at which somebody came. Growth over a longer time than `longestMs` can be that of others who left before. */
export function workSince(work: Work, fromMs: number, longestMs: number): Work {
  const { isIdle, sinceMs, untilMs } = work;
  const growthMs = sinceMs === undefined ? 0 : untilMs - sinceMs;
  const isOfOthers = isIdle === false && growthMs > longestMs && fromMs - (untilMs - growthMs) > FOREIGN_PART * growthMs;
  return isOfOthers ? unknownWork(untilMs) : work;
}

/** Sum of the shares of time of all engines: the weight of a container among those that share a device. */
export const loadOf = (readings: Readings): number => Object.values(enginesIn({ readings })).reduce((sum, share) => sum + share, 0);

/** Sum of all series of a metric. Undefined when none was read. */
export function sumOf(readings: Readings, metric: string): number | undefined {
  const values = ofMetric(readings, metric);
  return values.length === 0 ? undefined : values.reduce((sum, { value }) => sum + Number(value), 0);
}

const enginesIn = (read: Parameters<typeof sharesIn>[0], spec?: ActivitySpec): Record<string, number> =>
  capped(Object.fromEntries(sharesIn(read, spec?.utilization)));

const capped = (engines: Engines): Record<string, number> =>
  Object.fromEntries(Object.entries(engines).map(([engine, share]) => [engine, Math.min(1, Math.max(0, share))]));
