import type { MetricSpec } from '../../model/metric.ts';
import type { DeviceFiles } from '../kit/device-files.ts';
import { type Channel, type ChannelRequest, channelsIn, readChannel, type SensorKind, type SensorValue } from '../kit/hwmon.ts';
import { metrics } from './metrics.ts';
import type { ReportBuilder } from './report-builder.ts';

const METRICS: Readonly<Partial<Record<SensorKind, MetricSpec>>> = {
  temp: metrics.temperature,
  power: metrics.power,
  fan: metrics.fanSpeed,
};

/** Kinds that are read. Voltage and current of the supply rails would be up to 80 series per board. */
export const MAIN_KINDS: readonly SensorKind[] = ['temp', 'power', 'fan'];

/** A condition ends when the sensor is this many °C below its limit. */
export const HYSTERESIS = 5;

/** A channel and its value. */
export type Sensor = SensorValue & { readonly channel: Channel };

/** A sensor with its name in labels. */
export type NamedSensor = Sensor & { readonly name: string };

/** Reads the channels of the monitor in the directory of the files. Failures become problems of the device. */
export const readMonitor = (files: DeviceFiles, request: ChannelRequest): readonly Sensor[] =>
  channelsIn(files, '.', request)
    .filter(({ file }) => file !== undefined)
    .map((channel) => ({ channel, ...readChannel(files, channel, 'once', { what: channel.name }) }));

/**
 * Gives each sensor of one board a unique name: the slug of its label, or its channel. When the name is taken, it gets the channel as
 * a suffix; when that is also taken, a number.
 */
export function nameSensors(sensors: readonly Sensor[]): readonly NamedSensor[] {
  const taken = new Set<string>();
  return sensors.map((sensor) => {
    const { kind, label, name: channel } = sensor.channel;
    const slug = label || channel;
    const isTaken = (name: string): boolean => taken.has(`${kind}/${name}`);
    let name = isTaken(slug) ? `${slug}_${channel}` : slug;
    for (let count = 2; isTaken(name); count += 1) name = `${slug}_${channel}_${count}`;
    taken.add(`${kind}/${name}`);
    return { ...sensor, name };
  });
}

/** Adds the readings of the sensors that have a value. */
export function addSensors(builder: ReportBuilder, sensors: readonly NamedSensor[]): void {
  for (const { channel, name, value } of sensors) {
    const metric = METRICS[channel.kind];
    if (metric !== undefined) builder.add(metric, value, channel.kind === 'fan' ? { fan: name } : { sensor: name });
  }
}
