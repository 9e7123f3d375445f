import { durationText, rounded } from '../model/duration.ts';

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
  ['_timestamp_seconds', timestampText],
  ['_seconds', (value) => durationText(value * 1_000)],
  ['_rpm', (value) => `${grouped(value)} rpm`],
];

export function readingText(metric: string, value: number | bigint): string {
  const name = metric.replace(/_total$/, '');
  const write = WRITERS.find(([suffix]) => name.endsWith(suffix))?.[1];
  return write === undefined ? grouped(value) : write(Number(value));
}

/** Traffic of a link is in bits, because link speeds are in bits. */
export const isInBits = (metric: string): boolean => /(?:received|transmitted)_bytes_total$|_bytes_per_second$/.test(metric);

/** Text of the growth of a counter per second. Seconds per second are a share, and joules per second are watts. */
export function rateText(metric: string, value: number): string {
  if (isInBits(metric)) return readingText('_bytes_per_second', value);
  if (metric.endsWith('_bytes_total')) return scaled(value, 'B/s');
  if (metric.endsWith('_seconds_total')) return readingText('_ratio', value);
  return metric.endsWith('_joules_total') ? readingText('_watts', value) : `${readingText('', Number(value.toPrecision(3)))}/s`;
}

/** Titles where the words of the name say more than people need. */
const TITLES: Readonly<Record<string, string>> = {
  device_pcie_link_width_lanes: 'PCIe lanes',
  device_pcie_link_max_width_lanes: 'PCIe lanes at most',
  device_pcie_link_generation: 'PCIe generation',
  device_pcie_link_max_generation: 'PCIe generation at most',
};

/** Returns a title for a metric: `device_memory_used_bytes` becomes `Memory used`. `family`: whose name it begins with, for its own devices. */
export function metricTitle(metric: string, family = ''): string {
  const known = TITLES[metric];
  if (known !== undefined) return known;
  const name = metric
    .replace(/^device_/, '')
    .replace(family === '' ? '' : `${family}_`, '')
    .replace(/_total$/, '');
  const suffix = WRITERS.find(([ending]) => name.endsWith(ending))?.[0] ?? '';
  const words = name.slice(0, name.length - suffix.length).replaceAll('_', ' ');
  if (words === '') return metric;
  const title = words.replace(/\b(?:pcie|ecc|sm|gpu|numa|fec|ecn|crc|ras|dma|sdma|vf|gid)\b/g, (word) =>
    word === 'pcie' ? 'PCIe' : word.toUpperCase(),
  );
  return title.charAt(0).toUpperCase() + title.slice(1);
}

/** The latest time in RFC 3339. Rules without an end use this time or a slightly later one. */
const LATEST_MS = Date.parse('9999-12-31T23:59:59.999Z');

/** Formats a time as RFC 3339 in UTC; undefined stays undefined. */
export function timeText(ms: number): string;
export function timeText(ms: number | undefined): string | undefined;
export function timeText(ms: number | undefined): string | undefined {
  return ms === undefined || Number.isNaN(ms) ? undefined : new Date(Math.min(ms, LATEST_MS)).toISOString();
}

/** Formats a time as `12:03:20 UTC`, with the date if it is not today. */
export function clockText(ms: number, nowMs: number): string {
  const [day, time] = timeText(ms).split('T');
  const clock = `${time?.slice(0, 8)} UTC`;
  return day === timeText(nowMs).split('T')[0] ? clock : `${day} ${clock}`;
}

/** Formats a time; returns the plain number when it is not a valid date. */
function timestampText(seconds: number): string {
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

function grouped(value: number | bigint): string {
  const [whole = '', fraction] = String(value).split('.');
  if (/[^\d-]/.test(whole)) return whole;
  const text = whole.replace(/\B(?=(?:\d{3})+$)/g, '\u202f');
  return fraction === undefined ? text : `${text}.${fraction}`;
}
