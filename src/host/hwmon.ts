import type { Tree } from './fs/tree.ts';

/** Quantity that a channel of a hardware monitor measures. It is also the prefix of its file names. */
export type SensorKind = 'temp' | 'in' | 'curr' | 'power' | 'fan';

/** One channel of one hardware monitor, in °C, volts, amperes, watts or revolutions per minute. */
export interface Sensor {
  readonly kind: SensorKind;
  /** `temp1`: unique within its directory. */
  readonly channel: string;
  /** Text of `<channel>_label`; absent when the driver gives no label. */
  readonly label?: string;
  /** Absent when the read failed; `error` then gives the reason. */
  readonly value?: number;
  /** Errno name, or `EINVAL` for text that is not a number. `ENODATA`: the part is not fitted. */
  readonly error?: string;
  /** Requested attributes (`max`, `crit_alarm`) that were read. Alarms are 0 or 1. */
  readonly attributes: Readonly<Record<string, number>>;
  /** Errors of the requested attributes that exist and could not be read, keyed by attribute; see {@link error}. */
  readonly attributeErrors: Readonly<Record<string, string>>;
}

export interface HwmonRequest {
  readonly kinds: readonly SensorKind[];
  /** Suffixes to read in addition to the value, if the files exist: `max`, `crit`, `max_alarm`. */
  readonly attributes?: readonly string[];
  /** Channels whose files must not be opened, for example a `power2` that sets a target when it is written. */
  readonly exclude?: RegExp;
}

/** Divisor of the raw integers. Linux Documentation/hwmon/sysfs-interface: millidegrees, millivolts, milliamperes, microwatts. */
const SCALES: Readonly<Record<SensorKind, number>> = { temp: 1_000, in: 1_000, curr: 1_000, power: 1_000_000, fan: 1 };

/**
 * Range that a working part can measure, in the units of {@link Sensor}. A value outside of it is no measurement: an error code, an
 * unsigned negative number or an empty register. Silicon does not survive 200 °C, and parts for the widest range start at -55 °C.
 */
const BOUNDS: Readonly<Record<SensorKind, readonly [least: number, most: number]>> = {
  temp: [-60, 200],
  in: [-1_000, 1_000],
  curr: [-10_000, 10_000],
  power: [-20_000, 20_000],
  fan: [0, 200_000],
};

/** Returns whether a sensor of this kind can measure the value. */
export function canMeasure(kind: SensorKind, value: number): boolean {
  const [least, most] = BOUNDS[kind];
  return value >= least && value <= most;
}

const VALUE_FILE = /^(temp|in|curr|power|fan)(\d+)_(input|average)$/;

/**
 * Reads the channels of one `hwmonN` directory, ordered by kind and number. `average` replaces a missing `input`.
 * Reads only the requested files, because some attributes cost a round trip to firmware.
 */
export function readHwmon(sys: Tree, directory: string, request: HwmonRequest): readonly Sensor[] {
  const files = new Set(sys.list(directory));
  return channelsOf(files, request).map(({ kind, channel, file }) => {
    const result = sys.read(`${directory}/${file}`);
    const raw = parseInteger(result.text);
    const label = files.has(`${channel}_label`) ? sys.text(`${directory}/${channel}_label`) : undefined;
    return {
      kind,
      channel,
      ...(label !== undefined && label !== '' && { label }),
      ...(raw === undefined ? { error: result.error ?? 'EINVAL' } : { value: raw / SCALES[kind] }),
      ...readAttributes(sys, directory, files, { kind, channel }, request.attributes ?? []),
    };
  });
}

interface Channel {
  readonly kind: SensorKind;
  readonly number: number;
  readonly channel: string;
  readonly file: string;
}

function channelsOf(files: ReadonlySet<string>, { kinds, exclude }: HwmonRequest): readonly Channel[] {
  const channels = new Map<string, Channel>();
  for (const file of files) {
    const match = VALUE_FILE.exec(file);
    const kind = match?.[1] as SensorKind | undefined;
    if (match === null || kind === undefined || !kinds.includes(kind)) continue;
    const channel = `${kind}${match[2]}`;
    if (exclude?.test(channel) === true || (channels.has(channel) && match[3] === 'average')) continue;
    channels.set(channel, { kind, number: Number(match[2]), channel, file });
  }
  return [...channels.values()].sort((a, b) => kinds.indexOf(a.kind) - kinds.indexOf(b.kind) || a.number - b.number);
}

function readAttributes(
  sys: Tree,
  directory: string,
  files: ReadonlySet<string>,
  { kind, channel }: Pick<Channel, 'kind' | 'channel'>,
  wanted: readonly string[],
): Pick<Sensor, 'attributes' | 'attributeErrors'> {
  const attributes: Record<string, number> = {};
  const attributeErrors: Record<string, string> = {};
  for (const suffix of wanted) {
    if (!files.has(`${channel}_${suffix}`)) continue;
    const result = sys.read(`${directory}/${channel}_${suffix}`);
    const raw = parseInteger(result.text);
    if (raw === undefined) attributeErrors[suffix] = result.error ?? 'EINVAL';
    else attributes[suffix] = suffix.endsWith('_alarm') ? raw : raw / SCALES[kind];
  }
  return { attributes, attributeErrors };
}

/** Parses a decimal integer of a hardware monitor; undefined for other text, no text, or a value that a number cannot hold exactly. */
export function parseInteger(text = ''): number | undefined {
  const trimmed = text.trim();
  if (!/^-?\d{1,16}$/.test(trimmed)) return undefined;
  const value = Number(trimmed);
  return Number.isSafeInteger(value) ? value : undefined;
}

/** Metric label value of a sensor label: `FABRIC Digital Temperature #1` → `fabric_digital_temperature_1`. May be empty. */
export function sensorSlug(label: string): string {
  return label
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '_')
    .replace(/^_+|_+$/g, '');
}
