import type { DeviceFiles } from '../kit/device-files.ts';
import type { ProbeMemory } from './memory.ts';
import { numbered } from './name-order.ts';
import type { ReportBuilder } from './report-builder.ts';
import { addSensors, HYSTERESIS, MAIN_KINDS, type NamedSensor, nameSensors, readMonitor } from './sensors.ts';
import { atMostEvery, filesOf, type Placed, type Survey } from './survey.ts';
import { parseFlag } from './values.ts';

/** Writable targets of clock scaling. They are not measurements. */
const TARGETS = /^(?:power2|temp15)$/;

/** FPGA temperatures in °C at which xclmgmt warns and at which the card shuts down. Source: XRT, mgmtpf health thread. */
const WARNING = 88;
const SHUTDOWN = 97;

/**
 * Adds the sensors of the satellite controller and its heartbeat. Each sweep costs a message to firmware and a line in the kernel log.
 * Therefore all files of a board are read together, at most once per interval.
 */
export function addAlveoSensors(builder: ReportBuilder, survey: Survey, id: string, address: string): void {
  const { memory, options } = survey;
  const monitors = survey.monitors.filter((monitor) => monitor.address === address);
  const sensors = atMostEvery(survey, `${address}/sensors`, options['sensor-interval'], (each) => readAll(each, id, monitors));
  builder.asOf(memory.readMs(`${address}/sensors`), () => {
    addSensors(builder, sensors);
    const fpga = sensors.find(({ channel, name }) => channel.kind === 'temp' && name === 'fpga_temp');
    if (fpga?.value !== undefined) judgeFpga(builder, memory, id, fpga.value);
  });
  addHeartbeat(builder, filesOf(survey, `bus/pci/devices/${address}`, id));
}

function readAll(survey: Survey, id: string, monitors: readonly Placed[]): readonly NamedSensor[] {
  const request = { kinds: MAIN_KINDS, exclude: TARGETS };
  // The monitors of Versal boards look like hwmon, but each value has a unit of its own.
  const plain = monitors.filter(({ path }) => !/_hwmon_sdm_/.test(filesOf(survey, path, id).text('name') ?? ''));
  const sensors = plain.flatMap(({ path }) => readMonitor(filesOf(survey, path, id), request));
  // An absent sensor, or one whose controller is off, reads as 0. It still reserves its name.
  return nameSensors(sensors).filter(({ value }) => value !== undefined && value !== 0);
}

function judgeFpga(builder: ReportBuilder, memory: ProbeMemory, id: string, value: number): void {
  const isCritical = memory.isAbove(`${id}/shutdown`, value, SHUTDOWN, SHUTDOWN - HYSTERESIS);
  const isWarm = memory.isAbove(`${id}/warning`, value, WARNING, WARNING - HYSTERESIS);
  const message = `fpga_temp at ${value} °C, the card shuts down at ${SHUTDOWN} °C`;
  const instance = 'fpga_temp';
  if (isCritical) builder.find('OverTemperature', true, 'AboveCritical', message, { instance });
  else if (isWarm) builder.find('OverTemperature', true, 'AboveWarning', message, { instance, severity: 'degraded' });
  else builder.find('OverTemperature', isCritical === false && isWarm === false ? false : 'unknown', 'Normal', message, { instance });
}

function addHeartbeat(builder: ReportBuilder, files: DeviceFiles): void {
  const xmc = numbered(files, /^xmc\.[um]\.\d+$/)[0];
  const isStalled = xmc === undefined ? undefined : files.value(`${xmc}/xmc_heartbeat_stall`, parseFlag);
  if (isStalled === undefined) return;
  builder.find('BmcStalled', isStalled, isStalled ? 'HeartbeatStalled' : 'Alive', `xmc_heartbeat_stall is ${Number(isStalled)}`);
}
