import type { ActivitySpec, IdleThresholds } from '../model/declaration.ts';
import { activityOf, sharesIn, type TrafficSum } from '../model/device-activity.ts';
import { ofMetric, Readings } from '../model/readings.ts';
import type { ContainerReadings } from '../model/snapshot.ts';
import type { UsedDevice } from './holders.ts';

/** How a family shows work, with the thresholds of the configuration. */
export interface FamilyActivity {
  readonly spec: ActivitySpec;
  readonly thresholds?: IdleThresholds[string] | undefined;
  /** Sensors of the power of a whole device, the best first. */
  readonly powerSensors?: readonly string[] | undefined;
}

/** What one read says about the time before it. */
export interface Work {
  readonly isIdle: boolean | 'unknown';
  /** Share of time of each engine that was read, 0 to 1; `traffic` is 1 while the device moves data, else 0. */
  readonly engines: Readonly<Record<string, number>>;
  /** Monotonic clock up to which it says that. */
  readonly untilMs: number;
  /** Monotonic clock from which on, where only the growth of counters shows the work. */
  readonly sinceMs?: number | undefined;
}

/** Engine name under which the time counts in which a device moved data. */
const TRAFFIC = 'traffic';
const NO_ENGINES: Readonly<Record<string, number>> = {};

/** Work of a device. It is unknown when its family declares no activity. */
export function workOfDevice(
  family: FamilyActivity | undefined,
  { readings, processes, current }: UsedDevice,
  monotonicMs: number,
  previous: TrafficSum | undefined,
): { readonly work: Work; readonly trafficSum?: TrafficSum } {
  if (family === undefined) return { work: { isIdle: 'unknown', engines: NO_ENGINES, untilMs: monotonicMs } };
  const { spec, thresholds } = family;
  const input = { readings, processes, hasAllProcesses: current?.hasAllProcesses, monotonicMs, previous };
  const { isIdle, engines, bytesPerSecond, untilMs, trafficSum } = activityOf(spec, thresholds, input);
  const shares: Record<string, number> = { ...enginesIn(input, spec), ...capped(engines) };
  if (spec.traffic !== undefined && bytesPerSecond !== undefined) {
    shares[TRAFFIC] = bytesPerSecond > (thresholds?.['bytes-per-second'] ?? spec.traffic.above) ? 1 : 0;
  }
  const sinceMs = Object.keys(engines).length === 0 ? trafficSum?.sinceMs : undefined;
  return { work: { isIdle, engines: shares, untilMs, sinceMs }, ...(trafficSum === undefined ? {} : { trafficSum }) };
}

/**
 * Work of one of several containers on a device. `own` are the readings of its processes. A shared device does not show whose data it moves.
 */
export function workOfSharer(family: FamilyActivity | undefined, device: Work, own: Readings): Work {
  const { untilMs } = device;
  if (device.isIdle !== false) return { isIdle: device.isIdle, engines: zeros(device.engines), untilMs };
  const engines = enginesIn({ readings: own });
  const declared = family?.spec.utilization;
  if (declared === undefined || Object.keys(engines).length === 0) return { isIdle: 'unknown', engines: NO_ENGINES, untilMs };
  const { above, engines: counted } = declared;
  const isWork = ([engine, share]: [string, number]): boolean =>
    share > (family?.thresholds?.utilization ?? above) && (counted === undefined || counted.includes(engine));
  const isIdle = !Object.entries(engines).some(isWork);
  return { isIdle: isIdle && device.engines[TRAFFIC] === 1 ? 'unknown' : isIdle, engines, untilMs };
}

/** A growth tells nothing of who came after this part of its time. */
const FOREIGN_PART = 0.1;

/** Work since a moment at which somebody came. Growth over a longer time than `longestMs` can be that of others who left before. */
export function workSince(work: Work, fromMs: number, longestMs: number): Work {
  const { isIdle, sinceMs, untilMs } = work;
  const growthMs = sinceMs === undefined ? 0 : untilMs - sinceMs;
  const isOfOthers = isIdle === false && growthMs > longestMs && fromMs - (untilMs - growthMs) > FOREIGN_PART * growthMs;
  return isOfOthers ? { isIdle: 'unknown', engines: NO_ENGINES, untilMs } : work;
}

/** Sum of the shares of time of all engines: the weight of a container among those that share a device. */
export function loadOf(readings: Readings): number {
  return Object.values(enginesIn({ readings })).reduce((sum, share) => sum + share, 0);
}

/** Sum of all series of a metric. Undefined when none was read. */
export function sumOf(readings: Readings, metric: string): number | undefined {
  let sum: number | undefined;
  for (const { value } of ofMetric(readings, metric)) sum = (sum ?? 0) + Number(value);
  return sum;
}

const enginesIn = (read: Parameters<typeof sharesIn>[0], spec?: ActivitySpec): Readonly<Record<string, number>> =>
  capped(Object.fromEntries(sharesIn(read, spec?.utilization)));

const within = (share: number): number => Math.min(1, Math.max(0, share));
const capped = (engines: Readonly<Record<string, number>>): Record<string, number> =>
  Object.fromEntries(Object.entries(engines).map(([engine, share]) => [engine, within(share)]));
const zeros = (engines: Readonly<Record<string, number>>): Record<string, number> =>
  Object.fromEntries(Object.keys(engines).map((engine) => [engine, 0]));

/** Readings of containers, found by container and device. The index is made at the first question. */
export class OwnReadings {
  readonly #all: readonly ContainerReadings[];
  #index: ReadonlyMap<string, Readings> | undefined;

  constructor(all: readonly ContainerReadings[]) {
    this.#all = all;
  }

  /** `holder`: namespace, pod and container as one text. `deviceId`: the device's name within its family. */
  of(holder: string, deviceId: string): Readings {
    this.#index ??= new Map(
      this.#all.map(({ namespace, pod, container, device, readings }) => [`${namespace}/${pod}/${container} ${device}`, readings]),
    );
    return this.#index.get(`${holder} ${deviceId}`) ?? Readings.NONE;
  }
}
