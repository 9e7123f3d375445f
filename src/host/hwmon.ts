import type { Tree } from './fs/tree.ts';

/** What a channel of a hardware monitor measures; also the beginning of its files' names. */
export type SensorKind = 'temp' | 'in' | 'curr' | 'power' | 'fan';

/** One channel of one hardware monitor, in °C, volts, amperes, watts or revolutions per minute. */
export interface Sensor {
  readonly kind: SensorKind;
  /** `temp1`: unique within its directory. */
  readonly channel: string;
  /** Text of `<channel>_label`; absent where the driver names nothing. */
  readonly label?: string;
  /** Absent when it could not be read; `error` then says why. */
  readonly value?: number;
  /** Errno name, or `EINVAL` for text that is no number. `ENODATA`: the part is not fitted. */
  readonly error?: string;
  /** Further attributes that were asked for (`max`, `crit_alarm`), those that could be read. Alarms are 0 or 1. */
  readonly attributes: Readonly<Record<string, number>>;
  /** Of the other ones that are there: {@link error}, by attribute. */
  readonly attributeErrors: Readonly<Record<string, string>>;
}

export interface HwmonRequest {
  readonly kinds: readonly SensorKind[];
  /** Suffixes to read beside the value, where the directory has them: `max`, `crit`, `max_alarm`. */
  readonly attributes?: readonly string[];
  /** Channels of which no file may be opened: `power2` that sets a target when written, say. */
  readonly exclude?: RegExp;
}

/** Divisor of the raw integers. Linux Documentation/hwmon/sysfs-interface: millidegrees, millivolts, milliamperes, microwatts. */
const SCALES: Readonly<Record<SensorKind, number>> = { temp: 1_000, in: 1_000, curr: 1_000, power: 1_000_000, fan: 1 };

const VALUE_FILE = /^(temp|in|curr|power|fan)(\d+)_(input|average)$/;

/**
 * Reads the channels of one `hwmonN` directory, in the order of their numbers. `average` stands in for a missing `input`.
 * Reads nothing but what was asked for: some attributes cost a round trip to firmware.
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

/** A decimal integer as hardware monitors print it; undefined for other text or none, and beyond what a number holds exactly. */
export function parseInteger(text = ''): number | undefined {
  const trimmed = text.trim();
  if (!/^-?\d{1,16}$/.test(trimmed)) return undefined;
  const value = Number(trimmed);
  return Number.isSafeInteger(value) ? value : undefined;
}

/**
 * A label as it can stand in a metric's label: `FPGA FABRIC Digital Temperature #1` becomes `fpga_fabric_digital_temperature_1`.
 * Empty when nothing of it is left.
 */
export function sensorSlug(label: string): string {
  return label
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '_')
    .replace(/^_+|_+$/g, '');
}
