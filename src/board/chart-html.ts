import { durationText } from '../model/duration.ts';
import { type Html, html } from './html.ts';
import { LABEL, percent, stepOf, tenth, timeAxis, timeTicks } from './time-axis.ts';
import { bucketsOf, isGap, type Point, runsOf, usualSpacing } from './trend.ts';
import { isInBits, rateText, readingText, timeText } from './units.ts';

/** Units of a drawing. It is stretched to its place; text and straight lines have their places in percent. */
export const CHART_WIDTH = 1_000;
export const CHART_HEIGHT = 200;
const LONGEST_NAME = 20;

export interface ChartLine {
  readonly name: string;
  /** As long as `times` of the chart; null where nothing was read. */
  readonly values: readonly (number | null)[];
}

export interface Chart {
  readonly title: string;
  /** Its unit is that of the values. */
  readonly metric: string;
  /** The values are the growth of a counter per second. */
  readonly isRate: boolean;
  /** Words of the values 0, 1, and so on, the usual one first: states, which are drawn as strips. */
  readonly words?: readonly string[] | undefined;
  readonly lines: readonly ChartLine[];
  /** Wall clock of the values, ascending. */
  readonly times: readonly number[];
  readonly limits: readonly { readonly value: number; readonly text: string }[];
  readonly fromMs: number;
  readonly untilMs: number;
  /** A fault that lasts until the end. */
  readonly fault?: { readonly fromMs: number; readonly state: string } | undefined;
}

/** A chart with axes, limits and a legend. The legend has the present value of each line, or the time at which the line was read last. */
export function chartHtml(chart: Chart): Html {
  const { title, lines, fromMs, untilMs } = chart;
  const { high, step } = scaleOf(chart);
  const ticks = Array.from({ length: Math.floor(high / step + 1e-9) + 1 }, (_, at) => at * step);
  const labels = ticks.map(
    (value) => html`<text x="62" y="${percent(1 - value / high)}" dy="4" text-anchor="end">${textOf(chart, value)}</text>`,
  );
  return html`<figure class="card chart"><div class="head"><h2>${title}</h2><small class="at">${rangeText(chart)}</small><ul class="legend">${lines.map(
    (line, at) =>
      html`<li class="line-${at}"><i></i>${line.name === '' ? undefined : `${line.name} `}<b${isPresent(chart, line) ? undefined : html` class="soft"`}>${nowText(chart, line)}</b></li>`,
  )}</ul></div>
<div class="draw"><svg class="plot" height="${CHART_HEIGHT}" aria-hidden="true">${labels}</svg>${plotHtml(chart, { high, ticks, height: CHART_HEIGHT })}<span></span>${timeAxis(fromMs, untilMs)}</div></figure>\n`;
}

/** The lines of a chart, without labels of the axes. `momentMs`: a time that a line marks. */
export function plotHtml(
  chart: Chart,
  {
    high,
    ticks,
    height,
    momentMs,
  }: { readonly high: number; readonly ticks: readonly number[]; readonly height: number; readonly momentMs?: number },
): Html {
  const { title, metric, isRate, lines, limits, fromMs, untilMs, fault } = chart;
  const x = (ms: number): string => percent((ms - fromMs) / (untilMs - fromMs));
  const drawn = lines.map((line) => drawnOf(chart, line, high));
  const start = fault && Math.max(fault.fromMs, fromMs);
  return html`<svg class="plot" height="${height}" role="img" aria-label="${title}: ${lines.map((line) => `${line.name} ${nowText(chart, line)}`.trim()).join(', ')}" data-from="${Math.round(fromMs)}" data-until="${Math.round(untilMs)}" data-metric="${metric}" data-high="${high}"${isRate ? html` data-rate="1"` : undefined}>${
    start === undefined || start >= untilMs
      ? undefined
      : html`<rect class="fault ${fault?.state}" x="${x(start)}" width="${percent((untilMs - start) / (untilMs - fromMs))}" height="100%"/>`
  }${ticks.map((value, at) => html`<line class="${at === 0 ? 'base' : 'grid'}" x2="100%" y1="${percent(1 - value / high)}" y2="${percent(1 - value / high)}"/>`)}${timeTicks(
    fromMs,
    untilMs,
  ).map(
    ({ ms }) => html`<line class="grid" x1="${x(ms)}" x2="${x(ms)}" y2="100%"/>`,
  )}<svg viewBox="0 0 ${CHART_WIDTH} ${CHART_HEIGHT}" preserveAspectRatio="none" width="100%" height="100%">${
    drawn[0] === undefined || isTraffic(chart) ? undefined : html`<path class="area" d="${areaOf(drawn[0].path)}"/>`
  }${drawn.map(({ band, path }, at) => html`${band === '' ? undefined : html`<path class="band-${at}" stroke-width="${tenth(bucketOf(chart) * unitsOf(chart))}" d="${band}"/>`}<path class="line-${at}" d="${path}"/>`).toReversed()}</svg>${limits.map(
    ({ value, text }, at) => {
      const y = percent(1 - value / high);
      // A limit just below another one has its label below its line.
      const isBelow = ((limits[at + 1]?.value ?? Number.POSITIVE_INFINITY) - value) * (height / high) < LABEL.height + 4;
      return html`<line class="limit" x2="100%" y1="${y}" y2="${y}"/><text class="limit" x="4" y="${y}" dy="${isBelow ? LABEL.height : -4}">${text}</text>`;
    },
  )}${lines.length < 2 ? undefined : namesAtLines(chart, high, height)}${momentMs === undefined ? undefined : html`<line class="moment" x1="${x(momentMs)}" x2="${x(momentMs)}" y2="100%"/>`}<line class="cursor" y2="100%" visibility="hidden"/></svg>`;
}

/** The name of each line at its last value, one below the other where lines are near each other. The limits have their labels at the other end. */
function namesAtLines({ lines }: Chart, high: number, height: number): readonly Html[] {
  const places = lines
    .map(({ name, values }, at) => ({
      name,
      at,
      y: (1 - Math.min(1, (values.findLast((value) => value !== null) ?? 0) / high)) * height - 4,
    }))
    .toSorted((a, b) => a.y - b.y);
  for (const [at, place] of places.entries())
    place.y = Math.max(place.y, at === 0 ? LABEL.height - 3 : (places[at - 1]?.y ?? 0) + LABEL.height);
  let below = height - 3 + LABEL.height;
  for (const place of places.toReversed()) below = place.y = Math.min(place.y, below - LABEL.height);
  return places
    .filter(({ y }) => y > 0)
    .map(({ name, at, y }) => html`<text class="line-${at}" x="100%" dx="-4" y="${Math.round(y)}" text-anchor="end">${cut(name)}</text>`);
}

const cut = (name: string): string => (name.length > LONGEST_NAME ? `${name.slice(0, LONGEST_NAME - 1)}…` : name);

/** The time that the values of a chart reach back. */
export function rangeText({ times, lines, fromMs, untilMs }: Chart): string {
  const first = times.find((time, at) => time >= fromMs && lines.some(({ values }) => (values[at] ?? null) !== null));
  return first === undefined ? '' : `last ${durationText(untilMs - first)}`;
}

const MOST_BUCKETS = 60;
/** Bytes come in bursts, which a mean hides. */
const isTraffic = ({ metric }: Pick<Chart, 'metric'>): boolean => /_bytes_(?:total|per_second)$/.test(metric);
const bucketOf = ({ fromMs, untilMs }: Chart): number => stepOf(untilMs - fromMs, MOST_BUCKETS);
const unitsOf = ({ fromMs, untilMs }: Chart): number => CHART_WIDTH / (untilMs - fromMs);

/** Largest value of the axis, and the distance of its labels. A share does not grow beyond all of it. */
export function scaleOf({ metric, isRate, lines, limits }: Pick<Chart, 'metric' | 'isRate' | 'lines' | 'limits'>): {
  readonly high: number;
  readonly step: number;
} {
  const most = Math.max(0, ...lines.flatMap(({ values }) => values.map((value) => value ?? 0)), ...limits.map(({ value }) => value * 1.02));
  if (metric.endsWith('_ratio') || (isRate && metric.endsWith('_seconds_total'))) return { high: Math.max(1, most), step: 0.5 };
  // The size of the values is not known, so only 0 has a label.
  if (most === 0) return { high: 1, step: 2 };
  const unit = unitOf(metric, isRate, most);
  const step = roundStep(most / unit / 4) * unit;
  return { high: Math.max(most * 1.05, step), step };
}

/** Labels are round in the unit in which people read them: GiB, or bits. */
function unitOf(metric: string, isRate: boolean, most: number): number {
  if (isInBits(metric)) return 1_000 ** Math.max(0, Math.floor(Math.log(Math.max(1, most * 8)) / Math.log(1_000))) / 8;
  return metric.endsWith('_bytes') && !isRate ? 1_024 ** Math.max(0, Math.floor(Math.log(Math.max(1, most)) / Math.log(1_024))) : 1;
}

function roundStep(least: number): number {
  if (!(least > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(least));
  return ([1, 2, 5, 10].find((one) => one * power >= least) ?? 10) * power;
}

const textOf = ({ metric, isRate, words }: Pick<Chart, 'metric' | 'isRate' | 'words'>, value: number): string =>
  words?.[value] ?? (isRate ? rateText(metric, value) : readingText(metric, value));

/** Text of the last known value of a line. */
export function lastText(chart: Pick<Chart, 'metric' | 'isRate' | 'words'>, { values }: ChartLine): string {
  const last = values.findLast((value) => value !== null) ?? undefined;
  return last === undefined ? 'unknown' : textOf(chart, last);
}

/** Whether the last value of a line is present. A counter can have a longer interval than the other readings, so its last rate stays valid. */
function isPresent({ isRate, times, untilMs }: Chart, { values }: ChartLine): boolean {
  const at = values.findLastIndex((value) => value !== null);
  return (isRate || at === times.length - 1) && !isGap(times[at] ?? 0, untilMs, usualSpacing(times));
}

/** The present value of a line, or the time at which it was read last. */
export function nowText(chart: Chart, line: ChartLine): string {
  if (isPresent(chart, line)) return lastText(chart, line);
  const at = line.values.findLastIndex((value) => value !== null);
  return at < 0 ? 'unknown' : `last read ${timeText(chart.times[at] as number).slice(11, 19)}`;
}

/** A path with gaps where nothing was read; of traffic, the means of short times, and a bar from the least to the largest value of each. */
function drawnOf(chart: Chart, { values }: ChartLine, high: number): { readonly path: string; readonly band: string } {
  const y = (value: number): number => tenth((1 - Math.min(1, value / high)) * CHART_HEIGHT);
  const place = ({ ms, value }: Point): string => `${tenth((ms - chart.fromMs) * unitsOf(chart))} ${y(value)}`;
  const runs = runsOf(chart.times, values, chart.fromMs).map((run) => (isTraffic(chart) ? bucketsOf(run, bucketOf(chart)) : run));
  return {
    // A point that is alone is a dot.
    path: runs.map((run) => `M${(run.length === 1 ? [...run, ...run] : run).map(place).join('L')}`).join(''),
    band: runs
      .flat()
      .filter(({ low, most }) => y(low) !== y(most))
      .map(({ middleMs, low, most }) => `M${tenth((middleMs - chart.fromMs) * unitsOf(chart))} ${y(most)}V${y(low)}`)
      .join(''),
  };
}

const areaOf = (path: string): string =>
  path
    .split('M')
    .slice(1)
    .map((line) => {
      const points = line.split('L');
      const [first = '', last = ''] = [points[0], points.at(-1)];
      return `M${first.split(' ')[0]} ${CHART_HEIGHT}L${line}L${last.split(' ')[0]} ${CHART_HEIGHT}Z`;
    })
    .join('');
