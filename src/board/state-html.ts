import { phasesOf } from '../model/condition-text.ts';
import { durationText } from '../model/duration.ts';
import { conditionText, healthNotes, nameWithInstance, phaseNote, shortMessage } from './condition-text.ts';
import {
  type Appearance,
  appearanceOf,
  appearedAt,
  type ConditionView,
  conditionsOf,
  type DeviceView,
  hasOnlyFaultsOfWhole,
  leadOf,
  remedyOf,
} from './device-view.ts';
import { type Html, html } from './html.ts';
import { shortName } from './name.ts';
import { conditionPath } from './paths.ts';
import { clockText, timeText } from './units.ts';
import { REMEDY_TEXTS, STATE_NAMES } from './words.ts';

/** A state as shape, colour and word. */
export const mark = (state: Appearance, text: string = STATE_NAMES[state]): Html => html`<span class="s ${state}">${text}</span>`;

/** A state as a shape alone; a screen reader gets the word. */
export const shape = (state: Appearance): Html =>
  html`<span class="s bare ${state}"><span class="hidden">${STATE_NAMES[state]}</span></span>`;

/** State and age of a device. A part that has only the faults of its whole refers to it. */
export function stateCell(device: DeviceView, nowMs: number): Html {
  const [state, since] = [appearanceOf(device), appearedAt(device)];
  if (state !== 'healthy' && hasOnlyFaultsOfWhole(device))
    return html`${mark(state)} <small>as ${shortName(leadOf(device)?.ofWhole ?? '')}</small>`;
  return html`${mark(state)}${since === undefined || state === 'pending' ? undefined : html` <small>${age(Date.parse(since), nowMs)}</small>`}`;
}

/** An age that the script of the page keeps up to date. */
export function age(sinceMs: number, nowMs: number): Html {
  return html`<time datetime="${timeText(sinceMs)}" data-since="${sinceMs}" title="since ${clockText(sinceMs, nowMs)}">${durationText(Math.floor((nowMs - sinceMs) / 1_000) * 1_000)}</time>`;
}

/** A time of a day as `16:55:00`, with the date if it is another day. Its exact form is at hand. UTC is said once on each page. */
export function clock(time: string, nowMs: number): Html {
  const text = clockText(Date.parse(time), nowMs)
    .replace(' UTC', '')
    .replace(/^\d{4}-/, '');
  return html`<time datetime="${time}" title="${time}">${text}</time>`;
}

const MOST_NAMED = 8;
type Alike = readonly [ConditionView, ...ConditionView[]];

/** Conditions of one type that tell the same and ask for the same, in the order of the first ones. */
function alike(conditions: readonly ConditionView[]): readonly Alike[] {
  const found = new Map<string, Alike>();
  for (const condition of conditions) {
    const { type, severity, reason, remedy } = condition;
    const key = JSON.stringify([type, severity, reason, phasesOf(condition), remedy]);
    found.set(key, [...(found.get(key) ?? []), condition] as unknown as Alike);
  }
  return [...found.values()];
}

/**
 * Why a row of the table is not well, one line for each condition; what to do is said once. The page of the device has conditions for
 * the record, and those of its whole are in the row of that.
 */
export function whyLines(device: DeviceView, nowMs: number): readonly Html[] {
  const shown = alike(conditionsOf(device).filter(({ severity, ofWhole }) => severity !== 'info' && ofWhole === undefined));
  const last = shown.findLastIndex(([{ remedy }]) => remedy === remedyOf(device));
  const lines = shown.map(([first, ...others], at) => {
    const same = others.slice(0, MOST_NAMED).map(nameWithInstance);
    const more = others.length > MOST_NAMED ? ` and ${others.length - MOST_NAMED} more` : '';
    return html`<p>${conditionLink(device.family, first)} <span class="soft">${phaseNote(device, first, nowMs)}</span> · ${shortMessage(first)}${same.length === 0 ? undefined : ` · the same: ${same.join(', ')}${more}`}${
      last === at ? advice(REMEDY_TEXTS[first.remedy]) : undefined
    }</p>`;
  });
  const unread = device.stale ? [html`<p>Not read for ${age(Date.parse(device.readAt), nowMs)}.</p>`] : [];
  // What was not checked is said once above the table: on a node without a kernel log it is the same for each row.
  const { unchecked: _unchecked, ...rest } = device.health;
  return [...unread, ...lines, ...healthNotes(rest).map((note) => html`<p class="soft">${note}</p>`)];
}

/** Each condition of a device in full, with what to do. */
export function conditionTexts(device: DeviceView, nowMs: number): readonly Html[] {
  return [
    ...(device.stale ? [html`<p>Not read for ${age(Date.parse(device.readAt), nowMs)}.</p>`] : []),
    ...conditionsOf(device).map((one) => {
      const text = conditionText(device, one, nowMs);
      return html`<p>${conditionLink(device.family, one)}: <span class="soft">${text.note}</span> · ${text.sentences.join(' ')}${advice(text.advice)}</p>`;
    }),
    ...healthNotes(device.health).map((note) => html`<p class="soft">${note}</p>`),
  ];
}

const advice = (text: string | undefined): Html | undefined => (text === undefined ? undefined : html` · <b>${text}</b>`);

const conditionLink = (family: string, condition: ConditionView): Html =>
  html`<a href="${conditionPath(family, condition.type)}"><b>${nameWithInstance(condition)}</b></a>`;
