import { canMeasure, type HwmonRequest, readHwmon, type Sensor, type SensorKind, sensorSlug } from '../../host/hwmon.ts';
import type { MetricSpec } from '../../model/metric.ts';
import { IMPOSSIBLE, notCredible } from '../kit/sensor-limits.ts';
import { metrics } from './metrics.ts';
import type { ReportBuilder } from './report-builder.ts';
import { filesOf, type Survey } from './survey.ts';

const METRICS: Readonly<Partial<Record<SensorKind, MetricSpec>>> = {
  temp: metrics.temperature,
  power: metrics.power,
  fan: metrics.fanSpeed,
};

/** Kinds that are read. Voltage and current of the supply rails would be up to 80 series per board. */
export const MAIN_KINDS: readonly SensorKind[] = ['temp', 'power', 'fan'];

/** A condition ends when the sensor is this many °C below its limit. */
export const HYSTERESIS = 5;

/** A sensor with its name in labels. */
export interface NamedSensor extends Sensor {
  readonly name: string;
}

/** Reads the channels of one monitor. Failures become problems of the device, one problem for each kind of error. */
export function readMonitor(survey: Survey, device: string, path: string, request: HwmonRequest): readonly Sensor[] {
  const sensors = readHwmon(survey.host.sys, path, request).map(measured);
  reportSensors(survey, device, path, sensors);
  return sensors;
}

/** Reports the sensors and attributes without a value. */
function reportSensors(survey: Survey, device: string, path: string, sensors: readonly Sensor[]): void {
  const failed = sensors.flatMap(({ channel, error }) => (error === undefined ? [] : [[channel, error] as const]));
  reportFailures(survey, device, path, [...failed, ...sensors.flatMap(attributeFailures)]);
}

/** Returns the attributes of the channels of one monitor, keyed by channel. It reports failures of attributes like {@link readMonitor}. */
export function readAttributes(
  survey: Survey,
  device: string,
  path: string,
  request: HwmonRequest,
): ReadonlyMap<string, Sensor['attributes']> {
  const sensors = readHwmon(survey.host.sys, path, request).map(measured);
  reportFailures(survey, device, path, sensors.flatMap(attributeFailures));
  return new Map(sensors.map(({ channel, attributes }) => [channel, attributes]));
}

/** Replaces values and limits that the kind of sensor cannot have by the error {@link IMPOSSIBLE}. */
function measured<T extends Sensor>(sensor: T): T {
  const { kind, value, ...rest } = sensor;
  const wrong = Object.entries(sensor.attributes).filter(([name, each]) => !name.endsWith('_alarm') && !canMeasure(kind, each));
  const attributes = Object.fromEntries(Object.entries(sensor.attributes).filter(([name]) => !wrong.some(([other]) => other === name)));
  const attributeErrors = { ...sensor.attributeErrors, ...Object.fromEntries(wrong.map(([name]) => [name, IMPOSSIBLE])) };
  const reading = value === undefined ? {} : canMeasure(kind, value) ? { value } : { error: IMPOSSIBLE };
  return { ...rest, kind, attributes, attributeErrors, ...reading } as unknown as T;
}

type Failure = readonly [what: string, error: string];

const attributeFailures = ({ channel, attributeErrors }: Sensor): Failure[] =>
  Object.entries(attributeErrors).map(([attribute, error]) => [`${channel}_${attribute}`, error]);

function reportFailures(survey: Survey, device: string, path: string, failures: readonly Failure[]): void {
  const files = filesOf(survey, path, device);
  for (const [what, error] of failures) files.note(what, error);
}

/**
 * Gives each sensor of one board a unique name: the slug of its label, or its channel. When the name is taken, it gets the channel as
 * a suffix; when that is also taken, a number.
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

/** Adds the readings of the sensors that have a value. */
export function addSensors(builder: ReportBuilder, sensors: readonly NamedSensor[]): void {
  for (const { kind, name, value } of sensors) {
    const metric = METRICS[kind];
    if (metric !== undefined) builder.add(metric, value, kind === 'fan' ? { fan: name } : { sensor: name });
  }
}

/** Reports the sensors that are not fitted, with severity `info`. */
export function addAbsentSensors(builder: ReportBuilder, sensors: readonly NamedSensor[]): void {
  for (const { name, error, kind, value } of sensors) {
    const instance = { instance: `${kind}/${name}` };
    if (error === 'ENODATA') builder.find('SensorAbsent', true, 'NoData', `${name} has no data`, instance);
    else if (value !== undefined) builder.find('SensorAbsent', false, 'HasData', `${name} has a value`, instance);
  }
}

/**
 * Compares a temperature with its critical value. `key` identifies the board. A limit that is not credible gives a problem.
 */
export function judgeCritical(
  builder: ReportBuilder,
  { memory, problems }: Survey,
  device: string,
  key: string,
  sensor: { readonly name: string; readonly value: number; readonly critical: number },
): void {
  const { name, value, critical } = sensor;
  if (!memory.limits.has(`${key}/critical/${name}`, value, critical)) {
    problems.push({ code: 'limit-not-credible', message: notCredible(name, critical), device });
    return;
  }
  const isOver = memory.isAbove(`${key}/critical/${name}`, value, critical, critical - HYSTERESIS);
  const message = `${name} at ${value} °C, critical at ${critical} °C`;
  builder.find('OverTemperature', isOver ?? 'unknown', isOver ? 'AboveCritical' : 'Normal', message, { instance: name });
}
