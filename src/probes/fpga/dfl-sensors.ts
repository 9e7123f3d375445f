import { dirname } from 'node:path';
import type { Sensor } from '../../host/hwmon.ts';
import { hours } from '../../model/duration.ts';
import type { DeviceFiles } from '../kit/device-files.ts';
import { type DflBoard, onBoard } from './dfl-board.ts';
import { metrics } from './metrics.ts';
import type { ReportBuilder } from './report-builder.ts';
import {
  addAbsentSensors,
  addSensors,
  judgeCritical,
  MAIN_KINDS,
  type NamedSensor,
  nameSensors,
  readAttributes,
  readMonitor,
} from './sensors.ts';
import { atMostEvery, filesOf, type Placed, type Survey } from './survey.ts';

/** Number of consecutive failed sweeps after which the controller counts as hung. */
const SWEEPS_TO_STALL = 3;

/** Adds the monitors of the engine (plain registers) and of the board controller (slow bus). A monitor without a name is skipped. */
export function addDflSensors(builder: ReportBuilder, survey: Survey, board: DflBoard, files: DeviceFiles): void {
  const ofController: ControllerMonitor[] = [];
  for (const monitor of onBoard(board, survey.monitors)) {
    const name = files.in(monitor.path).text('name');
    if (name === 'dfl_fme_thermal') addThermal(builder, survey, board, monitor);
    else if (name === 'dfl_fme_power') addPower(builder, survey, board, monitor);
    else if (name !== undefined) ofController.push({ ...monitor, driver: name });
  }
  if (ofController.length > 0) addController(builder, survey, board, ofController);
}

/** A value of 0 °C means that the sensor is not wired, as on N6000. */
function addThermal(builder: ReportBuilder, survey: Survey, board: DflBoard, monitor: Placed): void {
  const attributes = ['max', 'crit', 'emergency', 'max_alarm', 'crit_alarm'];
  const [sensor] = readMonitor(survey, board.address, monitor.path, { kinds: ['temp'], attributes });
  if (sensor === undefined) return;
  builder.add(metrics.temperature, sensor.value || undefined, { sensor: 'fpga' });
  for (const limit of ['max', 'crit', 'emergency']) {
    builder.add(metrics.temperatureLimit, sensor.attributes[limit] || undefined, { sensor: 'fpga', limit });
  }
  addAlarm(builder, sensor, 'max_alarm', 'temperature_max');
  const critical = addReason(builder, sensor, 'crit_alarm', 'temperature_crit');
  if (critical === undefined) return;
  const message = `the FPGA is ${critical ? 'above' : 'below'} the temperature at which it stops`;
  builder.find('OverTemperature', critical, critical ? 'CriticalAlarm' : 'Normal', message, { instance: 'fpga_alarm' });
}

/** A limit of 0 W means that the limit is not enabled. */
function addPower(builder: ReportBuilder, survey: Survey, board: DflBoard, monitor: Placed): void {
  const attributes = ['max', 'crit', 'xeon_limit', 'fpga_limit', 'max_alarm', 'crit_alarm'];
  const [sensor] = readMonitor(survey, board.address, monitor.path, { kinds: ['power'], attributes });
  if (sensor === undefined) return;
  builder.add(metrics.power, sensor.value || undefined, { sensor: 'fpga' });
  const limits = { max: 'max', crit: 'crit', xeon_limit: 'xeon', fpga_limit: 'fpga' };
  for (const [file, limit] of Object.entries(limits)) builder.add(metrics.powerLimit, sensor.attributes[file] || undefined, { limit });
  addAlarm(builder, sensor, 'max_alarm', 'power_max');
  addAlarm(builder, sensor, 'crit_alarm', 'power_crit');
}

function addReason(builder: ReportBuilder, sensor: Sensor, alarm: string, reason: string): boolean | undefined {
  const level = sensor.attributes[alarm];
  if (level !== 0 && level !== 1) return undefined;
  builder.add(metrics.throttled, level, { reason });
  return level === 1;
}

function addAlarm(builder: ReportBuilder, sensor: Sensor, alarm: string, reason: string): void {
  const isUp = addReason(builder, sensor, alarm, reason);
  if (isUp === undefined) return;
  const kind = sensor.kind === 'temp' ? 'TemperatureAlarm' : 'PowerAlarm';
  builder.find('Throttled', isUp, isUp ? kind : 'FullSpeed', `${reason.replace('_', ' ')} alarm is ${isUp ? 'up' : 'down'}`, {
    instance: reason,
    // Better cooling lowers the temperature, but not the power draw.
    ...(isUp && kind === 'PowerAlarm' ? { remedy: 'check-power' as const } : {}),
  });
}

/** A monitor of the board controller, with the text of its file `name`. */
interface ControllerMonitor extends Placed {
  readonly driver: string;
}

/** A sensor and the path of its files, because another monitor may have the same channel. */
interface ControllerSensor extends NamedSensor {
  readonly place: string;
}

interface Sweep {
  readonly sensors: readonly ControllerSensor[];
  readonly failuresInARow: number;
}

/** Reads all monitors of the controller together, so that each sensor of a board gets a unique name. */
function addController(builder: ReportBuilder, survey: Survey, board: DflBoard, monitors: readonly ControllerMonitor[]): void {
  const key = `${board.address}/${monitors.map(({ path }) => path).join()}`;
  const sweep = atMostEvery(survey, key, survey.options['sensor-interval'], (each) => sweepController(each, board, key, monitors));
  builder.asOf(survey.memory.readMs(key), () => addSweep(builder, survey, board, key, sweep, monitors));
}

function addSweep(
  builder: ReportBuilder,
  survey: Survey,
  board: DflBoard,
  key: string,
  sweep: Sweep,
  monitors: readonly ControllerMonitor[],
): void {
  addSensors(builder, sweep.sensors);
  addAbsentSensors(builder, sweep.sensors);
  // A sensor that starts to answer, after a module is plugged in or an update ends, has new limits.
  const silent = sweep.sensors.filter(({ error }) => error !== undefined).map(({ place }) => place);
  if (survey.memory.isOther(`${key}/silent`, silent.join())) survey.memory.forget(`${key}/limits`);
  const limits = atMostEvery(survey, `${key}/limits`, hours(1), (each) => readLimits(each, board, monitors));
  for (const sensor of sweep.sensors)
    if (sensor.kind === 'temp') addLimits(builder, survey, board, key, sensor, limits.get(sensor.place) ?? {});
  addControllerState(builder, sweep);
}

function sweepController(survey: Survey, board: DflBoard, key: string, monitors: readonly ControllerMonitor[]): Sweep {
  const sensors = monitors.flatMap(({ path, driver }) =>
    readMonitor(survey, board.address, path, { kinds: MAIN_KINDS }).map((sensor) => ({
      ...(/^(?:n6000|c6100)bmc/.test(driver) ? inWatts(sensor) : sensor),
      place: `${path}/${sensor.channel}`,
    })),
  );
  return { sensors: nameSensors(sensors), failuresInARow: survey.memory.failuresInARow(`${key}/failures`, hasNoAnswer(sensors)) };
}

/**
 * Corrects the board power of N6000, N6001 and C6100. Their controller measures milliwatts, which kernels before the fix of May 2024 give as
 * microwatts. No such board runs with less than one watt, so the value itself decides. Source: n6000bmc_power_tbl of
 * drivers/hwmon/intel-m10-bmc-hwmon.c, whose multiplier was 1 and became 1000.
 */
function inWatts(sensor: Sensor): Sensor {
  const { kind, value } = sensor;
  return kind === 'power' && value !== undefined && value > 0 && value < 1 ? { ...sensor, value: Math.round(value * 1e6) / 1_000 } : sensor;
}

/** Returns true when all sensors fail. Sensors that are not fitted, or locked by an update, do not count. */
function hasNoAnswer(sensors: readonly Sensor[]): boolean {
  const relevant = sensors.filter(({ error }) => error !== 'ENODATA' && error !== 'EBUSY');
  return relevant.length > 0 && relevant.every(({ error }) => error !== undefined);
}

/** Returns the limits, keyed by the path of the sensor. */
function readLimits(survey: Survey, board: DflBoard, monitors: readonly ControllerMonitor[]): ReadonlyMap<string, Sensor['attributes']> {
  const limits = new Map<string, Sensor['attributes']>();
  for (const { path } of monitors) {
    const found = readAttributes(survey, board.address, path, { kinds: ['temp'], attributes: ['max', 'crit', 'emergency'] });
    for (const [channel, attributes] of found) limits.set(`${path}/${channel}`, attributes);
  }
  return limits;
}

function addLimits(
  builder: ReportBuilder,
  survey: Survey,
  board: DflBoard,
  key: string,
  sensor: NamedSensor,
  limits: Sensor['attributes'],
): void {
  for (const [limit, value] of Object.entries(limits)) {
    if (value > 0) builder.add(metrics.temperatureLimit, value, { sensor: sensor.name, limit });
  }
  const critical = limits.crit;
  if (critical === undefined || critical <= 0 || sensor.value === undefined) return;
  judgeCritical(builder, survey, board.address, key, { name: sensor.name, value: sensor.value, critical });
}

function addControllerState(builder: ReportBuilder, { sensors, failuresInARow }: Sweep): void {
  const isStalled = failuresInARow >= SWEEPS_TO_STALL;
  const status = isStalled ? true : failuresInARow > 0 ? 'unknown' : false;
  const message = failuresInARow === 0 ? 'the sensors of the board controller answer' : 'no sensor of the board controller answers';
  if (sensors.length > 0) builder.find('BmcStalled', status, failuresInARow === 0 ? 'Alive' : 'NoSensorAnswers', message);
  const instance = { instance: 'sensors' };
  if (sensors.some(({ error }) => error === 'EBUSY'))
    builder.find('UpdateRunning', true, 'SensorsLocked', 'the board controller refuses its sensors while it is updated', instance);
  else if (sensors.some(({ value }) => value !== undefined))
    builder.find('UpdateRunning', false, 'Idle', 'the sensors are not locked', instance);
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
