import { type Html, html } from './html.ts';
import { isGap, usualSpacing } from './trend.ts';
import { isInBits, rateText, readingText, timeText } from './units.ts';

/** Units of a drawing. It is stretched to its place; text and straight lines have their places in percent. */
export const CHART_WIDTH = 1_000;
export const CHART_HEIGHT = 200;
const LABEL_HEIGHT = 16;

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
  return html`<figure class="card chart"><div class="head"><h2>${title}</h2><small class="at"></small><ul class="legend">${lines.map(
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
  const { title, metric, isRate, lines, times, limits, fromMs, untilMs, fault } = chart;
  const x = (ms: number): string => percent((ms - fromMs) / (untilMs - fromMs));
  const paths = lines.map(({ values }) => pathOf(times, values, { fromMs, untilMs, high }));
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
    paths[0] === undefined ? undefined : html`<path class="area" d="${areaOf(paths[0])}"/>`
  }${paths.map((path, at) => html`<path class="line-${at}" d="${path}"/>`).toReversed()}</svg>${limits.map(({ value, text }, at) => {
    const y = percent(1 - value / high);
    // Two limits near each other have their labels at both ends.
    const isAtEnd = at > 0 && ((value - (limits[at - 1]?.value ?? 0)) / high) * height < LABEL_HEIGHT;
    return html`<line class="limit" x2="100%" y1="${y}" y2="${y}"/><text class="limit" x="${isAtEnd ? '100%' : 4}" y="${y}" dy="-4"${isAtEnd ? html` text-anchor="end"` : undefined}>${text}</text>`;
  })}${momentMs === undefined ? undefined : html`<line class="moment" x1="${x(momentMs)}" x2="${x(momentMs)}" y2="100%"/>`}<line class="cursor" y2="100%" visibility="hidden"/></svg>`;
}

/** Labels of the axis of time. */
export function timeAxis(fromMs: number, untilMs: number, momentMs?: number): Html {
  const label = (ms: number, text: string, kind?: string): Html => {
    const share = (ms - fromMs) / (untilMs - fromMs);
    const anchor = share > 0.95 ? 'end' : share < 0.05 ? 'start' : 'middle';
    return html`<text${kind && html` class="${kind}"`} x="${percent(share)}" y="13" text-anchor="${anchor}">${text}</text>`;
  };
  // A label that the marked time would cover is left out.
  const ticks = timeTicks(fromMs, untilMs).filter(({ ms }) => momentMs === undefined || Math.abs(ms - momentMs) > (untilMs - fromMs) / 12);
  return html`<svg class="plot" height="18" aria-hidden="true">${ticks.map(({ ms, text }) => label(ms, text))}${
    momentMs === undefined ? undefined : label(momentMs, timeText(momentMs).slice(11, 19), 'moment')
  }</svg>`;
}

const STEPS_S = [5, 10, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 14_400, 43_200, 86_400, 172_800, 432_000];
const DAY_S = 86_400;
const MOST_TICKS = 6;

/** Round times, six at most. */
function timeTicks(fromMs: number, untilMs: number): readonly { readonly ms: number; readonly text: string }[] {
  const stepMs = (STEPS_S.find((step) => (untilMs - fromMs) / (step * 1_000) <= MOST_TICKS) ?? 10 * DAY_S) * 1_000;
  const [from, until] = stepMs < 60_000 ? [11, 19] : stepMs < DAY_S * 1_000 ? [11, 16] : [5, 10];
  const ticks = [];
  for (let ms = Math.ceil(fromMs / stepMs) * stepMs; ms <= untilMs; ms += stepMs) ticks.push({ ms, text: timeText(ms).slice(from, until) });
  return ticks.slice(0, MOST_TICKS + 1);
}

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

const textOf = ({ metric, isRate }: Pick<Chart, 'metric' | 'isRate'>, value: number): string =>
  isRate ? rateText(metric, value) : readingText(metric, value);

/** Text of the last known value of a line. */
export function lastText(chart: Pick<Chart, 'metric' | 'isRate'>, { values }: ChartLine): string {
  const last = values.findLast((value) => value !== null) ?? undefined;
  return last === undefined ? 'unknown' : textOf(chart, last);
}

/** Whether the last value of a line is present. A counter can have a longer interval than the other readings, so its last rate stays valid. */
function isPresent({ isRate, times, untilMs }: Chart, { values }: ChartLine): boolean {
  const at = values.findLastIndex((value) => value !== null);
  return (isRate || at === times.length - 1) && !isGap(times[at] ?? 0, untilMs, usualSpacing(times));
}

function nowText(chart: Chart, line: ChartLine): string {
  if (isPresent(chart, line)) return lastText(chart, line);
  const at = line.values.findLastIndex((value) => value !== null);
  return at < 0 ? 'unknown' : `last read ${timeText(chart.times[at] as number).slice(11, 19)}`;
}

/** A path with gaps where nothing was read. */
function pathOf(
  times: readonly number[],
  values: readonly (number | null)[],
  { fromMs, untilMs, high }: { readonly fromMs: number; readonly untilMs: number; readonly high: number },
): string {
  const spacing = usualSpacing(times);
  let last: number | undefined;
  return times
    .map((time, at) => {
      const value = values[at];
      if (value === null || value === undefined || time < fromMs) return '';
      const isNew = last === undefined || at - last > 1 || isGap(times[last] as number, time, spacing);
      last = at;
      const x = tenth(((time - fromMs) / (untilMs - fromMs)) * CHART_WIDTH);
      return `${isNew ? 'M' : 'L'}${x} ${tenth((1 - Math.min(1, value / high)) * CHART_HEIGHT)}`;
    })
    .join('');
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

const tenth = (value: number): number => Math.round(value * 10) / 10;
const percent = (share: number): string => `${Math.round(share * 10_000) / 100}%`;
