/** Formats a value for display, rounded and with the unit at the end of the metric's name. */
type Write = (value: number) => string;

const WRITERS: readonly (readonly [suffix: string, write: Write])[] = [
  ['_bytes_per_second', (value) => scaled(value * 8, 'bit/s')],
  ['_bytes', binary],
  ['_celsius', (value) => `${rounded(value)} °C`],
  ['_ratio', (value) => `${rounded(value * 100)} %`],
  ['_watts', (value) => `${rounded(value)} W`],
  ['_joules', (value) => scaled(value, 'J')],
  ['_volts', (value) => `${rounded(value)} V`],
  ['_amperes', (value) => `${rounded(value)} A`],
  ['_hertz', (value) => scaled(value, 'Hz')],
  ['_timestamp_seconds', timeText],
  ['_seconds', (value) => durationText(value * 1_000)],
  ['_rpm', (value) => `${grouped(value)} rpm`],
];

export function readingText(metric: string, value: number | bigint): string {
  const name = metric.replace(/_total$/, '');
  const write = WRITERS.find(([suffix]) => name.endsWith(suffix))?.[1];
  return write === undefined ? grouped(value) : write(Number(value));
}

/** Text of a rate. Traffic of a link is in bits, because link speeds are in bits. Seconds per second are a share, and joules per second are watts. */
export function rateText(metric: string, value: number): string {
  if (/(?:received|transmitted)_bytes_total$/.test(metric)) return readingText('_bytes_per_second', value);
  if (metric.endsWith('_bytes_total')) return scaled(value, 'B/s');
  if (metric.endsWith('_seconds_total')) return readingText('_ratio', value);
  return metric.endsWith('_joules_total') ? readingText('_watts', value) : `${readingText('', Number(value.toPrecision(3)))}/s`;
}

/** Returns a title for a metric: `device_memory_used_bytes` becomes `Memory used`. */
export function metricTitle(metric: string): string {
  const name = metric.replace(/^device_/, '').replace(/_total$/, '');
  const suffix = WRITERS.find(([ending]) => name.endsWith(ending))?.[0] ?? '';
  const words = name.slice(0, name.length - suffix.length).replaceAll('_', ' ');
  return words === '' ? metric : words.charAt(0).toUpperCase() + words.slice(1);
}

/** Formats a duration with two units at most: `3 d 4 h`, `12 min`, `0.4 s`. */
export function durationText(ms: number): string {
  const seconds = Math.max(0, ms) / 1_000;
  if (seconds < 60) return `${rounded(seconds)} s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min`;
  const hours = Math.floor(seconds / 3_600);
  if (hours < 24) return `${hours} h ${Math.floor((seconds % 3_600) / 60)} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** Formats a time; returns the plain number when it is not a valid date. */
function timeText(seconds: number): string {
  const time = new Date(seconds * 1_000);
  return Number.isNaN(time.getTime()) ? grouped(seconds) : time.toISOString();
}

function binary(value: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];
  const power = value < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(value) / 10));
  return `${rounded(value / 1_024 ** power)} ${units[power]}`;
}

function scaled(value: number, unit: string): string {
  const prefixes = ['', 'k', 'M', 'G', 'T', 'P'];
  const power = value < 1 ? 0 : Math.min(prefixes.length - 1, Math.floor(Math.log10(value) / 3));
  return `${rounded(value / 1_000 ** power)} ${prefixes[power]}${unit}`;
}

/** Rounds to about three significant digits. */
function rounded(value: number): string {
  const magnitude = Math.abs(value);
  return String(Number(value.toFixed(magnitude >= 100 ? 0 : magnitude >= 10 ? 1 : 2)));
}

function grouped(value: number | bigint): string {
  const [whole = '', fraction] = String(value).split('.');
  if (/[^\d-]/.test(whole)) return whole;
  const text = whole.replace(/\B(?=(?:\d{3})+$)/g, '\u202f');
  return fraction === undefined ? text : `${text}.${fraction}`;
}
