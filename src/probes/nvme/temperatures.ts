import type { Tree } from '../../host/fs/tree.ts';
import { canMeasure, readHwmon, type Sensor, sensorSlug } from '../../host/hwmon.ts';
import type { DeviceFiles } from '../kit/device-files.ts';
import { type CredibleLimits, IMPOSSIBLE, notCredible } from '../kit/sensor-limits.ts';
import { parseFlag } from '../kit/text.ts';

/** Temperatures of one drive by the kernel's monitor, in °C. */
export interface TemperatureSample {
  readonly sensors: readonly { readonly sensor: string; readonly celsius: number; readonly critical?: number }[];
  /** Bit of the drive's own critical warning; absent when it was not read. */
  readonly hasAlarm?: boolean;
}

/** 0 K: the drive does not measure it. */
const ABSOLUTE_ZERO = -273.15;
export const COMPOSITE = 'composite';

/**
 * Directory of the drive's monitor, below the directory of its controller. Kernels put it there, or below the PCI function. Undefined when
 * the kernel has none.
 */
export function findMonitor(sys: Tree, controller: string): string | undefined {
  const candidates = [
    ...sys.list(controller).filter(isMonitor),
    ...sys
      .list(`${controller}/hwmon`)
      .filter(isMonitor)
      .map((name) => `hwmon/${name}`),
    ...sys
      .list(`${controller}/device/hwmon`)
      .filter(isMonitor)
      .map((name) => `device/hwmon/${name}`),
  ];
  return candidates.find((directory) => sys.text(`${controller}/${directory}/name`) === 'nvme');
}

const isMonitor = (name: string): boolean => /^hwmon\d+$/.test(name);

/**
 * Reads the monitor: one SMART command of the kernel, which serves all its files for a second. `temp<N>_max` and `temp<N>_min` are never
 * opened, because each sends a Get Features command. `limits`: those of the drive.
 */
export function readTemperatures(sys: Tree, files: DeviceFiles, monitor: string, limits: CredibleLimits): TemperatureSample {
  const sensors = readHwmon(sys, `${files.directory}/${monitor}`, { kinds: ['temp'], attributes: ['crit'] });
  for (const { channel, error, attributeErrors } of sensors) {
    if (error !== undefined) files.note(`${monitor}/${channel}_input`, error);
    for (const [attribute, failure] of Object.entries(attributeErrors)) files.note(`${monitor}/${channel}_${attribute}`, failure);
  }
  // The drive has one warning for all its sensors.
  const hasAlarm = files.value(`${monitor}/temp1_alarm`, parseFlag);
  return {
    sensors: sensors.flatMap((sensor) => {
      const { channel, value, attributes } = sensor;
      const possible = (file: string, celsius: number | undefined): number | undefined => {
        if (celsius === undefined || celsius <= ABSOLUTE_ZERO) return undefined;
        if (canMeasure('temp', celsius)) return celsius;
        files.note(`${monitor}/${channel}_${file}`, IMPOSSIBLE);
        return undefined;
      };
      const [celsius, critical] = [possible('input', value), possible('crit', attributes.crit)];
      if (celsius === undefined) return [];
      const name = nameOf(sensor);
      if (critical === undefined || limits.has(name, celsius, critical))
        return [{ sensor: name, celsius, ...(critical !== undefined && { critical }) }];
      files.problem('limit-not-credible', notCredible(name, critical));
      return [{ sensor: name, celsius }];
    }),
    ...(hasAlarm !== undefined && { hasAlarm }),
  };
}

/** Channel 1 is the composite temperature, and channel N is sensor N - 1. Kernels that give no label number them in the same way. */
function nameOf({ channel, label = '' }: Sensor): string {
  const number = Number(channel.slice('temp'.length));
  return sensorSlug(label) || (number === 1 ? COMPOSITE : `sensor_${number - 1}`);
}
