import type { DeviceFiles } from '../kit/device-files.ts';
import { type Channel, findMonitor, type MonitorSample, type Monitors, parseInteger, readMonitors, type SensorRow } from '../kit/hwmon.ts';
import type { CredibleLimits } from '../kit/temperature.ts';
import { metrics } from './metrics.ts';

/** What is known of a card's hardware monitor without reading its sensors. */
export interface CardMonitor extends Monitors {
  /** `hwmon/hwmon4`. */
  readonly directory: string;
  /** Largest value of `pwm1`; absent without a fan. */
  readonly fanMost?: number;
}

/** Names of clocks, keyed by label. */
const CLOCKS: Readonly<Record<string, string>> = { sclk: 'graphics', mclk: 'memory' };

/** Name of a temperature. MI300 has no edge temperature, so the label decides and not the number. */
const temperatureOf = ({ label, name }: Channel): string => (label === 'mem' ? 'memory' : label || (name === 'temp1' ? 'edge' : name));

/** Power 1 is the power of the card, and the others are averages over other times. A sum over sensors must not count power twice. */
function powerOf({ name, label, isAverage, attribute }: Channel): string {
  const power = name === 'power1' ? 'gpu' : label || name;
  return isAverage && (name !== 'power1' || attribute('input') !== undefined) ? `${power}_average` : power;
}

const SENSORS: readonly SensorRow[] = [
  {
    kind: 'temp',
    metric: metrics.temperature,
    labels: (channel) => ({ sensor: temperatureOf(channel) }),
    absent: (channel) => (temperatureOf(channel) === 'memory' ? 0 : undefined),
    limits: { metric: metrics.temperatureLimit, of: { crit: 'crit', emergency: 'emergency' } },
  },
  // No awake card draws 0 W.
  { kind: 'power', metric: metrics.power, labels: (channel) => ({ sensor: powerOf(channel) }), absent: () => 0 },
  {
    kind: 'power',
    labels: () => ({}),
    limits: {
      metric: metrics.powerLimit,
      of: { cap: 'enforced', cap_default: 'default', cap_min: 'minimum', cap_max: 'maximum' },
      labels: ({ number }, limit) => (number === 1 ? { limit } : undefined),
      isZeroReal: true,
    },
  },
  {
    kind: 'freq',
    metric: metrics.clock,
    labels: ({ label, number }) => ({ clock: (CLOCKS[label] ?? label) || (number === 1 ? 'graphics' : 'memory') }),
  },
  { kind: 'in', metric: metrics.voltage, labels: ({ label, name }) => ({ sensor: label || name }) },
  { kind: 'fan', metric: metrics.fanSpeed, labels: ({ number }) => ({ fan: String(number - 1) }) },
];

/** Finds the monitor of the driver. A card may have other monitors, of its cables. */
export function findCardMonitor(files: DeviceFiles): CardMonitor | undefined {
  const directory = files
    .names('hwmon')
    .map((name) => `hwmon/${name}`)
    .find((each) => /^(?:amdgpu|radeon)$/.test(files.text(`${each}/name`) ?? ''));
  if (directory === undefined) return undefined;
  const fanMost = files.names(directory).includes('pwm1') ? files.once(`${directory}/pwm1_max`, parseInteger).value : undefined;
  return { ...findMonitor(files, directory, SENSORS), directory, ...(fanMost !== undefined && fanMost > 0 && { fanMost }) };
}

export function readCardMonitor(files: DeviceFiles, credible: CredibleLimits, monitor: CardMonitor): MonitorSample {
  const { readings, temperatures } = readMonitors(files, credible, monitor, 'live');
  const { directory, fanMost } = monitor;
  const pwm = fanMost === undefined ? undefined : files.live(`${directory}/pwm1`, parseInteger).value;
  if (fanMost === undefined || pwm === undefined) return { readings, temperatures };
  return { readings: [...readings, { metric: metrics.fanRatio.name, labels: { fan: '0' }, value: pwm / fanMost }], temperatures };
}
