import type { Reading } from '../model/metric.ts';
import { ofMetric } from '../model/readings.ts';
import type { OwnReading, PageReading, SharedReading } from '../model/shared-metrics.ts';
import { shared } from '../model/shared-metrics.ts';
import type { DeviceState } from '../model/snapshot.ts';
import { against, type ChosenReading, type DeviceValues, grown, NO_RATE, plain, type RateOf } from './chosen-reading.ts';
import { metricTitle, rateText, readingText } from './units.ts';

/** The readings that a family declares for one kind of its devices; undefined when it declares none. */
export type PageReadingsOf = (family: string, kind: string) => readonly PageReading[] | undefined;

export interface ReadingsOptions {
  readonly rateOf?: RateOf | undefined;
  readonly shownOf?: PageReadingsOf | undefined;
}

const MOST = 3;

/**
 * Chooses the most informative readings of a device, as its family declares. Without a declaration: how busy and how full it is, what it
 * moves, and how close it is to its limits.
 */
export function chooseReadings(
  state: Pick<DeviceState, 'key' | 'device' | 'readings'>,
  options: ReadingsOptions = {},
): readonly ChosenReading[] {
  const { device, readings } = state;
  const known = knownOf(state, options.rateOf);
  const declared = options.shownOf?.(device.family, device.kind);
  if (declared !== undefined) return found(declared, known);
  const isBusyKnown = known.of(shared.utilization.name).length > 0;
  const limits: readonly SharedReading[] = isBusyKnown ? ['power', 'temperature'] : ['temperature', 'power'];
  const usual = found(['busy', 'memory', 'in', 'out', 'link', ...limits], known);
  return usual.length === 0 ? others([...readings].filter(isNumber)).slice(0, MOST) : usual;
}

/** One of the usual readings with its limit. */
export const usualReading = (name: SharedReading, readings: DeviceState['readings']): ChosenReading | undefined =>
  SHARED[name](knownOf({ key: '', readings }, undefined));

const MOST_NUMBERS = 6;

/** The readings of the page of one device: those of its row, and what else is known of the usual ones. */
export function chooseNumbers(
  state: Pick<DeviceState, 'key' | 'device' | 'readings'>,
  options: ReadingsOptions = {},
): readonly ChosenReading[] {
  const first = chooseReadings(state, options);
  const known = knownOf(state, options.rateOf);
  const usual = found(['busy', 'memory', 'temperature', 'power', 'in', 'out', 'link'], known, MOST_NUMBERS);
  const labels = new Set(first.map(({ label }) => label));
  return [...first, ...usual.filter(({ label }) => !labels.has(label))].slice(0, MOST_NUMBERS);
}

/** True when a reading can be shown. Metrics and API leave out the same readings. */
export function isNumber({ value }: Reading): boolean {
  return typeof value === 'bigint' || Number.isFinite(value);
}

function knownOf({ key, readings }: Pick<DeviceState, 'key' | 'readings'>, rateOf: RateOf | undefined): DeviceValues {
  return {
    of: (metric) => ofMetric(readings, metric).filter(isNumber),
    ending: (suffix) => [...readings].filter((one) => one.metric.endsWith(suffix) && isNumber(one)),
    rate(series) {
      const rates = series.map(({ metric, labels }) => rateOf?.(key, metric, labels)).filter((rate) => rate !== undefined);
      return rates.length < series.length ? undefined : Number(rates.reduce((sum, rate) => sum + rate, 0).toPrecision(4));
    },
  };
}

function found(shown: readonly PageReading[], known: DeviceValues, most = MOST): readonly ChosenReading[] {
  const chosen: ChosenReading[] = [];
  for (const one of shown) {
    const reading = typeof one === 'string' ? SHARED[one](known) : own(one, known);
    if (reading !== undefined && chosen.push(reading) === most) break;
  }
  return chosen;
}

function own({ label, metric, labels = {}, full, words }: OwnReading, known: DeviceValues): ChosenReading | undefined {
  const series = known.of(metric).filter((one) => Object.entries(labels).every(([name, value]) => one.labels?.[name] === value));
  const [first] = series;
  if (first === undefined) return undefined;
  if (metric.endsWith('_total')) return grown(label, series, known, full);
  if (words !== undefined) {
    const text = words[Number(first.value)];
    return text === undefined ? undefined : { ...plain(label, first), text };
  }
  const sum = { ...first, value: series.length === 1 ? first.value : series.reduce((all, { value }) => all + Number(value), 0) };
  return { ...plain(label, sum, full), series };
}

/** For a kind of device without a declaration: values with a natural limit first. Facts and states are no readings. */
function others(known: readonly Reading[]): readonly ChosenReading[] {
  const telling = known.filter(({ metric }) => !/_(?:info|state|total|limit_\w+|max\w*|enabled|throttled)$/.test(metric));
  const ratios = telling.filter(({ metric }) => metric.endsWith('_ratio'));
  const rest = telling.filter((one) => !ratios.includes(one));
  return [...ratios.map((one) => plain(titleOf(one), one, 1)), ...rest.map((one) => plain(titleOf(one), one))];
}

const titleOf = ({ metric, labels }: Reading): string => [metricTitle(metric), ...Object.values(labels ?? {})].join(' ');

/** How each reading is made of shared metrics; undefined where the device does not report it. */
const SHARED: Readonly<Record<SharedReading, (known: DeviceValues) => ChosenReading | undefined>> = {
  busy({ of }) {
    const engines = of(shared.utilization.name);
    const main = engines.find(({ labels }) => labels?.engine === 'gpu') ?? highest(engines);
    return main && plain('Busy', main, 1);
  },
  memory({ of }) {
    const [used] = of(shared.memoryUsed.name);
    const [total] = of(shared.memoryTotal.name);
    return used && against('Memory', used, total);
  },
  power({ of }) {
    const [drawn] = of(shared.power.name);
    const limits = of(shared.powerLimit.name);
    const limit = ['enforced', 'cap', 'max', 'maximum', 'crit', 'default'].flatMap(
      (name) => limits.find(({ labels }) => labels?.limit === name) ?? [],
    )[0];
    return drawn && against('Power', drawn, limit);
  },
  /** The sensor that is closest to the limit at which the device acts, otherwise the hottest one. */
  temperature(known) {
    const sensors = known.of(shared.temperature.name);
    const absolute = known.of(shared.temperatureLimit.name);
    const limits = (absolute.length > 0 ? absolute : limitOfMargin(sensors[0], known)).filter(
      ({ labels }) => !/min|low|hyst|target/.test(labels?.limit ?? ''),
    );
    const found = sensors.map((sensor) =>
      against('Temperature', sensor, lowest(limits.filter(({ labels, value }) => labels?.sensor === sensor.labels?.sensor && value > 0))),
    );
    const [chosen] = found.toSorted((a, b) => (b.ratio ?? 0) - (a.ratio ?? 0) || (b.value ?? 0) - (a.value ?? 0));
    const sensor = chosen?.series[0]?.labels?.sensor;
    // The first sensor is that of the device itself.
    return chosen && chosen !== found[0] && sensor !== undefined
      ? { ...chosen, label: `Temp. ${sensor.replaceAll('_', ' ').replace(/ temp$/, '')}` }
      : chosen;
  },
  in: (known) => moved('In', known.of(shared.receivedBytes.name), known),
  out: (known) => moved('Out', known.of(shared.transmittedBytes.name), known),
  traffic(known) {
    const directions = { in: known.of(shared.receivedBytes.name), out: known.of(shared.transmittedBytes.name) };
    const series = [...directions.in, ...directions.out];
    if (series.length === 0) return undefined;
    const value = known.rate(series);
    const source = { label: 'Traffic', series, isRate: true };
    if (value === undefined) return { ...source, text: NO_RATE };
    const texts = Object.entries(directions).flatMap(([name, list]) =>
      list.length === 0 ? [] : [`${rateText(shared.receivedBytes.name, known.rate(list) ?? 0)} ${name}`],
    );
    return { ...source, text: texts.join(', '), value };
  },
  link({ of }) {
    const links = of(shared.linkUp.name);
    if (links.length === 0) return undefined;
    const up = links.filter(({ value }) => Number(value) === 1).length;
    const most = speedOf(of(shared.linkSpeed.name));
    const speed = most > 0 ? `, ${readingText(shared.linkSpeed.name, most)}` : '';
    const text = up === links.length ? `up${speed}` : up === 0 ? 'down' : `${up} of ${links.length} up`;
    return { label: 'Link', text, value: up, series: links, isRate: false };
  },
};

/** The first sensor is that of the device itself. Its margin is the distance to the limit. The device slows down at the slowdown margin, which can be below 0. */
function limitOfMargin(sensor: Reading | undefined, { ending }: DeviceValues): readonly Reading[] {
  const [margin] = sensor === undefined ? [] : ending('_temperature_margin_celsius');
  if (sensor === undefined || margin === undefined) return [];
  const acts = ending('_temperature_limit_margin_celsius').find(({ labels }) => labels?.limit === 'slowdown');
  const value = Number(sensor.value) + Number(margin.value) - Number(acts?.value ?? 0);
  return [{ metric: shared.temperatureLimit.name, labels: sensor.labels ?? {}, value }];
}

/** A total since the driver was loaded does not show what happens now. */
const moved = (label: string, series: readonly Reading[], known: DeviceValues): ChosenReading | undefined =>
  series.length === 0 ? undefined : grown(label, series, known, speedOf(known.of(shared.linkSpeed.name)));

const speedOf = (speeds: readonly Reading[]): number => speeds.reduce((sum, { value }) => sum + Number(value), 0);
const lowest = (readings: readonly Reading[]): Reading | undefined => readings.toSorted((a, b) => Number(a.value) - Number(b.value))[0];
const highest = (readings: readonly Reading[]): Reading | undefined => readings.toSorted((a, b) => Number(b.value) - Number(a.value))[0];
