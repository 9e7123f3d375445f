import { type SensorKind, sensorSlug } from '../../host/hwmon.ts';
import type { Reading } from '../../model/metric.ts';
import type { DeviceFiles } from '../kit/device-files.ts';
import { type Channel, type ChannelSample, integer, readChannels } from '../kit/drm/channels.ts';
import type { CredibleLimits } from '../kit/sensor-limits.ts';
import { parseCount } from '../kit/text.ts';
import { metrics } from './metrics.ts';

/** What is known of the hardware monitors of a card without reading their sensors. */
export interface Monitors {
  readonly channels: readonly Channel[];
  /** Counters of energy, by sensor. */
  readonly energies: readonly { readonly sensor: string; readonly file: string }[];
  /** Readings of limits, which rarely change. */
  readonly limits: readonly Reading[];
}

export interface MonitorSample extends ChannelSample {
  /** Microjoules since the driver was loaded. A counter that tells 0 is absent: the channel is not wired, or the read failed. */
  readonly energies: ReadonlyMap<string, bigint>;
}

const MILLI = 1_000;
const MICRO = 1_000_000;

/** Finds the channels of the monitors of the driver and reads labels and limits. On i915 each tile has a monitor of its own. */
export function findMonitors(files: DeviceFiles): Monitors {
  const found = files.names('hwmon').flatMap((name): Monitors[] => {
    const directory = `hwmon/${name}`;
    const driver = /^(?:xe|i915)(?:_(gt\d{1,3}))?$/.exec(files.text(`${directory}/name`) ?? '');
    return driver === null ? [] : [describe(files, directory, driver[1])];
  });
  return {
    channels: found.flatMap(({ channels }) => channels),
    energies: found.flatMap(({ energies }) => energies),
    limits: found.flatMap(({ limits }) => limits),
  };
}

/** `gt`: the tile that the monitor belongs to; absent for the monitor of the card. */
function describe(files: DeviceFiles, directory: string, gt: string | undefined): Monitors {
  const names = new Set(files.names(directory));
  const isXe = files.text(`${directory}/name`) === 'xe';
  const channelsOf = (pattern: RegExp): string[] =>
    [...names].flatMap((name) => pattern.exec(name)?.[1] ?? []).sort((a, b) => numberOf(a) - numberOf(b));
  const sensorOf = (channel: string): string => {
    const label = names.has(`${channel}_label`) ? files.text(`${directory}/${channel}_label`) : undefined;
    return gt ?? sensorName(label === undefined ? '' : sensorSlug(label), channel, isXe);
  };
  const value = (file: string, kind: SensorKind, scale: number): number | undefined => {
    const raw = names.has(file) ? files.once(`${directory}/${file}`, integer).value : undefined;
    // Zero stands for a limit that is off or unknown.
    return raw === undefined || raw <= 0 ? undefined : files.possible(`${directory}/${file}`, kind, raw / scale);
  };
  const temperatures = channelsOf(/^(temp\d+)_input$/).map((channel) => {
    const [critical, emergency, most] = ['crit', 'emergency', 'max'].map((limit) => value(`${channel}_${limit}`, 'temp', MILLI));
    const labels = { sensor: sensorOf(channel) };
    const limit = (name: string, celsius: number | undefined): Reading[] =>
      celsius === undefined ? [] : [{ metric: metrics.temperatureLimit.name, labels: { ...labels, limit: name }, value: celsius }];
    return {
      limits: [...limit('max', most), ...limit('crit', critical), ...limit('emergency', emergency)],
      channel: {
        file: `${directory}/${channel}_input`,
        kind: 'temp' as const,
        metric: metrics.temperature.name,
        labels,
        scale: MILLI,
        ...(critical !== undefined && { critical }),
        ...(emergency !== undefined && { emergency }),
      },
    };
  });
  const voltages = channelsOf(/^(in\d+)_input$/).map((channel): Channel => {
    const labels = { sensor: sensorOf(channel) };
    return { file: `${directory}/${channel}_input`, kind: 'in', metric: metrics.voltage.name, labels, scale: MILLI };
  });
  const fans = channelsOf(/^(fan\d+)_input$/).map((channel): Channel => {
    const labels = { fan: String(numberOf(channel) - 1) };
    return { file: `${directory}/${channel}_input`, kind: 'fan', metric: metrics.fanSpeed.name, labels, scale: 1 };
  });
  const powers = [...new Set(channelsOf(/^(power\d+)_(?:max|rated_max|crit|cap)$/))].flatMap((channel) =>
    (['max', 'rated_max', 'crit', 'cap'] as const).flatMap((kind): Reading[] => {
      const watts = value(`${channel}_${kind}`, 'power', MICRO);
      const labels = { limit: `${sensorOf(channel)}_${kind}` };
      return watts === undefined ? [] : [{ metric: metrics.powerLimit.name, labels, value: watts }];
    }),
  );
  return {
    channels: [...temperatures.map(({ channel }) => channel), ...voltages, ...fans],
    energies: channelsOf(/^(energy\d+)_input$/).map((channel) => ({ sensor: sensorOf(channel), file: `${directory}/${channel}_input` })),
    limits: [...temperatures.flatMap(({ limits }) => limits), ...powers],
  };
}

const numberOf = (channel: string): number => Number(/\d+$/.exec(channel)?.[0] ?? 0);

const LABELS: Readonly<Record<string, string>> = { pkg: 'package', vram: 'memory', mctrl: 'memory_controller' };

/** Names a sensor by its label. Without one, the number tells on xe; i915 has one channel of each kind. */
function sensorName(label: string, channel: string, isXe: boolean): string {
  if (label !== '') return LABELS[label] ?? label.replace(/^vram_/, 'memory_').replace(/^memory_ch_/, 'memory_channel_');
  if (channel.startsWith('temp')) return isXe ? channel : 'package';
  if (!isXe) return 'card';
  // Voltages count from 0, and all other channels from 1.
  return ['card', 'package'][numberOf(channel) - (channel.startsWith('in') ? 0 : 1)] ?? channel;
}

/** Reads the sensors. A sensor without a value gives no reading. `credible`: the limits of the card. */
export function readMonitors(files: DeviceFiles, credible: CredibleLimits, { channels, energies, limits }: Monitors): MonitorSample {
  const { readings, temperatures } = readChannels(files, credible, channels);
  const counted = energies.flatMap(({ sensor, file }): [string, bigint][] => {
    const microjoules = files.live(file, parseCount).value;
    return microjoules === undefined || BigInt(microjoules) === 0n ? [] : [[sensor, BigInt(microjoules)]];
  });
  return { readings: [...readings, ...limits], temperatures, energies: new Map(counted) };
}
