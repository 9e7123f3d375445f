import { durationText } from '../model/duration.ts';
import { CHART_WIDTH, type Chart, type ChartLine, nowText, rangeText } from './chart-html.ts';
import { type Html, html } from './html.ts';
import { LABEL, LEAST_WIDTH, percent, tenth, timeAxis } from './time-axis.ts';
import { isGap, usualSpacing } from './trend.ts';

const HEIGHT = 28;
/** States after these have the tones of the first ones again. */
const TONES = 6;

/** The states of a device over one axis of time. */
export function statesHtml(charts: readonly Chart[]): Html | undefined {
  const [first] = charts;
  if (first === undefined) return undefined;
  const lanes = charts.flatMap((chart) => chart.lines.map((line) => laneHtml(chart, line)));
  return html`<section class="card states" aria-label="States"><div class="head"><h2>States</h2><small class="at">${rangeText(first)}</small></div>${lanes}<div class="lane"><div></div>${timeAxis(first.fromMs, first.untilMs)}</div></section>\n`;
}

/** One state over time, with its present word and the time that each other word held. */
export function laneHtml(chart: Chart, line: ChartLine, momentMs?: number): Html {
  const { title, words = [], fromMs, untilMs } = chart;
  const spans = spansOf(chart, line);
  const times = words.map((word, at) => {
    const ms = spans.filter(({ state }) => state === at).reduce((sum, span) => sum + span.untilMs - span.fromMs, 0);
    return { at, text: `${word} ${durationText(ms)}`, isKnown: spans.some(({ state }) => state === at) };
  });
  const known = times.filter(({ isKnown }) => isKnown);
  const x = (ms: number): number => tenth((Math.max(0, ms - fromMs) / (untilMs - fromMs)) * CHART_WIDTH);
  // A state that held for one read is seen, too.
  const bars = spans.map(({ state, fromMs: from, untilMs: until }) => ({
    state,
    x: x(from),
    width: tenth(Math.max(3, x(until) - x(from))),
  }));
  const labels = bars.filter(
    ({ state, width }) => (width / CHART_WIDTH) * LEAST_WIDTH > (words[state]?.length ?? 0) * LABEL.character + 10,
  );
  return html`<div class="lane"><div><b>${title}</b> <span class="soft">${line.name}</span><ul class="legend"><li><b>${nowText(chart, line)}</b></li>${
    known.length < 2 ? undefined : known.map(({ at, text }) => html`<li class="state-${at % TONES}"><i></i>${text}</li>`)
  }</ul></div><svg class="plot" height="${HEIGHT}" role="img" aria-label="${`${title} ${line.name}`.trim()}: ${known.map(({ text }) => text).join(', ')}" data-from="${Math.round(fromMs)}" data-until="${Math.round(untilMs)}" data-words="${words.join('|')}"><svg viewBox="0 0 ${CHART_WIDTH} ${HEIGHT}" preserveAspectRatio="none" width="100%" height="100%">${known.map(
    ({ at }) =>
      html`<path class="state-${at % TONES}" data-state="${at}" d="${bars
        .filter(({ state }) => state === at)
        .map((bar) => `M${bar.x} ${HEIGHT / 2}h${bar.width}`)
        .join('')}"/>`,
  )}</svg>${labels.map(({ state, x: left }) => html`<text class="word" x="${percent(left / CHART_WIDTH)}" dx="5" y="18">${words[state]}</text>`)}${
    momentMs === undefined
      ? undefined
      : html`<line class="moment" x1="${percent(x(momentMs) / CHART_WIDTH)}" x2="${percent(x(momentMs) / CHART_WIDTH)}" y2="100%"/>`
  }<line class="cursor" y2="100%" visibility="hidden"/></svg></div>`;
}

/** Times with one state. A state holds until the next read; after a read that nothing followed it is not known. */
function spansOf({ times, fromMs, untilMs }: Chart, { values }: ChartLine): readonly StateSpan[] {
  const spans: StateSpan[] = [];
  const spacing = usualSpacing(times);
  for (const [at, time] of times.entries()) {
    const state = values[at];
    if (state === null || state === undefined || time < fromMs) continue;
    const next = times[at + 1] ?? untilMs;
    const isRead = (at + 1 === times.length || (values[at + 1] ?? null) !== null) && !isGap(time, next, spacing);
    const span = { state, fromMs: time, untilMs: isRead ? next : time };
    const last = spans.at(-1);
    if (last?.state === state && last.untilMs === time) spans[spans.length - 1] = { ...span, fromMs: last.fromMs };
    else spans.push(span);
  }
  return spans;
}

interface StateSpan {
  readonly state: number;
  readonly fromMs: number;
  readonly untilMs: number;
}
