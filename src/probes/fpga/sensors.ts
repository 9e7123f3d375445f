import { type HwmonRequest, readHwmon, type Sensor, type SensorKind, sensorSlug } from '../../host/hwmon.ts';
import type { MetricSpec } from '../../model/metric.ts';
import { problemOf } from './board-files.ts';
import type { Facts } from './facts.ts';
import type { ProbeMemory } from './memory.ts';
import { metrics } from './metrics.ts';
import type { Survey } from './survey.ts';

const METRICS: Readonly<Record<SensorKind, MetricSpec>> = {
  temp: metrics.temperature,
  in: metrics.voltage,
  curr: metrics.current,
  power: metrics.power,
  fan: metrics.fanSpeed,
};

/** Kinds that are always read; the rails come on top, by option. */
export const MAIN_KINDS: readonly SensorKind[] = ['temp', 'power', 'fan'];
export const RAIL_KINDS: readonly SensorKind[] = ['in', 'curr'];

/** °C by which a sensor must fall below its limit before that counts as over. */
export const HYSTERESIS = 5;

/** A sensor with the name it has in labels. */
export interface NamedSensor extends Sensor {
  readonly name: string;
}

/** The channels of one monitor. What fails of them is told as problems of the device, one for each error. */
export function readMonitor(survey: Survey, device: string, path: string, request: HwmonRequest): readonly Sensor[] {
  const sensors = readHwmon(survey.host.sys, path, request);
  const failed = sensors.flatMap(({ channel, error }) => (error === undefined ? [] : [[channel, error] as const]));
  tellFailures(survey, device, path, [...failed, ...sensors.flatMap(attributeFailures)]);
  return sensors;
}

/** Attributes of the channels of one monitor, of channel to attributes. What fails of them is told as of {@link readMonitor}; its values are not. */
export function readAttributes(
  survey: Survey,
  device: string,
  path: string,
  request: HwmonRequest,
): ReadonlyMap<string, Sensor['attributes']> {
  const sensors = readHwmon(survey.host.sys, path, request);
  tellFailures(survey, device, path, sensors.flatMap(attributeFailures));
  return new Map(sensors.map(({ channel, attributes }) => [channel, attributes]));
}

type Failure = readonly [what: string, error: string];

const attributeFailures = ({ channel, attributeErrors }: Sensor): Failure[] =>
  Object.entries(attributeErrors).map(([attribute, error]) => [`${channel}_${attribute}`, error]);

function tellFailures({ problems }: Survey, device: string, path: string, failures: readonly Failure[]): void {
  for (const error of new Set(failures.map(([, each]) => each))) {
    const code = problemOf(error);
    const failed = failures.filter(([, each]) => each === error).map(([what]) => what);
    if (code !== undefined) problems.push({ code, message: `/sys/${path}: ${error} of ${failed.join(', ')}`, device });
  }
}

/**
 * Names for all sensors of one board: the slug of the label, else the channel. Of two with the same name the second also gets its
 * channel, and a number where that is taken too, so that no two series are alike.
 */
export function nameSensors<T extends Sensor>(sensors: readonly T[]): readonly (T & NamedSensor)[] {
  const taken = new Set<string>();
  return sensors.map((sensor) => {
    const slug = sensorSlug(sensor.label ?? '') || sensor.channel;
    const isTaken = (name: string): boolean => taken.has(`${sensor.kind}/${name}`);
    let name = isTaken(slug) ? `${slug}_${sensor.channel}` : slug;
    for (let count = 2; isTaken(name); count += 1) name = `${slug}_${sensor.channel}_${count}`;
    taken.add(`${sensor.kind}/${name}`);
    return { ...sensor, name };
  });
}

/** By the text of `<channel>_status`, which AMD's drivers have. Source: hwmon_sdm of XRT, ami_sensor of AMI. */
export function isPresent(status: string | undefined): boolean {
  return status === undefined || status === 'Sensor Present and Valid';
}

/** Readings of the sensors that have a value. */
export function addSensors(facts: Facts, sensors: readonly NamedSensor[]): void {
  for (const { kind, name, value } of sensors) {
    facts.add(METRICS[kind], value, kind === 'fan' ? { fan: name } : { sensor: name });
  }
}

/** The unfitted ones, for the record. */
export function addAbsentSensors(facts: Facts, sensors: readonly NamedSensor[]): void {
  for (const { name, error, kind, value } of sensors) {
    const instance = { instance: `${kind}/${name}` };
    if (error === 'ENODATA') facts.find('SensorAbsent', true, 'NoData', `${name} has no data`, instance);
    else if (value !== undefined) facts.find('SensorAbsent', false, 'HasData', `${name} has a value`, instance);
  }
}

/** One temperature against its critical value. `key` is the board's. */
export function judgeCritical(
  facts: Facts,
  memory: ProbeMemory,
  key: string,
  sensor: { readonly name: string; readonly value: number; readonly critical: number },
): void {
  const { name, value, critical } = sensor;
  const isOver = memory.isAbove(`${key}/critical/${name}`, value, critical, critical - HYSTERESIS);
  const message = `${name} at ${value} °C, critical at ${critical} °C`;
  facts.find('OverTemperature', isOver ?? 'unknown', isOver ? 'AboveCritical' : 'Normal', message, { instance: name });
}
