import type { SensorKind } from '../../host/hwmon.ts';
import type { DeviceFiles } from '../kit/device-files.ts';
import { notCredible } from '../kit/sensor-limits.ts';
import { metrics } from './metrics.ts';
import type { ReportBuilder } from './report-builder.ts';
import type { Survey } from './survey.ts';
import { parseFlag, parseRegister } from './values.ts';

const TEMPERATURE_LIMITS = { threshold2: 'crit', threshold_trip: 'emergency' } as const;
const POWER_LIMITS = { threshold1: 'max', threshold2: 'crit' } as const;

/** Reads the sensor files of OPAE's own driver. Temperatures are whole °C in decimal, powers whole watts in hexadecimal; 0 is no value. */
export function addOpaeSensors(builder: ReportBuilder, { memory, problems }: Survey, device: string, engine: DeviceFiles): void {
  const thermal = engine.below('thermal_mgmt');
  const power = engine.below('power_mgmt');
  const celsius = (file: string): number | undefined => measuredBy(thermal, 'temp', file);
  const watts = (file: string): number | undefined => measuredBy(power, 'power', file);
  const now = celsius('temperature');
  builder.add(metrics.temperature, now, { sensor: 'fpga' });
  const threshold = celsius('threshold1');
  builder.add(metrics.temperatureLimit, threshold, { sensor: 'fpga', limit: 'max' });
  for (const [file, limit] of Object.entries(TEMPERATURE_LIMITS))
    builder.add(metrics.temperatureLimit, celsius(file), { sensor: 'fpga', limit });
  builder.add(metrics.power, watts('consumed'), { sensor: 'fpga' });
  for (const [file, limit] of Object.entries(POWER_LIMITS)) builder.add(metrics.powerLimit, watts(file), { limit });
  const isReached = thermal.value('threshold1_reached', parseFlag);
  if (isReached === undefined) return;
  if (now !== undefined && !memory.limits.has(`${device}/threshold1`, now, threshold ?? 0, isReached)) {
    problems.push({ code: 'limit-not-credible', message: notCredible('fpga', threshold ?? 0), device });
    return;
  }
  builder.add(metrics.throttled, isReached, { reason: 'temperature_max' });
  const message = `temperature threshold 1 ${isReached ? 'reached' : 'not reached'}`;
  builder.find('Throttled', isReached, isReached ? 'TemperatureAlarm' : 'FullSpeed', message, { instance: 'temperature_max' });
}

const measuredBy = (files: DeviceFiles, kind: SensorKind, file: string): number | undefined =>
  files.possible(file, kind, Number(files.value(file, parseRegister) ?? 0n) || undefined);
