import type { Tree } from '../../host/fs/tree.ts';
import { hours, minutes } from '../../model/duration.ts';
import type { ConditionSpec, Finding } from '../../model/health.ts';
import type { MetricSpec, Reading } from '../../model/metric.ts';
import { DeviceFiles } from './device-files.ts';
import { blocksLost, ethernetErrorMetrics, readPorts } from './ethernet-errors.ts';
import { findMonitor, hwmonCondition, hwmonMetrics, hwmonRows, type Monitors, monitorsBelow, readMonitors } from './hwmon.ts';
import { asOf, IntervalCache, type Pace } from './pace.ts';
import { CredibleLimits, overTemperature } from './temperature.ts';

/**
 * Temperatures of a network adapter and of its modules, where its driver has a hardware monitor, and errors of its ports.
 * The kernel gives the light power of modules only by netlink with CAP_NET_ADMIN, which the agent does not have.
 */
const ROWS = hwmonRows.filter(({ kind }) => kind === 'temp');

export const adapterSensorMetrics: readonly MetricSpec[] = [
  hwmonMetrics.temperature,
  hwmonMetrics.temperatureLimit,
  ...Object.values(ethernetErrorMetrics),
];
export const adapterSensorConditions: readonly ConditionSpec[] = [hwmonCondition, blocksLost];

/** Each read is a command to the firmware. */
const EVERY_MS = minutes(1);
/** Firmware that refuses the register makes its driver print a line for each read. */
const RETRY_MS = hours(1);

interface AdapterSensorSample {
  readonly readings: readonly Reading[];
  readonly findings: readonly Finding[];
}

interface Look extends AdapterSensorSample {
  readonly isRefused: boolean;
}

export class AdapterSensors {
  readonly #files: DeviceFiles;
  readonly #limits = new CredibleLimits();
  readonly #kept = new IntervalCache<Look>();
  #monitors: readonly Monitors[] | undefined;
  #isRefused = false;

  constructor(sys: Tree, pciAddress: string) {
    this.#files = new DeviceFiles(sys, `bus/pci/devices/${pciAddress}`);
  }

  read(pace: Pace): AdapterSensorSample {
    const date = ({ readings, findings, isRefused }: Look, readMs: number): Look => {
      return { readings: asOf(readings, readMs), findings: asOf(findings, readMs), isRefused };
    };
    const look = this.#kept.datedOf(pace, this.#isRefused ? RETRY_MS : EVERY_MS, () => this.#look(), date);
    this.#isRefused = look.isRefused;
    return look;
  }

  #look(): Look {
    const files = this.#files.apart();
    this.#monitors ??= monitorsBelow(files).map((monitor) => findMonitor(files, monitor, ROWS));
    const samples = this.#monitors.map((monitor) => readMonitors(files, this.#limits, monitor, 'once'));
    const readings = samples.flatMap((sample) => sample.readings);
    const sensors = this.#monitors.reduce((sum, monitor) => sum + monitor.sensors.length, 0);
    const isRefused = sensors > 0 && !readings.some(({ metric }) => metric === hwmonMetrics.temperature.name);
    // A driver that was loaded again has a monitor of another name.
    if (isRefused || sensors === 0) this.#monitors = undefined;
    const ports = readPorts(files.sys, files.directory);
    const temperatures = samples.flatMap((sample) => sample.temperatures).map(overTemperature);
    return {
      readings: [...readings, ...ports.flatMap((port) => port.readings)],
      findings: [...temperatures, ...ports.flatMap((port) => port.findings)],
      isRefused,
    };
  }
}
