import type { Labels, Reading } from '../model/metric.ts';
import { shared } from '../model/shared-metrics.ts';
import type { DeviceState } from '../model/snapshot.ts';
import type { RowReading } from './row.ts';
import { metricTitle, readingText } from './units.ts';

/** Growth of one counter per second; undefined after a reset, and until two reads are there. */
export type RateOf = (key: string, metric: string, labels: Labels | undefined) => number | undefined;

/** A reading that is shown, with the series that it comes from. */
export interface ChosenReading extends RowReading {
  readonly series: readonly Pick<Reading, 'metric' | 'labels'>[];
  /** The value is the growth of the series per second, and not their sum. */
  readonly isRate: boolean;
}

const MOST = 3;

/** Chooses the readings that tell most of a device: how busy and how full it is, what it moves, and how close it is to its limits. */
export function chosenReadings({ key, readings }: Pick<DeviceState, 'key' | 'readings'>, rateOf?: RateOf): readonly ChosenReading[] {
  const known = readings.filter(isNumber);
  const of = (metric: string): readonly Reading[] => known.filter((one) => one.metric === metric);
  const traffic = moved(key, of, rateOf);
  const isBusyKnown = of(shared.utilization.name).length > 0;
  const limits = isBusyKnown ? [power(of), temperature(of)] : [temperature(of), power(of)];
  const found = [busy(of), memory(of), ...traffic, ...limits].filter((one) => one !== undefined);
  return (found.length === 0 ? others(known) : found).slice(0, MOST);
}

/** True when a reading can be shown. Metrics and API leave out the same readings. */
export function isNumber({ value }: Reading): boolean {
  return typeof value === 'bigint' || Number.isFinite(value);
}

type Of = (metric: string) => readonly Reading[];

function busy(of: Of): ChosenReading | undefined {
  const engines = of(shared.utilization.name);
  const main = engines.find(({ labels }) => labels?.engine === 'gpu') ?? highest(engines);
  return main && plain('Busy', main, Number(main.value));
}

function memory(of: Of): ChosenReading | undefined {
  const [used] = of(shared.memoryUsed.name);
  const [total] = of(shared.memoryTotal.name);
  if (used === undefined) return undefined;
  if (total === undefined || Number(total.value) <= 0) return plain('Memory', used);
  const text = `${readingText(used.metric, used.value)} of ${readingText(total.metric, total.value)}`;
  return { ...plain('Memory', used, Number(used.value) / Number(total.value)), text };
}

function power(of: Of): ChosenReading | undefined {
  const [drawn] = of(shared.power.name);
  const limits = of(shared.powerLimit.name);
  const limit = ['enforced', 'cap', 'max', 'maximum', 'crit', 'default'].flatMap(
    (name) => limits.find(({ labels }) => labels?.limit === name) ?? [],
  )[0];
  return drawn && against('Power', drawn, limit);
}

/** The sensor that is closest to the limit at which the device acts, otherwise the hottest one. */
function temperature(of: Of): ChosenReading | undefined {
  const limits = of(shared.temperatureLimit.name).filter(({ labels }) => !/min|low|hyst|target/.test(labels?.limit ?? ''));
  const found = of(shared.temperature.name).map((sensor) =>
    against('Temperature', sensor, lowest(limits.filter(({ labels, value }) => labels?.sensor === sensor.labels?.sensor && value > 0))),
  );
  const [first] = found.toSorted((a, b) => (b.ratio ?? 0) - (a.ratio ?? 0) || (b.value ?? 0) - (a.value ?? 0));
  return first;
}

/** Rates in and out, and the link. A total since the driver was loaded tells nobody what happens now. */
function moved(key: string, of: Of, rateOf: RateOf | undefined): readonly ChosenReading[] {
  const links = of(shared.linkUp.name);
  const speeds = of(shared.linkSpeed.name);
  const most = speeds.reduce((sum, { value }) => sum + Number(value), 0);
  const rate = (label: string, series: readonly Reading[]): readonly ChosenReading[] =>
    series.length === 0 ? [] : [rateReading(label, key, series, most, rateOf)];
  return [
    ...rate('In', of(shared.receivedBytes.name)),
    ...rate('Out', of(shared.transmittedBytes.name)),
    ...(links.length === 0 ? [] : [link(links, most)]),
  ];
}

function rateReading(label: string, key: string, series: readonly Reading[], most: number, rateOf: RateOf | undefined): ChosenReading {
  const rates = series.map(({ metric, labels }) => rateOf?.(key, metric, labels)).filter((rate) => rate !== undefined);
  const source = { series, isRate: true };
  if (rates.length < series.length) return { label, text: 'no rate yet', ...source };
  const value = Number(rates.reduce((sum, rate) => sum + rate, 0).toPrecision(4));
  return { label, text: readingText('_bytes_per_second', value), value, ...share(most > 0 ? value / most : undefined), ...source };
}

function link(links: readonly Reading[], bytesPerSecond: number): ChosenReading {
  const up = links.filter(({ value }) => Number(value) === 1).length;
  const speed = bytesPerSecond > 0 ? `, ${readingText(shared.linkSpeed.name, bytesPerSecond)}` : '';
  const text = up === links.length ? `up${speed}` : up === 0 ? 'down' : `${up} of ${links.length} up`;
  return { label: 'Link', text, value: up, series: links, isRate: false };
}

/** For a kind of device that nobody described: values with a natural limit first. Facts and states are no readings. */
function others(known: readonly Reading[]): readonly ChosenReading[] {
  const telling = known.filter(({ metric }) => !/_(?:info|state|total|limit_\w+|max\w*|enabled|throttled)$/.test(metric));
  const ratios = telling.filter(({ metric }) => metric.endsWith('_ratio'));
  const rest = telling.filter((one) => !ratios.includes(one));
  return [...ratios.map((one) => plain(titleOf(one), one, Number(one.value))), ...rest.map((one) => plain(titleOf(one), one))];
}

const titleOf = ({ metric, labels }: Reading): string => [metricTitle(metric), ...Object.values(labels ?? {})].join(' ');

function against(label: string, reading: Reading, limit: Reading | undefined): ChosenReading {
  if (limit === undefined || Number(limit.value) <= 0) return plain(label, reading);
  const text = `${readingText(reading.metric, reading.value)} of ${readingText(limit.metric, limit.value)}`;
  return { ...plain(label, reading, Number(reading.value) / Number(limit.value)), text };
}

function plain(label: string, reading: Reading, ratio?: number): ChosenReading {
  const { metric, value } = reading;
  return { label, text: readingText(metric, value), value: Number(value), ...share(ratio), series: [reading], isRate: false };
}

const share = (ratio: number | undefined): { ratio?: number } =>
  ratio === undefined || !Number.isFinite(ratio) ? {} : { ratio: Math.round(Math.min(1, Math.max(0, ratio)) * 1_000) / 1_000 };

const lowest = (readings: readonly Reading[]): Reading | undefined => readings.toSorted((a, b) => Number(a.value) - Number(b.value))[0];
const highest = (readings: readonly Reading[]): Reading | undefined => readings.toSorted((a, b) => Number(b.value) - Number(a.value))[0];
