import type { DeviceFiles } from '../kit/device-files.ts';
import { findMonitor as describe, type MonitorSample, monitorsBelow, readMonitors, type SensorRow } from '../kit/hwmon.ts';
import type { CredibleLimits } from '../kit/temperature.ts';
import { parseFlag } from '../kit/text.ts';
import { metrics } from './metrics.ts';

/** Temperatures of one drive by the kernel's monitor. */
export interface TemperatureSample extends MonitorSample {
  /** Bit of the drive's own critical warning; absent when it was not read. */
  readonly hasAlarm?: boolean;
}

/** 0 K: the drive does not measure it. */
const ABSOLUTE_ZERO = -273.15;
export const COMPOSITE = 'composite';

/** Channel 1 is the composite temperature, and channel N is sensor N - 1. Kernels that give no label number them in the same way. */
const SENSORS: readonly SensorRow[] = [
  {
    kind: 'temp',
    metric: metrics.temperature,
    labels: ({ label, number }) => ({ sensor: label || (number === 1 ? COMPOSITE : `sensor_${number - 1}`) }),
    absent: () => ABSOLUTE_ZERO,
    limits: { of: { crit: 'crit' } },
  },
];

/** Directory of the drive's monitor, below the directory of its controller; undefined when the kernel has none. */
export const findMonitor = (files: DeviceFiles): string | undefined =>
  monitorsBelow(files).find((directory) => files.sys.text(files.path(`${directory}/name`)) === 'nvme');

/**
 * Reads the monitor: one SMART command of the kernel, which serves all its files for a second. `temp<N>_max` and `temp<N>_min` are never
 * opened, because each sends a Get Features command. `limits`: those of the drive.
 */
export function readTemperatures(files: DeviceFiles, monitor: string, credible: CredibleLimits): TemperatureSample {
  const { readings, temperatures } = readMonitors(files, credible, describe(files, monitor, SENSORS), 'once');
  // The drive has one warning for all its sensors.
  const hasAlarm = files.value(`${monitor}/temp1_alarm`, parseFlag);
  const limits = temperatures.flatMap(({ sensor, celsius, critical }) =>
    celsius === undefined ? [] : [{ metric: metrics.temperatureLimit.name, labels: { sensor, limit: 'crit' }, value: critical }],
  );
  return { readings: [...readings, ...limits], temperatures, ...(hasAlarm !== undefined && { hasAlarm }) };
}
