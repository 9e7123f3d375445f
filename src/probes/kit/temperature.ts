import type { ProblemSpec } from '../../model/collection.ts';
import { minutes, seconds } from '../../model/duration.ts';
import type { ConditionSpec, Finding } from '../../model/health.ts';
import type { DeviceFiles } from './device-files.ts';
import { declaredFinding, type ReasonOf } from './finding.ts';

/** Problems of a family whose sensors are checked. */
export const sensorProblems = [
  {
    code: 'impossible-value',
    meaning: 'A sensor reports a value, or a limit, that no part can have, such as 4 million °C. It is ignored.',
    remedy: 'Update the firmware of the device and its driver. If it remains, report the file with the kernel and the device.',
  },
  {
    code: 'limit-not-credible',
    meaning: 'A cool part was above its critical limit from the first reading on, so the limit is not used. No condition follows from it.',
    remedy: 'Compare the limit with the manual of the device. A lower reading, or another limit, makes the agent use the limit again.',
  },
] as const satisfies readonly ProblemSpec[];

/**
 * Below this reading, in °C, a part is cool: it is the end of the commercial temperature range, which all parts of a board support.
 */
const COOL = 70;

/**
 * Limits of one device or one family. A limit is not credible when a cool part exceeds it at the first reading: some controllers report the
 * limit of an unused sensor. A later reading below the limit makes it credible.
 */
export class CredibleLimits {
  readonly #limits = new Map<string, { readonly limit: number; readonly isCredible: boolean }>();

  /** Returns whether the limit is credible. Both values are in °C. `isReached`: what the device itself reports. */
  has(key: string, celsius: number, limit: number, isReached: boolean = celsius >= limit): boolean {
    const before = this.#limits.get(key);
    const isCredible = !isReached || (before?.limit === limit ? before.isCredible : celsius >= COOL);
    this.#limits.set(key, { limit, isCredible });
    return isCredible;
  }
}

/** Message of the problem `limit-not-credible`. */
export const notCredible = (sensor: string, limit: number): string =>
  `the critical limit of ${sensor} is ${limit} °C, and the cool part was above it from the first reading on`;

/** Condition of each family of graphics cards, which adds the source of its limits. */
export const overTemperatureCondition = {
  type: 'OverTemperature',
  class: 'self-clearing',
  severity: 'degraded',
  reasons: ['AtCritical', 'AtEmergency', 'BelowLimit', 'Unreadable'],
  meaning: 'A sensor is at or above its critical temperature. At the emergency temperature the finding is fatal.',
  remedy: 'check-cooling',
  forMs: seconds(30),
  recoveryMs: minutes(1),
} as const satisfies Omit<ConditionSpec, 'source'>;

/** A temperature with the limits of its sensor. `celsius` is absent when the sensor could not be read. */
export interface LimitedTemperature {
  readonly sensor: string;
  readonly celsius?: number;
  readonly critical: number;
  readonly emergency?: number;
}

/** Judges a temperature by the limits of the driver. */
export function overTemperature({ sensor, celsius, critical, emergency }: LimitedTemperature): Finding {
  const over = (reason: ReasonOf<typeof overTemperatureCondition>, status: boolean | 'unknown', message: string): Finding =>
    declaredFinding(overTemperatureCondition, reason, { instance: sensor, status, message });
  if (celsius === undefined) return over('Unreadable', 'unknown', `${sensor} cannot be read`);
  if (emergency !== undefined && celsius >= emergency) {
    return { ...over('AtEmergency', true, `${sensor} at ${celsius} °C, emergency at ${emergency} °C`), severity: 'fatal' };
  }
  const isOver = celsius >= critical;
  return over(isOver ? 'AtCritical' : 'BelowLimit', isOver, `${sensor} at ${celsius} °C, critical at ${critical} °C`);
}

/** A temperature as its sensor and its driver report it. */
interface SensorTemperature extends Partial<LimitedTemperature> {
  readonly sensor: string;
}

/**
 * Leaves out limits that are not credible, and a temperature without a limit. An emergency limit is judged only beside a critical one. `limits`:
 * those of the device.
 */
export function withCredibleLimits(files: DeviceFiles, limits: CredibleLimits, temperature: SensorTemperature): LimitedTemperature[] {
  const { sensor, celsius, critical, emergency } = temperature;
  if (critical === undefined) return [];
  const isCredible = (name: string, limit: number): boolean => {
    if (celsius === undefined || limits.has(`${sensor} ${name}`, celsius, limit)) return true;
    files.problem('limit-not-credible', notCredible(sensor, limit));
    return false;
  };
  const kept = {
    ...(emergency !== undefined && isCredible('emergency', emergency) && { critical: emergency, emergency }),
    ...(isCredible('critical', critical) && { critical }),
  };
  return kept.critical === undefined ? [] : [{ sensor, ...(celsius !== undefined && { celsius }), critical: kept.critical, ...kept }];
}
