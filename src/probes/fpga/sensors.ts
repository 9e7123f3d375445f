import { dirname } from 'node:path';
import { hours } from '../../model/duration.ts';
import type { MetricSpec } from '../../model/metric.ts';
import type { DeviceFiles } from '../kit/device-files.ts';
import type { RowValue } from '../kit/file-rows.ts';
import { type Channel, type ChannelRequest, channelsIn, readAttribute, readChannel, type SensorKind } from '../kit/hwmon.ts';
import { notCredible } from '../kit/temperature.ts';
import type { ReportBuilder } from './board.ts';
import { type DflBoard, onBoard } from './board.ts';
import { metrics } from './metrics.ts';
import { atMostEvery, filesOf, type Survey } from './survey.ts';

const METRICS: Readonly<Partial<Record<SensorKind, MetricSpec>>> = {
  temp: metrics.temperature,
  power: metrics.power,
  in: metrics.voltage,
  curr: metrics.current,
  fan: metrics.fanSpeed,
};

/** Kinds that are read of DFL and XRT boards. Voltage and current of the supply rails would be up to 80 series per board. */
export const MAIN_KINDS: readonly SensorKind[] = ['temp', 'power', 'fan'];

/** A condition ends when the sensor is this many °C below its limit. */
export const HYSTERESIS = 5;

/** A channel, the directory of its monitor, and its value. */
export type Sensor = RowValue<number> & { readonly channel: Channel; readonly directory: string };

/** A sensor with its name in labels. */
export type NamedSensor = Sensor & { readonly name: string };

/** Reads the channels of the monitor in the directory of the files. Failures become problems of the device. */
export const readMonitor = (files: DeviceFiles, request: ChannelRequest): readonly Sensor[] =>
  channelsIn(files, '.', request)
    .filter((channel) => channel.file !== undefined && isFitted(files, channel))
    .map((channel) => ({ channel, directory: files.directory, ...readSafely(files, channel) }));

/** The driver ami has a file for it. */
function isFitted(files: DeviceFiles, channel: Channel): boolean {
  const status = channel.attribute('status');
  return status === undefined || files.text(status) === 'Sensor Present and Valid';
}

/** Error of a value that must not be read. */
const WITHHELD = 'above its critical limit';

/**
 * A read of a value above its upper critical limit, which ami names `lcrit`, makes ami end all programs that use the board (ami_hwmon.c,
 * read_sensor_val). A read of the alarm does not.
 */
function readSafely(files: DeviceFiles, channel: Channel): RowValue<number> {
  const alarm = readAttribute(files, channel, 'lcrit_alarm');
  if (alarm === 0 || channel.attribute('lcrit_alarm') === undefined) return readChannel(files, channel, 'once', channel.name);
  return { error: alarm === 1 ? WITHHELD : 'unread' };
}

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

const TEMPERATURE_LIMITS = ['max', 'lcrit', 'crit', 'emergency'] as const;
/** °C, by suffix of the file. */
type Limits = Readonly<Partial<Record<(typeof TEMPERATURE_LIMITS)[number], number>>>;

/** Number of consecutive failed sweeps after which the controller counts as hung. */
const SWEEPS_TO_STALL = 3;

/** Adds the monitors of the engine (plain registers) and of the board controller (slow bus). A monitor without a name is skipped. */
export function addDflSensors(builder: ReportBuilder, survey: Survey, board: DflBoard, files: DeviceFiles): void {
  const controller: Monitor[] = [];
  for (const { path } of onBoard(board, survey.monitors)) {
    const name = files.in(path).text('name');
    if (name === 'dfl_fme_thermal') addThermal(builder, files.in(path));
    else if (name === 'dfl_fme_power') addPower(builder, files.in(path));
    else if (name !== undefined) controller.push({ path, isInMilliwatts: /^(?:n6000|c6100)bmc/.test(name) });
  }
  if (controller.length > 0) addController(builder, survey, board.address, controller);
}

/** A value of 0 °C means that the sensor is not wired, as on N6000. */
function addThermal(builder: ReportBuilder, files: DeviceFiles): void {
  const [sensor] = readMonitor(files, { kinds: ['temp'] });
  if (sensor === undefined) return;
  const { channel, value } = sensor;
  builder.add(metrics.temperature, value || undefined, { sensor: 'fpga' });
  for (const limit of TEMPERATURE_LIMITS)
    builder.add(metrics.temperatureLimit, readAttribute(files, channel, limit) || undefined, { sensor: 'fpga', limit });
  addAlarm(builder, files, channel, 'max_alarm', 'temperature_max');
  const critical = addReason(builder, files, channel, 'crit_alarm', 'temperature_crit');
  if (critical === undefined) return;
  const message = `the FPGA is ${critical ? 'above' : 'below'} the temperature at which it stops`;
  builder.find('OverTemperature', critical, message, {
    instance: 'fpga_alarm',
    ...(critical && { reason: 'CriticalAlarm' }),
  });
}

/** A limit of 0 W means that the limit is not enabled. */
function addPower(builder: ReportBuilder, files: DeviceFiles): void {
  const [sensor] = readMonitor(files, { kinds: ['power'] });
  if (sensor === undefined) return;
  const { channel, value } = sensor;
  builder.add(metrics.power, value || undefined, { sensor: 'fpga' });
  const limits = { max: 'max', crit: 'crit', xeon_limit: 'xeon', fpga_limit: 'fpga' };
  for (const [file, limit] of Object.entries(limits))
    builder.add(metrics.powerLimit, readAttribute(files, channel, file) || undefined, { limit });
  addAlarm(builder, files, channel, 'max_alarm', 'power_max');
  addAlarm(builder, files, channel, 'crit_alarm', 'power_crit');
}

function addReason(builder: ReportBuilder, files: DeviceFiles, channel: Channel, alarm: string, reason: string): boolean | undefined {
  const level = readAttribute(files, channel, alarm);
  if (level !== 0 && level !== 1) return undefined;
  builder.add(metrics.throttled, level, { reason });
  return level === 1;
}

function addAlarm(builder: ReportBuilder, files: DeviceFiles, channel: Channel, alarm: string, reason: string): void {
  const isUp = addReason(builder, files, channel, alarm, reason);
  if (isUp === undefined) return;
  const kind = channel.kind === 'temp' ? 'TemperatureAlarm' : 'PowerAlarm';
  builder.find('Throttled', isUp, `${reason.replace('_', ' ')} alarm is ${isUp ? 'up' : 'down'}`, {
    instance: reason,
    ...(isUp && { reason: kind }),
    // Better cooling lowers the temperature, but not the power draw.
    ...(isUp && kind === 'PowerAlarm' ? { remedy: 'check-power' as const } : {}),
  });
}

/** A monitor of the board controller. */
interface Monitor {
  readonly path: string;
  readonly isInMilliwatts?: boolean;
  /** Default: {@link MAIN_KINDS}. */
  readonly kinds?: readonly SensorKind[];
}

/** Reads all monitors of the controller together, so that each sensor of a board gets a unique name. */
export function addController(builder: ReportBuilder, survey: Survey, address: string, monitors: readonly Monitor[]): void {
  const { memory, options } = survey;
  const key = `${address}/${monitors.map(({ path }) => path).join()}`;
  const sweep = atMostEvery(survey, key, options['sensor-interval'], (each) => {
    const read = monitors.flatMap(({ path, isInMilliwatts, kinds = MAIN_KINDS }) =>
      readMonitor(filesOf(each, path, address), { kinds }).map((one) => (isInMilliwatts ? inWatts(one) : one)),
    );
    return { sensors: nameSensors(read), failuresInARow: memory.failuresInARow(`${key}/failures`, hasNoAnswer(read)) };
  });
  builder.asOf(memory.readMs(key), () => {
    const { sensors, failuresInARow } = sweep;
    addSensors(builder, sensors);
    addAbsentSensors(builder, sensors);
    // A sensor that starts to answer, after a module is plugged in or an update ends, has new limits.
    const silent = sensors.filter(({ error }) => error !== undefined).map(({ directory, channel }) => `${directory}/${channel.name}`);
    if (memory.isOther(`${key}/silent`, silent.join())) memory.forget(`${key}/limits`);
    const limits = atMostEvery(survey, `${key}/limits`, hours(1), (each) => sensors.map((sensor) => readLimits(each, address, sensor)));
    for (const [at, sensor] of sensors.entries()) addLimits(builder, survey, address, sensor, limits[at] ?? {});
    if (sensors.length > 0) addControllerState(builder, sensors, failuresInARow);
  });
}

/**
 * Corrects the board power of N6000, N6001 and C6100. Their controller measures milliwatts, which kernels before the fix of May 2024 give as
 * microwatts. No such board runs with less than one watt, so the value itself decides. Source: n6000bmc_power_tbl of
 * drivers/hwmon/intel-m10-bmc-hwmon.c, whose multiplier was 1 and became 1000.
 */
function inWatts(sensor: Sensor): Sensor {
  const { channel, directory, value } = sensor;
  const isMilliwatts = channel.kind === 'power' && value !== undefined && value > 0 && value < 1;
  return isMilliwatts ? { channel, directory, value: Math.round(value * 1e6) / 1_000 } : sensor;
}

/** Returns true when all sensors fail. Sensors that are not fitted, or locked by an update, do not count. */
function hasNoAnswer(sensors: readonly Sensor[]): boolean {
  const relevant = sensors.filter(({ error }) => error !== 'ENODATA' && error !== 'EBUSY');
  return relevant.length > 0 && relevant.every(({ error }) => error !== undefined && error !== WITHHELD);
}

function readLimits(survey: Survey, address: string, { channel, directory }: Sensor): Limits {
  if (channel.kind !== 'temp') return {};
  const files = filesOf(survey, directory, address);
  const read = TEMPERATURE_LIMITS.map((limit) => [limit, readAttribute(files, channel, limit)] as const);
  return Object.fromEntries(read.filter(([, value]) => value !== undefined && value > 0));
}

function addLimits(
  builder: ReportBuilder,
  { memory, problems }: Survey,
  address: string,
  { name, value, error, channel }: NamedSensor,
  limits: Limits,
): void {
  for (const [limit, celsius] of Object.entries(limits)) builder.add(metrics.temperatureLimit, celsius, { sensor: name, limit });
  const crit = limits.lcrit ?? limits.crit;
  if (channel.kind === 'temp' && error === WITHHELD)
    builder.find('OverTemperature', true, `${name} is ${error}`, { instance: name, reason: 'CriticalAlarm' });
  if (crit === undefined || value === undefined) return;
  const level = `${address}/critical/${name}`;
  if (!memory.limits.has(level, value, crit)) {
    problems.push({ code: 'limit-not-credible', message: notCredible(name, crit), device: address });
    return;
  }
  const isOver = memory.isAbove(level, value, crit, crit - HYSTERESIS);
  const message = `${name} at ${value} °C, critical at ${crit} °C`;
  builder.find('OverTemperature', isOver ?? 'unknown', message, { instance: name, ...(isOver === undefined && { reason: 'Normal' }) });
}

/** Reports the sensors that are not fitted, with severity `info`. */
export function addAbsentSensors(builder: ReportBuilder, sensors: readonly NamedSensor[]): void {
  for (const { name, error, channel, value } of sensors) {
    const instance = { instance: `${channel.kind}/${name}` };
    if (error === 'ENODATA') builder.find('SensorAbsent', true, `${name} has no data`, instance);
    else if (value !== undefined) builder.find('SensorAbsent', false, `${name} has a value`, instance);
  }
}

function addControllerState(builder: ReportBuilder, sensors: readonly Sensor[], failuresInARow: number): void {
  const status = failuresInARow >= SWEEPS_TO_STALL ? true : failuresInARow > 0 ? 'unknown' : false;
  if (status === false) builder.find('BmcStalled', status, 'the sensors of the board controller answer');
  else builder.find('BmcStalled', status, 'no sensor of the board controller answers', { reason: 'NoSensorAnswers' });
  const instance = 'sensors';
  if (sensors.some(({ error }) => error === 'EBUSY')) {
    const message = 'the board controller refuses its sensors while it is updated';
    builder.find('UpdateRunning', true, message, { instance, reason: 'SensorsLocked' });
  } else if (sensors.some(({ value }) => value !== undefined))
    builder.find('UpdateRunning', false, 'the sensors are not locked', { instance });
}

/** Reads the firmware version of the board controller from a directory above its monitor. */
export function readControllerVersion(survey: Survey, board: DflBoard): string | undefined {
  for (const monitor of onBoard(board, survey.monitors)) {
    for (let at = dirname(monitor.path); at.includes(`/${board.address}/`); at = dirname(at)) {
      const files = filesOf(survey, at, board.address);
      for (const file of ['bmcfw_version', 'bmc_version']) {
        const { value, isUnknown } = files.once(file, (text) => text.trim() || undefined);
        // When the first file fails, the second is not read: on boards that have both, their content differs.
        if (value !== undefined || isUnknown) return value;
      }
    }
  }
  return undefined;
}
