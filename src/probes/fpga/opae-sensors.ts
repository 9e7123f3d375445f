import type { BoardFiles } from './board-files.ts';
import type { Facts } from './facts.ts';
import { metrics } from './metrics.ts';
import { parseFlag, parseRegister } from './values.ts';

const TEMPERATURE_LIMITS = { threshold1: 'max', threshold2: 'crit', threshold_trip: 'emergency' } as const;
const POWER_LIMITS = { threshold1: 'max', threshold2: 'crit' } as const;

/** Reads the sensor files of OPAE's own driver. Temperatures are whole °C in decimal, powers whole watts in hexadecimal; 0 is no value. */
export function addOpaeSensors(facts: Facts, engine: BoardFiles): void {
  const thermal = engine.in(engine.path('thermal_mgmt'));
  const power = engine.in(engine.path('power_mgmt'));
  facts.add(metrics.temperature, nonZero(thermal, 'temperature'), { sensor: 'fpga' });
  for (const [file, limit] of Object.entries(TEMPERATURE_LIMITS)) {
    facts.add(metrics.temperatureLimit, nonZero(thermal, file), { sensor: 'fpga', limit });
  }
  facts.add(metrics.power, nonZero(power, 'consumed'), { sensor: 'fpga' });
  for (const [file, limit] of Object.entries(POWER_LIMITS)) facts.add(metrics.powerLimit, nonZero(power, file), { limit });
  const isReached = thermal.value('threshold1_reached', parseFlag);
  if (isReached === undefined) return;
  facts.add(metrics.throttled, isReached, { reason: 'temperature_max' });
  const message = `temperature threshold 1 ${isReached ? 'reached' : 'not reached'}`;
  facts.find('Throttled', isReached, isReached ? 'TemperatureAlarm' : 'FullSpeed', message, { instance: 'temperature_max' });
}

function nonZero(files: BoardFiles, file: string): number | undefined {
  return Number(files.value(file, parseRegister) ?? 0n) || undefined;
}
