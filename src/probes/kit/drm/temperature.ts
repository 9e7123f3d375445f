import { minutes, seconds } from '../../../model/duration.ts';
import type { ConditionSpec, Finding } from '../../../model/health.ts';
import type { DeviceFiles } from '../device-files.ts';
import { type ReasonOf, raise } from '../finding.ts';
import { type CredibleLimits, notCredible } from '../sensor-limits.ts';

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
    raise(overTemperatureCondition, reason, { instance: sensor, status, message });
  if (celsius === undefined) return over('Unreadable', 'unknown', `${sensor} cannot be read`);
  if (emergency !== undefined && celsius >= emergency) {
    return { ...over('AtEmergency', true, `${sensor} at ${celsius} °C, emergency at ${emergency} °C`), severity: 'fatal' };
  }
  const isOver = celsius >= critical;
  return over(isOver ? 'AtCritical' : 'BelowLimit', isOver, `${sensor} at ${celsius} °C, critical at ${critical} °C`);
}

/**
 * Leaves out limits that are not credible, and a temperature without a limit. An emergency limit alone is the critical one, too. `limits`:
 * those of the card.
 */
export function withCredibleLimits(files: DeviceFiles, limits: CredibleLimits, temperature: LimitedTemperature): LimitedTemperature[] {
  const { sensor, celsius, critical, emergency } = temperature;
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
