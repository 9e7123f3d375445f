import { sensorSlug } from '../../host/hwmon.ts';
import type { MetricSpec, Reading } from '../../model/metric.ts';
import type { DeviceFiles } from '../kit/device-files.ts';
import { type Channel, type ChannelSample, integer, readChannels } from '../kit/drm/channels.ts';
import type { CredibleLimits } from '../kit/sensor-limits.ts';
import { metrics } from './metrics.ts';

/** What is known of a card's hardware monitor without reading its sensors. */
export interface Monitor {
  /** `hwmon/hwmon4`. */
  readonly directory: string;
  readonly channels: readonly Channel[];
  /** Readings of limits, which rarely change. */
  readonly limits: readonly Reading[];
  /** Largest value of `pwm1`; absent without a fan. */
  readonly fanMost?: number;
}

const MILLI = 1_000;
const MICRO = 1_000_000;

/** Finds the channels of the monitor of the driver and reads labels and limits. A card may have other monitors, of its cables. */
export function findMonitor(files: DeviceFiles): Monitor | undefined {
  for (const name of files.names('hwmon')) {
    const directory = `hwmon/${name}`;
    const driver = files.text(`${directory}/name`);
    if (driver === 'amdgpu' || driver === 'radeon') return describe(files, directory);
  }
  return undefined;
}

function describe(files: DeviceFiles, directory: string): Monitor {
  const names = new Set(files.names(directory));
  const numbered = (pattern: RegExp): string[] => [...names].filter((name) => pattern.test(name)).sort();
  const labelOf = (channel: string): string | undefined => {
    const text = names.has(`${channel}_label`) ? files.text(`${directory}/${channel}_label`) : undefined;
    return text === undefined ? undefined : sensorSlug(text) || undefined;
  };
  const value = (file: string): number | undefined => (names.has(file) ? files.once(`${directory}/${file}`, integer).value : undefined);
  const limit = (file: string): number | undefined => {
    const raw = value(file);
    // Zero stands for no limit.
    return raw === undefined || raw <= 0 ? undefined : files.possible(`${directory}/${file}`, 'temp', raw / MILLI);
  };
  const temperatures = numbered(/^temp\d+_input$/).map((file): Channel => {
    const channel = file.slice(0, -'_input'.length);
    const sensor = TEMPERATURES[labelOf(channel) ?? ''] ?? labelOf(channel) ?? (channel === 'temp1' ? 'edge' : channel);
    const [critical, emergency] = [limit(`${channel}_crit`), limit(`${channel}_emergency`)];
    return {
      file,
      kind: 'temp',
      metric: metrics.temperature.name,
      labels: { sensor },
      scale: MILLI,
      ...(sensor === 'memory' && { isAbsentAtZero: true as const }),
      ...(critical !== undefined && { critical }),
      ...(emergency !== undefined && { emergency }),
    };
  });
  const fanMost = value('pwm1_max');
  return {
    directory,
    channels: [
      ...temperatures,
      ...numbered(/^power\d+_(?:input|average)$/).map((file) => powerChannel(file, names, labelOf)),
      ...numbered(/^freq\d+_input$/).map((file) => clockChannel(file, labelOf(file.slice(0, -'_input'.length)))),
      ...numbered(/^in\d+_input$/).map((file): Channel => {
        const channel = file.slice(0, -'_input'.length);
        return { file, kind: 'in', metric: metrics.voltage.name, labels: { sensor: labelOf(channel) ?? channel }, scale: MILLI };
      }),
      ...numbered(/^fan\d+_input$/).map((file): Channel => {
        const fan = String(Number(/\d+/.exec(file)?.[0]) - 1);
        return { file, kind: 'fan', metric: metrics.fanSpeed.name, labels: { fan }, scale: 1 };
      }),
    ].map((channel) => ({ ...channel, file: `${directory}/${channel.file}` })),
    limits: [...temperatures.flatMap(temperatureLimits), ...powerLimits(value)],
    ...(fanMost !== undefined && fanMost > 0 && names.has('pwm1') && { fanMost }),
  };
}

/** Names of the sensors, keyed by label. MI300 has no edge temperature, so the label decides and not the number. */
const TEMPERATURES: Readonly<Record<string, string>> = { mem: 'memory' };
const CLOCKS: Readonly<Record<string, string>> = { sclk: 'graphics', mclk: 'memory' };

/** Power 1 is the power of the card, and the others are averages over other times. A sum over sensors must not count power twice. */
function powerChannel(file: string, names: ReadonlySet<string>, labelOf: (channel: string) => string | undefined): Channel {
  const [channel = '', kind] = file.split('_');
  const isAverageOfMore = kind === 'average' && (channel !== 'power1' || names.has(`${channel}_input`));
  const name = channel === 'power1' ? 'gpu' : (labelOf(channel) ?? channel);
  return {
    file,
    kind: 'power',
    metric: metrics.power.name,
    labels: { sensor: isAverageOfMore ? `${name}_average` : name },
    scale: MICRO,
    // No awake card draws 0 W.
    isAbsentAtZero: true,
  };
}

function clockChannel(file: string, label: string | undefined): Channel {
  const byNumber = file === 'freq1_input' ? 'graphics' : 'memory';
  return { file, metric: metrics.clock.name, labels: { clock: label === undefined ? byNumber : (CLOCKS[label] ?? label) }, scale: 1 };
}

function temperatureLimits({ labels, critical, emergency }: Channel): Reading[] {
  const limit = (name: string, value: number | undefined): Reading[] =>
    value === undefined ? [] : [{ metric: metrics.temperatureLimit.name, labels: { ...labels, limit: name }, value }];
  return [...limit('crit', critical), ...limit('emergency', emergency)];
}

const POWER_LIMITS: readonly (readonly [file: string, limit: string])[] = [
  ['power1_cap', 'enforced'],
  ['power1_cap_default', 'default'],
  ['power1_cap_min', 'minimum'],
  ['power1_cap_max', 'maximum'],
];

function powerLimits(value: (file: string) => number | undefined): Reading[] {
  return POWER_LIMITS.flatMap(([file, limit]) => {
    const watts = value(file);
    return watts === undefined ? [] : [{ metric: metrics.powerLimit.name, labels: { limit }, value: watts / MICRO }];
  });
}

/** Reads the sensors of a monitor. `credible`: the limits of the card. */
export function readMonitor(
  files: DeviceFiles,
  credible: CredibleLimits,
  { directory, channels, limits, fanMost }: Monitor,
): ChannelSample {
  const { readings, temperatures } = readChannels(files, credible, channels);
  const pwm = fanMost === undefined ? undefined : files.live(`${directory}/pwm1`, integer).value;
  const ratio =
    fanMost === undefined || pwm === undefined ? [] : [{ metric: metrics.fanRatio.name, labels: { fan: '0' }, value: pwm / fanMost }];
  return { readings: [...readings, ...ratio, ...limits], temperatures };
}

/** Value of one sensor in a sample of the monitor. */
export function readingOf(sample: ChannelSample | undefined, { name }: MetricSpec, sensor: string): number | undefined {
  const value = sample?.readings.find(({ metric, labels }) => metric === name && labels?.sensor === sensor)?.value;
  return value === undefined ? undefined : Number(value);
}
