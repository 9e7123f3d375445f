import type { Finding } from '../../../model/health.ts';
import { type CredibleLimits, notCredible } from '../sensor-limits.ts';
import type { CardFiles } from './card-files.ts';

/** Type of the condition that a family of graphics cards declares for it. */
export const OVER_TEMPERATURE = 'OverTemperature';

/** A temperature with the limits of its sensor. `celsius` is absent when the sensor could not be read. */
export interface LimitedTemperature {
  readonly sensor: string;
  readonly celsius?: number;
  readonly critical: number;
  readonly emergency?: number;
}

/** Judges a temperature by the limits of the driver. */
export function overTemperature({ sensor, celsius, critical, emergency }: LimitedTemperature): Finding {
  const base = { type: OVER_TEMPERATURE, instance: sensor };
  if (celsius === undefined) return { ...base, status: 'unknown', reason: 'Unreadable', message: `${sensor} cannot be read` };
  if (emergency !== undefined && celsius >= emergency) {
    const message = `${sensor} at ${celsius} °C, emergency at ${emergency} °C`;
    return { ...base, status: true, reason: 'AtEmergency', severity: 'fatal', message };
  }
  const isOver = celsius >= critical;
  const message = `${sensor} at ${celsius} °C, critical at ${critical} °C`;
  return { ...base, status: isOver, reason: isOver ? 'AtCritical' : 'BelowLimit', message };
}

/**
 * Leaves out limits that are not credible, and a temperature without a limit. An emergency limit alone is the critical one, too. `limits`:
 * those of the card.
 */
export function withCredibleLimits(files: CardFiles, limits: CredibleLimits, temperature: LimitedTemperature): LimitedTemperature[] {
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
