import { type Html, html } from './html.ts';
import { timeText } from './units.ts';

/** Size of a label and of each of its characters, in pixels. */
export const LABEL = { height: 13, character: 6.5 };
/** Width of the narrowest plot, that of a phone, in pixels. */
export const LEAST_WIDTH = 280;

/** Labels of the axis of time. */
export function timeAxis(fromMs: number, untilMs: number, momentMs?: number): Html {
  const label = (ms: number, text: string, kind?: string): Html => {
    const share = (ms - fromMs) / (untilMs - fromMs);
    const anchor = share > 0.95 ? 'end' : share < 0.05 ? 'start' : 'middle';
    return html`<text${kind && html` class="${kind}"`} x="${percent(share)}" y="13" text-anchor="${anchor}">${text}</text>`;
  };
  // A label that would cover another one on a phone is left out; the marked time covers all others.
  const width = (text: string): number => ((text.length * LABEL.character) / LEAST_WIDTH) * (untilMs - fromMs);
  const endOf = (ms: number, text: string): readonly [number, number] => {
    const from = Math.min(Math.max(ms - width(text) / 2, fromMs), untilMs - width(text));
    return [from, from + width(text)];
  };
  const taken = momentMs === undefined ? [] : [endOf(momentMs, '00:00:00')];
  const ticks = timeTicks(fromMs, untilMs).filter(({ ms, text }) => {
    const [from, until] = endOf(ms, text);
    return taken.every((one) => until < one[0] || from > one[1]) && taken.push([from, until]);
  });
  return html`<svg class="plot" height="18" aria-hidden="true">${ticks.map(({ ms, text }) => label(ms, text))}${
    momentMs === undefined ? undefined : label(momentMs, timeText(momentMs).slice(11, 19), 'moment')
  }</svg>`;
}

const STEPS_S = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 14_400, 43_200, 86_400, 172_800, 432_000];
const DAY_S = 86_400;
const MOST_TICKS = 6;

/** Round times, six at most. */
export function timeTicks(fromMs: number, untilMs: number): readonly { readonly ms: number; readonly text: string }[] {
  const stepMs = stepOf(untilMs - fromMs, MOST_TICKS);
  const [from, until] = stepMs < 60_000 ? [11, 19] : stepMs < DAY_S * 1_000 ? [11, 16] : [5, 10];
  const ticks = [];
  for (let ms = Math.ceil(fromMs / stepMs) * stepMs; ms <= untilMs; ms += stepMs) ticks.push({ ms, text: timeText(ms).slice(from, until) });
  return ticks.slice(0, MOST_TICKS + 1);
}

/** The shortest round time, of which at most `most` fit into the whole. Milliseconds. */
export const stepOf = (wholeMs: number, most: number): number =>
  (STEPS_S.find((step) => wholeMs / (step * 1_000) <= most) ?? 10 * DAY_S) * 1_000;

export const tenth = (value: number): number => Math.round(value * 10) / 10;
export const percent = (share: number): string => `${Math.round(share * 10_000) / 100}%`;
