import { parseInteger, type SensorKind } from '../../../host/hwmon.ts';
import { defined } from '../../../model/defined.ts';
import type { Reading } from '../../../model/metric.ts';
import type { DeviceFiles } from '../device-files.ts';
import type { CredibleLimits } from '../sensor-limits.ts';
import { plainText } from '../text.ts';
import { type LimitedTemperature, withCredibleLimits } from './temperature.ts';

/** A file of a hardware monitor that is read at each refresh. */
export interface Channel {
  /** Path below the directory of the card. */
  readonly file: string;
  /** Absent for clocks, which no sensor measures. */
  readonly kind?: SensorKind;
  readonly metric: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly scale: number;
  /** Zero means that the sensor is not wired. */
  readonly isAbsentAtZero?: true;
  /** Limits of a temperature, in °C. */
  readonly critical?: number;
  readonly emergency?: number;
}

export interface ChannelSample {
  readonly readings: readonly Reading[];
  readonly temperatures: readonly LimitedTemperature[];
}

/** Integer of a file of a monitor. */
export const integer = (text: string): number | undefined => parseInteger(plainText(text));

/** Reads the channels. A channel without a value gives no reading. `credible`: the limits of the card. */
export function readChannels(files: DeviceFiles, credible: CredibleLimits, channels: readonly Channel[]): ChannelSample {
  const readings: Reading[] = [];
  const temperatures: LimitedTemperature[] = [];
  for (const { file, kind, metric, labels, scale, isAbsentAtZero, critical, emergency } of channels) {
    const raw = files.live(file, integer).value;
    const isUnwired = raw === 0 && isAbsentAtZero === true;
    const value = raw === undefined || isUnwired ? undefined : files.possible(file, kind, raw / scale);
    if (value !== undefined) readings.push({ metric, labels, value });
    if (critical === undefined || isUnwired) continue;
    const temperature = defined({ sensor: labels.sensor as string, critical, celsius: value, emergency });
    temperatures.push(...withCredibleLimits(files, credible, temperature));
  }
  return { readings, temperatures };
}
