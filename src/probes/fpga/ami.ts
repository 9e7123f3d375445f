import type { Device } from '../../model/device.ts';
import type { DeviceFiles } from '../kit/device-files.ts';
import { channelsIn, monitorsBelow, readAttribute, type SensorKind } from '../kit/hwmon.ts';
import type { ReportBuilder, Told } from './board.ts';
import { addInfo } from './manager.ts';
import { metrics } from './metrics.ts';
import { parseId } from './registers.ts';
import { addControllerState, addSensors, hasNoAnswer, nameSensors, readSensor, type Sensor } from './sensors.ts';
import { atMostEvery, filesOf, type Survey } from './survey.ts';

/** Alveo boards of the driver ami, whose management controller (AMC) has the sensors. Source: AVED sw/AMI/driver. */

/** The words of `dev_state`, and what each says of the board when it is not ready. Source: ami_top.h, enum pf_dev_state. */
const STATES: Readonly<Record<string, Told<'NotReady'> | 'ready'>> = {
  READY: 'ready',
  INIT: { reason: 'Initializing' },
  MISSING_INFO: { reason: 'DataMissing', severity: 'info' },
  INIT_ERROR: { reason: 'DataMissing', severity: 'degraded' },
  NO_AMC: { reason: 'NoController', severity: 'degraded' },
  COMPAT: { reason: 'Compatibility', severity: 'degraded' },
  SHUTDOWN: { reason: 'ShutDown', remedy: 'reboot' },
};
/** In the other states the driver keeps the values that it read last, or has none. */
const MEASURED: ReadonlySet<string | undefined> = new Set(['READY', 'MISSING_INFO']);

/** Adds what the driver tells of a board, and returns what it is. */
export function addAmi(builder: ReportBuilder, survey: Survey, address: string): Pick<Device, 'model' | 'serial' | 'firmware' | 'stack'> {
  const files = filesOf(survey, `bus/pci/devices/${address}`, address);
  const state = files.text('dev_state');
  const told = STATES[state ?? ''];
  const status = told === 'ready' ? false : told === undefined ? 'unknown' : true;
  if (state !== undefined) builder.find('NotReady', status, `dev_state is ${state}`, told === 'ready' ? {} : told);
  const known = (file: string): string | undefined =>
    files.value(file, (text) => (/^(?:unknown|n\/a)?$/i.test(text.trim()) ? '' : text.trim()));
  const firmware = known('amc_version') || undefined;
  addInfo(builder, { stack: 'ami', accelerator_id: files.value('logic_uuid', parseId), bmc_version: firmware });
  if (MEASURED.has(state)) addMonitors(builder, survey, address);
  const [model, serial] = [known('dev_name') || undefined, known('board_serial') || undefined];
  return { stack: 'ami', ...(model && { model }), ...(serial && { serial }), ...(firmware && { firmware }) };
}

const KINDS: readonly SensorKind[] = ['temp', 'power', 'in', 'curr'];
/** Names of the limits of a temperature by suffix of the file: ami_hwmon.c, to_ami_attribute. */
const LIMITS = { max: 'max', lcrit: 'crit', crit: 'emergency' };

type AmiSensor = Sensor & {
  readonly isCritical?: boolean;
  readonly limits: readonly (readonly [limit: string, celsius: number | undefined])[];
};

function addMonitors(builder: ReportBuilder, survey: Survey, address: string): void {
  const { memory, options } = survey;
  const key = `${address}/ami`;
  const sweep = atMostEvery(survey, key, options['sensor-interval'], (each) => {
    const board = filesOf(each, `bus/pci/devices/${address}`, address);
    const sensors = nameSensors(monitorsBelow(board).flatMap((monitor) => readAll(board.below(monitor))));
    return { sensors, failuresInARow: memory.failuresInARow(`${key}/failures`, hasNoAnswer(sensors)) };
  });
  builder.asOf(memory.readMs(key), () => {
    const { sensors, failuresInARow } = sweep;
    addSensors(builder, sensors);
    for (const { name, isCritical, limits } of sensors) {
      for (const [limit, celsius] of limits) builder.add(metrics.temperatureLimit, celsius, { sensor: name, limit });
      if (isCritical === undefined) continue;
      const message = `${name} is ${isCritical ? 'above' : 'below'} its critical limit`;
      builder.find('OverTemperature', isCritical, message, { instance: name, ...(isCritical && { reason: 'CriticalAlarm' }) });
    }
    if (sensors.length > 0) addControllerState(builder, sensors, failuresInARow);
  });
}

/**
 * A read of a value above its critical limit makes the driver end all programs that use the board (ami_hwmon.c, read_sensor_val). A read
 * of the alarm does not, so a value is read only where the alarm is 0 or the sensor has none.
 */
function readAll(files: DeviceFiles): readonly AmiSensor[] {
  return channelsIn(files, '.', { kinds: KINDS }).flatMap((channel): readonly AmiSensor[] => {
    const [status, alarm] = [channel.attribute('status'), channel.attribute('lcrit_alarm')];
    if (channel.file === undefined || (status !== undefined && files.text(status) !== 'Sensor Present and Valid')) return [];
    const level = readAttribute(files, channel, 'lcrit_alarm');
    const isTemperature = channel.kind === 'temp';
    const limits = isTemperature
      ? Object.entries(LIMITS).map(([file, limit]) => [limit, readAttribute(files, channel, file)] as const)
      : [];
    const critical = isTemperature && level !== undefined ? { isCritical: level === 1 } : {};
    const read = alarm === undefined || level === 0 ? readSensor(files, channel) : { error: level === 1 ? 'ENODATA' : 'unknown' };
    return [{ channel, directory: files.directory, limits, ...critical, ...read }];
  });
}
