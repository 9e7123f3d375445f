import { defined } from '../../model/defined.ts';
import type { ConditionSpec } from '../../model/health.ts';
import type { Labels, MetricSpec, Reading } from '../../model/metric.ts';
import { measured, shared } from '../../model/shared-metrics.ts';
import { type DeviceFiles, EMPTY, IMPOSSIBLE } from './device-files.ts';
import { ABSENT, type FileRow, type RowPace, type RowValue, readRow } from './file-rows.ts';
import { type CredibleLimits, type LimitedTemperature, overTemperatureCondition, withCredibleLimits } from './temperature.ts';
import { plainText } from './text.ts';

/** Hardware monitors (hwmon) below a device: their channels, values and limits. Units: Linux Documentation/hwmon/sysfs-interface. */

/** Quantity that a channel measures. It is also the prefix of its file names. */
export type SensorKind = 'temp' | 'in' | 'curr' | 'power' | 'fan' | 'freq' | 'energy';

/** Divisor of the raw integers, which gives °C, volts, amperes, watts, revolutions per minute, hertz and joules. */
const SCALES: Readonly<Record<SensorKind, number>> = { temp: 1_000, in: 1_000, curr: 1_000, power: 1e6, fan: 1, freq: 1, energy: 1e6 };

/**
 * Range that a working part can measure. A value outside of it is no measurement: an error code, an unsigned negative number or an empty
 * register. Silicon does not survive 200 °C, and parts for the widest range start at -55 °C.
 */
const BOUNDS: Readonly<Partial<Record<SensorKind, readonly [least: number, most: number]>>> = {
  temp: [-60, 200],
  in: [-1_000, 1_000],
  curr: [-10_000, 10_000],
  power: [-20_000, 20_000],
  fan: [0, 200_000],
};

/** Returns whether a sensor of this kind can measure the value. */
export function canMeasure(kind: SensorKind, value: number): boolean {
  const [least, most] = BOUNDS[kind] ?? [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY];
  return value >= least && value <= most;
}

/** Leaves out a value that a sensor of this kind cannot measure, and notes `what`, its file. */
export function possible(files: DeviceFiles, what: string, kind: SensorKind, value: number | undefined): number | undefined {
  if (value === undefined || canMeasure(kind, value)) return value;
  files.note(what, IMPOSSIBLE);
  return undefined;
}

/** Parses a decimal integer; undefined for other text, no text, or a value that a number cannot hold exactly. */
export function parseInteger(text = ''): number | undefined {
  const trimmed = plainText(text);
  if (!/^-?\d{1,16}$/.test(trimmed)) return undefined;
  const value = Number(trimmed);
  return Number.isSafeInteger(value) ? value : undefined;
}

/** Metric label value of a sensor label: `FABRIC Digital Temperature #1` → `fabric_digital_temperature_1`. May be empty. */
export const sensorSlug = (label: string): string =>
  label
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '_')
    .replace(/^_+|_+$/g, '');

/** One value of one monitor. */
export interface Channel {
  readonly kind: SensorKind;
  readonly number: number;
  /** `temp1`: unique within its directory, but for an average beside a present value. */
  readonly name: string;
  /** Path below the directory of the files; absent for a channel that has no value, only attributes such as limits. */
  readonly file?: string;
  readonly isAverage: boolean;
  /** Text of its label as a slug; empty without one. */
  readonly label: string;
  /** Path of an attribute such as `crit`; undefined when the channel does not have it. */
  attribute(suffix: string): string | undefined;
}

export interface ChannelRequest {
  readonly kinds: readonly SensorKind[];
  /** Channels whose files must not be opened, for example a `power2` that sets a target when it is written. */
  readonly exclude?: RegExp;
  /** An average beside a present value is a channel of its own. Otherwise it stands in for a missing value. */
  readonly hasAverages?: boolean;
}

/** Limit of the channels of one monitor. The largest known one has about 80. */
const MOST_CHANNELS = 256;

const FILE = /^((temp|in|curr|power|fan|freq|energy)(\d+))_(\w+)$/;

/** Finds the channels of a monitor, ordered by kind and number. It opens only their labels, because some files cost a round trip to firmware. */
export function channelsIn(files: DeviceFiles, directory: string, { kinds, exclude, hasAverages = false }: ChannelRequest): Channel[] {
  const names = new Set(files.names(directory));
  const path = (file: string): string => (directory === '.' ? file : `${directory}/${file}`);
  const found = new Map<string, readonly [kind: SensorKind, number: number]>();
  for (const each of names) {
    const [, name = '', kind, number] = FILE.exec(each) ?? [];
    if (kinds.includes(kind as SensorKind) && exclude?.test(name) !== true) found.set(name, [kind as SensorKind, Number(number)]);
  }
  const order = [...found].sort(([, [a, m]], [, [b, n]]) => kinds.indexOf(a) - kinds.indexOf(b) || m - n);
  return order.slice(0, MOST_CHANNELS).flatMap(([name, [kind, number]]) => {
    const label = names.has(`${name}_label`) ? sensorSlug(files.text(path(`${name}_label`)) ?? '') : '';
    const attribute = (suffix: string): string | undefined => (names.has(`${name}_${suffix}`) ? path(`${name}_${suffix}`) : undefined);
    const [input, average] = [attribute('input'), attribute('average')];
    const common = { kind, number, name, label, attribute };
    const beside = hasAverages && input !== undefined && average !== undefined ? [{ ...common, file: average, isAverage: true }] : [];
    const file = input ?? average;
    return [{ ...common, isAverage: input === undefined && average !== undefined, ...(file !== undefined && { file }) }, ...beside];
  });
}

/** What is known of the value of a channel before it is read. */
const rowOf = ({ kind, file = '' }: Channel, absent?: number) => ({
  file,
  parse: parseInteger,
  scale: 1 / SCALES[kind],
  absent,
  isPossible: (value: number) => canMeasure(kind, value),
});

/** Reads one channel. `pace`: see {@link readRow}. `what`: its name in problems. */
export const readChannel = (files: DeviceFiles, channel: Channel, pace: RowPace, what?: string): RowValue<number> =>
  readSensor(files, rowOf(channel), pace, what);

function readSensor(files: DeviceFiles, row: Omit<FileRow<number>, 'metric'>, pace: RowPace, what = row.file): RowValue<number> {
  const read = readRow(files, row, pace, what);
  // A monitor without this sensor has no such file. Firmware that does not answer leaves the text empty.
  if (read.error === 'empty') files.note(what, EMPTY);
  return read;
}

/** Reads an attribute in the unit of its channel; undefined without one. An alarm is 0 or 1. `absent`: a value that stands for none. */
export function readAttribute(files: DeviceFiles, channel: Channel, suffix: string, absent?: number): number | undefined {
  const file = channel.attribute(suffix);
  const raw = file === undefined ? undefined : files.once(file, parseInteger).value;
  if (file === undefined || raw === undefined || suffix.endsWith('_alarm')) return raw;
  const value = raw / SCALES[channel.kind];
  return value === absent ? undefined : possible(files, file, channel.kind, value);
}

/** What the channels of one kind become. */
export interface SensorRow {
  readonly kind: SensorKind;
  /** Metric of the values; absent when only the limits are read. */
  readonly metric?: MetricSpec;
  /** Labels of the series. Of a temperature, `sensor` also names it in conditions and problems. */
  readonly labels: (channel: Channel) => Labels;
  /** Value of a sensor that is not wired. */
  readonly absent?: (channel: Channel) => number | undefined;
  readonly limits?: LimitRow;
}

export interface LimitRow {
  /** Absent when the limits are only judged. */
  readonly metric?: MetricSpec;
  /** Name of the limit by suffix of the file. */
  readonly of: Readonly<Record<string, string>>;
  /** Default: the labels of the row, and `limit`. Undefined: no series. */
  readonly labels?: (channel: Channel, limit: string) => Labels | undefined;
  /** Zero is a limit. Otherwise it stands for one that is off or unknown. */
  readonly isZeroReal?: true;
}

interface Sensor extends FileRow<number> {
  readonly kind: SensorKind;
  readonly labels: Labels;
  /** By suffix of the file. */
  readonly limits: Readonly<Partial<Record<string, number>>>;
}

/** The channels of the monitors of one device, and readings of their limits, which rarely change. */
export interface Monitors {
  readonly sensors: readonly Sensor[];
  readonly limits: readonly Reading[];
}

export interface MonitorSample {
  readonly readings: readonly Reading[];
  /** Temperatures whose limits are credible. */
  readonly temperatures: readonly LimitedTemperature[];
}

/** Directories of the monitors of a device, below that of the files. Kernels put them there, or below the parent of a class device. */
export const monitorsBelow = (files: DeviceFiles): readonly string[] =>
  ['', 'hwmon/', 'device/hwmon/'].flatMap((place) =>
    files
      .names(place)
      .filter((name) => /^hwmon\d+$/.test(name))
      .map((name) => `${place}${name}`),
  );

/** Finds the channels of one monitor in a directory below that of the files, and reads labels and limits. */
export function findMonitor(files: DeviceFiles, directory: string, rows: readonly SensorRow[]): Monitors {
  const found = rows.flatMap(({ kind, metric, labels: labelsOf, absent: absentOf, limits }) =>
    channelsIn(files, directory, { kinds: [kind], hasAverages: metric !== undefined })
      .filter(({ file }) => metric === undefined || file !== undefined)
      .map((channel) => {
        const [labels, absent] = [labelsOf(channel), absentOf?.(channel)];
        const values = limits === undefined ? {} : limitsOf(files, channel, limits, absent);
        const own = (limit: string): Labels | undefined =>
          limits?.labels === undefined ? { ...labels, limit } : limits.labels(channel, limit);
        const readings = Object.entries(values).flatMap(([suffix, value]): Reading[] => {
          const told = own(limits?.of[suffix] as string);
          return limits?.metric === undefined || told === undefined
            ? []
            : [{ metric: limits.metric.name, labels: told, value: value as number }];
        });
        return { sensors: metric === undefined ? [] : [{ ...rowOf(channel, absent), kind, metric, labels, limits: values }], readings };
      }),
  );
  return { sensors: found.flatMap(({ sensors }) => sensors), limits: found.flatMap(({ readings }) => readings) };
}

function limitsOf(files: DeviceFiles, channel: Channel, { of, isZeroReal }: LimitRow, absent: number | undefined): Sensor['limits'] {
  const values = Object.keys(of).map((suffix) => [suffix, readAttribute(files, channel, suffix, absent)] as const);
  return Object.fromEntries(values.filter(([, value]) => value !== undefined && (value > 0 || (value === 0 && isZeroReal === true))));
}

/** Reads the sensors. A sensor without a value gives no reading. `credible`: the limits of the device. `pace`: see {@link readRow}. */
export function readMonitors(files: DeviceFiles, credible: CredibleLimits, { sensors, limits }: Monitors, pace: RowPace): MonitorSample {
  const readings: Reading[] = [];
  const temperatures: LimitedTemperature[] = [];
  for (const sensor of sensors) {
    const {
      kind,
      metric,
      labels,
      limits: { crit, emergency },
    } = sensor;
    const { value, error } = readSensor(files, sensor, pace);
    if (value !== undefined) readings.push({ metric: metric.name, labels, value });
    if (kind !== 'temp' || error === ABSENT) continue;
    const temperature = defined({ sensor: labels.sensor as string, celsius: value, critical: crit, emergency });
    temperatures.push(...withCredibleLimits(files, credible, temperature));
  }
  return { readings: [...readings, ...limits], temperatures };
}

/** Value of one sensor in a sample. */
export function readingOf(sample: MonitorSample | undefined, { name }: MetricSpec, sensor: string): number | undefined {
  const value = sample?.readings.find(({ metric, labels }) => metric === name && labels?.sensor === sensor)?.value;
  return value === undefined ? undefined : Number(value);
}

const HWMON = 'hwmon<n> below the device';

/** Metrics of the sensors of a device whose family has no own names for them. */
export const hwmonMetrics = {
  temperature: measured(shared.temperature, `${HWMON}: temp*_input by label`),
  temperatureLimit: measured(shared.temperatureLimit, `${HWMON}: temp*_{max,crit,emergency}`),
  power: measured(shared.power, `${HWMON}: power*_{input,average} by label`),
  voltage: measured(shared.voltage, `${HWMON}: in*_input by label`),
  fanSpeed: measured(shared.fanSpeed, `${HWMON}: fan*_input by label`),
} as const satisfies Readonly<Record<string, MetricSpec>>;

export const hwmonCondition = {
  ...overTemperatureCondition,
  source: `${HWMON}: temp*_crit, temp*_emergency`,
} as const satisfies ConditionSpec;

/** The sensors of such a device, by their labels, or else their channels. */
export const hwmonRows: readonly SensorRow[] = (() => {
  const sensor = ({ label, name }: Channel): string => label || name;
  const labels = (channel: Channel): Labels => ({ sensor: sensor(channel) });
  const limits: LimitRow = { metric: hwmonMetrics.temperatureLimit, of: { max: 'max', crit: 'crit', emergency: 'emergency' } };
  return [
    { kind: 'temp', metric: hwmonMetrics.temperature, labels, limits },
    {
      kind: 'power',
      metric: hwmonMetrics.power,
      labels: (channel) => ({ sensor: `${sensor(channel)}${channel.isAverage ? '_average' : ''}` }),
    },
    { kind: 'in', metric: hwmonMetrics.voltage, labels },
    { kind: 'fan', metric: hwmonMetrics.fanSpeed, labels: (channel) => ({ fan: sensor(channel) }) },
  ];
})();
