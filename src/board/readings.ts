import type { Reading } from '../model/metric.ts';
import { ofMetric } from '../model/readings.ts';
import type { OwnReading, SharedReading, ShownReading } from '../model/shared-metrics.ts';
import { shared } from '../model/shared-metrics.ts';
import type { DeviceState } from '../model/snapshot.ts';
import { type ChosenReading, grown, type Known, plain, type RateOf } from './chosen-reading.ts';
import { SHARED } from './shared-readings.ts';
import { metricTitle } from './units.ts';

/** The readings that a family declares for one kind of its devices; undefined when it declares none. */
export type ShownOf = (family: string, kind: string) => readonly ShownReading[] | undefined;

export interface ReadingsOptions {
  readonly rateOf?: RateOf | undefined;
  readonly shownOf?: ShownOf | undefined;
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
  return usual.length === 0 ? others(readings.filter(isNumber)).slice(0, MOST) : usual;
}

/** True when a reading can be shown. Metrics and API leave out the same readings. */
export function isNumber({ value }: Reading): boolean {
  return typeof value === 'bigint' || Number.isFinite(value);
}

function knownOf({ key, readings }: Pick<DeviceState, 'key' | 'readings'>, rateOf: RateOf | undefined): Known {
  return {
    of: (metric) => ofMetric(readings, metric).filter(isNumber),
    rate(series) {
      const rates = series.map(({ metric, labels }) => rateOf?.(key, metric, labels)).filter((rate) => rate !== undefined);
      return rates.length < series.length ? undefined : Number(rates.reduce((sum, rate) => sum + rate, 0).toPrecision(4));
    },
  };
}

function found(shown: readonly ShownReading[], known: Known): readonly ChosenReading[] {
  const chosen: ChosenReading[] = [];
  for (const one of shown) {
    const reading = typeof one === 'string' ? SHARED[one](known) : own(one, known);
    if (reading !== undefined && chosen.push(reading) === MOST) break;
  }
  return chosen;
}

function own({ label, metric, labels = {}, full, words }: OwnReading, known: Known): ChosenReading | undefined {
  const series = known.of(metric).filter((one) => Object.entries(labels).every(([name, value]) => one.labels?.[name] === value));
  const [first] = series;
  if (first === undefined) return undefined;
  if (metric.endsWith('_total')) return grown(label, series, known, full);
  if (words !== undefined) {
    const text = words[Number(first.value)];
    return text === undefined ? undefined : { ...plain(label, first), text };
  }
  const sum = { ...first, value: series.length === 1 ? first.value : series.reduce((all, { value }) => all + Number(value), 0) };
  return { ...plain(label, sum, full === undefined ? undefined : Number(sum.value) / full), series };
}

/** For a kind of device without a declaration: values with a natural limit first. Facts and states are no readings. */
function others(known: readonly Reading[]): readonly ChosenReading[] {
  const telling = known.filter(({ metric }) => !/_(?:info|state|total|limit_\w+|max\w*|enabled|throttled)$/.test(metric));
  const ratios = telling.filter(({ metric }) => metric.endsWith('_ratio'));
  const rest = telling.filter((one) => !ratios.includes(one));
  return [...ratios.map((one) => plain(titleOf(one), one, Number(one.value))), ...rest.map((one) => plain(titleOf(one), one))];
}

const titleOf = ({ metric, labels }: Reading): string => [metricTitle(metric), ...Object.values(labels ?? {})].join(' ');
