import { type Html, html } from '../../board/html.ts';
import { highest, linePath } from '../../board/spark.ts';
import { ratesOf, TREND_MS, type Trend, trendOf } from '../../board/trend.ts';
import { metricTitle, rateText, readingText } from '../../board/units.ts';
import type { DeviceHistory, SeriesValues } from '../../incidents/history.ts';
import { shared } from '../../model/shared-metrics.ts';

/** The most informative metrics come first. The others follow by name if they changed. */
const FIRST: readonly string[] = [
  shared.utilization,
  shared.memoryUsed,
  shared.receivedBytes,
  shared.transmittedBytes,
  shared.temperature,
  shared.power,
  shared.linkUp,
  shared.errors,
  shared.clock,
].map(({ name }) => name);
const MOST_CHARTS = 12;
/** A reader cannot distinguish more lines than there are colours. */
const MOST_LINES = 6;
const [WIDTH, HEIGHT] = [300, 80];

/** Draws the last half hour of a device: one chart for each metric. The script of the page replaces each drawing by one with axes. */
export function charts(key: string, history: DeviceHistory | undefined, endMs: number): Html {
  if (history === undefined || history.times.length < 2)
    return html`<p class="soft">Charts need two reads. They begin with the start of the agent.</p>`;
  const byMetric = new Map<string, SeriesValues[]>();
  for (const series of history.series) byMetric.set(series.metric, [...(byMetric.get(series.metric) ?? []), series]);
  const rank = (metric: string): number => (FIRST.includes(metric) ? FIRST.indexOf(metric) : FIRST.length);
  const shown = [...byMetric]
    .filter(([metric, list]) => isChart(metric, list))
    .sort(([a], [b]) => rank(a) - rank(b) || (a < b ? -1 : 1))
    .slice(0, MOST_CHARTS);
  if (shown.length === 0) return html`<p class="soft">No reading changed.</p>`;
  return html`<div class="charts" data-device="${key}">${shown.map(([metric, list]) => chart(metric, list, history.times, endMs))}</div>`;
}

/** Facts and limits are no lines. Of the other metrics, only those that moved are worth a chart. */
function isChart(metric: string, list: readonly SeriesValues[]): boolean {
  if (/_(?:info|state|limit_\w+|max\w*)$/.test(metric)) return false;
  const isMain = FIRST.includes(metric) && metric !== shared.errors.name;
  return isMain || list.some(({ values }) => values.some((value) => value !== null && value !== values.find((one) => one !== null)));
}

function chart(metric: string, list: readonly SeriesValues[], times: readonly number[], endMs: number): Html {
  const lines = list.map((series) => ({ name: labelText(series), trend: trendFor(series, times, endMs) }));
  const moving = lines.filter(({ trend }) => trend.some((value) => value !== null)).slice(0, MOST_LINES);
  const isRate = list.some(({ type }) => type === 'counter');
  const high = Math.max(...moving.map(({ trend }) => highest(trend)), metric.endsWith('_ratio') ? 1 : 0);
  const unit = (value: number): string => (isRate ? rateText(metric, value) : readingText(metric, value));
  // Time per second is a share of the time.
  const title = `${metricTitle(metric)}${isRate && !metric.endsWith('_seconds_total') ? ' per second' : ''}`;
  return html`<figure data-metric="${metric}"><figcaption><b>${title}</b> <small>0 to ${unit(high)}</small></figcaption>
<div class="plot"><svg viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${title} over the last ${TREND_MS / 60_000} minutes">${moving.map(
    ({ trend }, at) => html`<path class="line-${at}" d="${linePath(trend, WIDTH, HEIGHT, 0, high)}"/>`,
  )}</svg></div>
<ul class="legend">${moving.map(({ name, trend }, at) => html`<li><span class="key line-${at}"></span>${name === '' ? undefined : `${name} `}<b>${lastText(trend, unit)}</b></li>`)}${
    lines.length > moving.length ? html`<li class="soft">${lines.length - moving.length} more without a line</li>` : undefined
  }</ul></figure>`;
}

function trendFor({ type, values, reads }: SeriesValues, times: readonly number[], endMs: number): Trend {
  return trendOf(times, type === 'counter' ? ratesOf(times, values, reads) : values, endMs);
}

const labelText = ({ labels }: SeriesValues): string =>
  Object.entries(labels)
    .map(([name, value]) => (/^\d+$/.test(value) ? `${name} ${value}` : value))
    .join(', ');

function lastText(trend: Trend, unit: (value: number) => string): string {
  const last = trend.findLast((value) => value !== null);
  return last === undefined || last === null ? 'unknown' : unit(last);
}
