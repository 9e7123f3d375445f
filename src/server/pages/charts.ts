import { type Chart, chartHtml } from '../../board/chart-html.ts';
import { type Html, html } from '../../board/html.ts';
import { isState, stateWord, subjectOf, usualWord } from '../../board/reading-states.ts';
import { usualReading } from '../../board/readings.ts';
import { statesHtml } from '../../board/state-lanes.ts';
import { ratesOf, TREND_MS } from '../../board/trend.ts';
import { metricTitle, readingText } from '../../board/units.ts';
import type { DeviceHistory, SeriesValues } from '../../incidents/history.ts';
import type { Labels, MetricType, Reading } from '../../model/metric.ts';
import { Readings } from '../../model/readings.ts';
import { type SharedReading, shared } from '../../model/shared-metrics.ts';

/** Samples of a device, as the history and a record have them. */
export interface Samples {
  readonly times: readonly number[];
  readonly series: readonly (Pick<SeriesValues, 'metric' | 'values' | 'reads'> & { readonly labels: Labels; readonly type: MetricType })[];
}

type Series = Samples['series'][number];

/** Charts that say most of a device, in their order. `names`: of the lines, where a chart has several metrics. */
const MAIN: readonly { readonly title: string; readonly metrics: readonly string[]; readonly names?: readonly string[] }[] = [
  { title: 'Busy', metrics: [shared.utilization.name] },
  { title: 'Memory', metrics: [shared.memoryUsed.name] },
  { title: 'Traffic', metrics: [shared.receivedBytes.name, shared.transmittedBytes.name], names: ['in', 'out'] },
  { title: 'Temperature', metrics: [shared.temperature.name] },
  { title: 'Power', metrics: [shared.power.name] },
  { title: 'Clocks', metrics: [shared.clock.name] },
  { title: 'Link', metrics: [shared.linkUp.name] },
  { title: 'Throttled', metrics: [shared.throttled.name] },
];
const MOST_CHARTS = 12;
const OPEN_CHARTS = 4;
/** A reader cannot distinguish more lines than there are colours. */
const MOST_LINES = 6;

export interface ChartFrame {
  /** Family of the device. The titles leave its name out. */
  readonly family?: string;
  readonly fromMs: number;
  readonly untilMs: number;
  readonly fault?: Chart['fault'];
}

/** All charts of a device, the most telling first. Facts and limits are no lines; of the other metrics, only those that moved. */
export function chartsOf(samples: Samples, frame: ChartFrame): readonly Chart[] {
  const { times, series } = samples;
  const known = lastValues(samples);
  const main = MAIN.flatMap(({ title, metrics, names = [] }): readonly Chart[] => {
    const own = metrics.flatMap((metric, at) => series.filter((one) => one.metric === metric).map((one) => ({ one, name: names[at] })));
    if (own.some(({ one }) => isState(one.metric)))
      return stateChart(
        title,
        own.map(({ one }) => one),
        times,
        frame,
      );
    return chartOf(title, own, times, limitsOf(title, own, known), frame);
  });
  const others = new Map<string, Series[]>();
  for (const one of series) if (isOther(one)) others.set(one.metric, [...(others.get(one.metric) ?? []), one]);
  const rest = [...others]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([metric, list]) => {
      const title = metricTitle(metric, frame.family);
      if (isState(metric)) return stateChart(title, list, times, frame);
      const isRate = list.some(({ type }) => type === 'counter') && !metric.endsWith('_seconds_total');
      return chartOf(
        `${title}${isRate ? ' per second' : ''}`,
        list.map((one) => ({ one, name: undefined })),
        times,
        [],
        frame,
      );
    });
  return [...main, ...rest].slice(0, MOST_CHARTS);
}

const MAIN_METRICS = MAIN.flatMap(({ metrics }) => metrics);

function isOther({ metric, values }: Series): boolean {
  if (MAIN_METRICS.includes(metric)) return false;
  if (isState(metric)) return true;
  if (/_(?:info|limit_\w+|max\w*|timestamp_seconds)$/.test(metric)) return false;
  const first = values.find((value) => value !== null);
  return values.some((value) => value !== null && value !== first);
}

function chartOf(
  title: string,
  own: readonly { readonly one: Series; readonly name: string | undefined }[],
  times: readonly number[],
  limits: Chart['limits'],
  frame: ChartFrame,
): readonly Chart[] {
  const [first] = own;
  if (first === undefined) return [];
  const isRate = first.one.type === 'counter';
  const isActivity = first.one.metric === shared.utilization.name;
  const isLabelled = own.length > new Set(own.map(({ name }) => name)).size;
  const lines = own
    .map(({ one, name }) => ({
      name: [name, isLabelled || name === undefined ? labelText(one.labels) : '']
        .filter((text) => text !== undefined && text !== '')
        .join(', '),
      values: isRate ? ratesOf(times, one.values, one.reads ?? times) : one.values,
    }))
    .filter(({ values }) => values.some((value) => value !== null))
    // Engines and counters that never moved are left out when another one moved. When no engine moved, the first one says so. Other gauges stay,
    // because 0 has a meaning there.
    .filter((line, at, all) => isMoved(line) || (isActivity ? at === 0 : !isRate || !all.some(isMoved)))
    .slice(0, MOST_LINES);
  return lines.length === 0 ? [] : [{ title, metric: first.one.metric, isRate, lines, times, limits, ...frame }];
}

/** The states of one metric. A link is always shown, a reason to run slower if it ever held, another state if it changed. */
function stateChart(title: string, own: readonly Series[], times: readonly number[], frame: ChartFrame): readonly Chart[] {
  const metric = own[0]?.metric ?? '';
  const found = new Map<string, (string | null)[]>();
  for (const { labels, values } of own) {
    const name = labelText(subjectOf(metric, labels));
    const words = found.get(name) ?? times.map(() => null);
    for (const [at, value] of values.entries()) if (value !== null) words[at] = stateWord(metric, labels, value) ?? words[at] ?? null;
    found.set(name, words);
  }
  const usual = usualWord(metric);
  const wordsOf = (list: Iterable<string | null>): string[] => [...new Set(list)].filter((word) => word !== null);
  const isShown = (words: readonly (string | null)[]): boolean =>
    metric === shared.linkUp.name ||
    (metric === shared.throttled.name ? wordsOf(words).some((word) => word !== usual) : wordsOf(words).length > 1);
  const shown = [...found].filter(([, list]) => isShown(list)).slice(0, MOST_LINES);
  const words = wordsOf([...(usual === undefined ? [] : [usual]), ...shown.flatMap(([, list]) => list)]);
  const lines = shown.map(([name, list]) => ({ name, values: list.map((word) => (word === null ? null : words.indexOf(word))) }));
  return lines.length === 0 ? [] : [{ title, metric, isRate: false, words, lines, times, limits: [], ...frame }];
}

const isMoved = ({ values }: Pick<Series, 'values'>): boolean => values.some((value) => (value ?? 0) !== 0);

const labelText = (labels: Labels): string =>
  Object.entries(labels)
    .map(([name, value]) => (/^\d+$/.test(value) ? `${name} ${value}` : value === 'gpu' ? 'GPU' : value.replaceAll('_', ' ')))
    .join(', ');

const LIMITED: Readonly<Record<string, SharedReading>> = { Memory: 'memory', Temperature: 'temperature', Power: 'power' };

/** The limit that the number in the head names; of a temperature also the next one above it. */
function limitsOf(title: string, own: readonly { readonly one: Series }[], readings: readonly Reading[]): Chart['limits'] {
  const mostOf = (metric: string): number =>
    readings.filter((one) => one.metric === metric).reduce((most, { value }) => Math.max(most, Number(value)), 0);
  if (title === 'Traffic') {
    const speed = mostOf(shared.linkSpeed.name);
    // A port that is down reports the lowest speed, which is no limit of its traffic.
    const isDown = readings.some((one) => one.metric === shared.linkUp.name && Number(one.value) === 0);
    return speed > 0 && !isDown ? [{ value: speed, text: `link ${readingText(shared.linkSpeed.name, speed)}` }] : [];
  }
  const name = LIMITED[title];
  const limit = name && usualReading(name, Readings.of(readings))?.limit;
  if (limit === undefined) return [];
  const metric = own[0]?.one.metric ?? '';
  const sensors = new Set(own.map(({ one }) => one.labels.sensor));
  const named = readings.filter((one) => one.metric === shared.temperatureLimit.name && sensors.has(one.labels?.sensor));
  const textFor = (value: number): string => {
    const word = named.find((one) => Number(one.value) === value)?.labels?.limit ?? 'limit';
    return `${title === 'Memory' ? '' : `${title === 'Temperature' ? word.replaceAll('_', ' ') : 'limit'} `}${readingText(metric, value)}`;
  };
  const next = named.map(({ value }) => Number(value)).filter((value) => title === 'Temperature' && value > limit);
  return [limit, ...next.toSorted((a, b) => a - b).slice(0, 1)].map((value) => ({ value, text: textFor(value) }));
}

/** The last known values of gauges: limits among them. */
export function lastValues({ series }: Samples): readonly Reading[] {
  return series.flatMap(({ metric, labels, type, values }): readonly Reading[] => {
    const value = type === 'counter' ? null : values.findLast((one) => one !== null);
    return value === undefined || value === null ? [] : [{ metric, labels, value }];
  });
}

/** Time of the last read that has a value of a main chart; undefined when there is none. */
export function lastReadOf({ times, series }: Samples): number | undefined {
  const main = series.filter(({ metric }) => MAIN_METRICS.includes(metric));
  return times.findLast((_, at) => main.some(({ values }) => (values[at] ?? null) !== null));
}

/** Draws the charts of a device from its first reading on, half an hour at most. */
export function chartsHtml(history: DeviceHistory | undefined, nowMs: number, fault: Chart['fault'], family = ''): Html {
  const [first] = history?.times ?? [];
  if (history === undefined || first === undefined || history.times.length < 2)
    return html`<p class="soft">Charts need two reads. They begin with the start of the agent.</p>`;
  const found = chartsOf(history, { family, fromMs: Math.max(first, nowMs - TREND_MS), untilMs: nowMs, fault });
  const states = found.filter(({ words }) => words !== undefined);
  const all = found.filter(({ words }) => words === undefined);
  if (found.length === 0) return html`<p class="soft">No reading changed.</p>`;
  const [open, folded] = [all.slice(0, OPEN_CHARTS), all.slice(OPEN_CHARTS)];
  return html`<div class="charts">${open.map(chartHtml)}</div>${statesHtml(states)}${
    folded.length === 0
      ? undefined
      : html`<details class="card"><summary>More charts <span class="soft">${folded.length}</span></summary><div class="charts">${folded.map(chartHtml)}</div></details>`
  }`;
}
