import { clockText, conditionSentences, probationText } from './condition-text.ts';
import { type Html, html } from './html.ts';
import { conditionPath } from './paths.ts';
import type { BoardRow, RowCondition } from './row.ts';
import { durationText } from './units.ts';
import { STATE_NAMES } from './words.ts';

/**
 * The state of a device with its age, and each condition with what to do. `isBrief`: conditions for the record, and those that the parent has
 * too, have a name only, and those that differ in their instance only are one, because no row of a long table should be tall for them.
 */
export function stateCell(row: BoardRow, nowMs: number, isBrief = false): Html {
  const { state, sinceMs, isStale, readAtMs, conditions, ignored, unchecked, probation } = row;
  return html`<span class="state ${state}">${STATE_NAMES[state]}</span>${
    sinceMs === undefined ? undefined : html` <small>for ${age(sinceMs, nowMs)}</small>`
  }${standingText(row)}${isStale === true ? html`<p class="condition">Not read for ${age(readAtMs, nowMs)}.</p>` : undefined}${(
    isBrief ? alike(conditions) : conditions.map((one) => [one] as const)
  ).map(([condition, ...others]) =>
    conditionLine(row.family, condition, others, nowMs, isBrief && (condition.severity === 'info' || condition.ofWhole !== undefined)),
  )}${unchecked === undefined ? undefined : html`<p class="condition soft">Not checked: ${unchecked.join(', ')}. No read could check it yet.</p>`}${probation === undefined ? undefined : html`<p class="condition soft">${probationText(probation)}</p>`}${ignored?.map(
    ({ name, untilMs, why }) =>
      html`<p class="condition soft">${name} is ignored until ${new Date(Math.min(untilMs, LATEST_MS)).toISOString().slice(0, 10)}: ${why}</p>`,
  )}`;
}

/** The latest day that has four digits for the year. */
const LATEST_MS = Date.parse('9999-12-31T23:59:59.999Z');

/** An age that the script of the page keeps up to date. */
export function age(sinceMs: number, nowMs: number): Html {
  return html`<time datetime="${isoText(sinceMs)}" data-since="${sinceMs}" title="${clockText(sinceMs, nowMs)}">${durationText(nowMs - sinceMs)}</time>`;
}

const isoText = (ms: number): string => new Date(ms).toISOString();

/** Text next to the state that shows pending, recovering and unverified conditions. */
function standingText({ state, conditions }: BoardRow): Html | undefined {
  const [leader] = state === 'healthy' ? [] : conditions.filter(({ countsAtMs }) => countsAtMs === undefined);
  const [first, ...others] = conditions.filter(({ countsAtMs, severity }) => countsAtMs !== undefined && severity !== 'info');
  const marked = [leader, first].filter((condition) => condition !== undefined).filter(({ standing }) => standing.length > 0);
  if (marked.length === 0) return undefined;
  const texts = marked.map(({ name, standing }) => `${name} ${standing.join(', ')}`);
  return html`<b>, ${texts.join(', ')}</b>${others.length > 0 ? ` and ${others.length} more` : undefined}`;
}

const MOST_NAMED = 8;

type Alike = readonly [RowCondition, ...RowCondition[]];

/** Conditions of one type that tell the same and ask for the same, in the order of the first ones. */
function alike(conditions: readonly RowCondition[]): readonly Alike[] {
  const found = new Map<string, Alike>();
  for (const condition of conditions) {
    const { type, severity, reason, standing, advice, ofWhole, countsAtMs } = condition;
    const key = JSON.stringify([type, severity, reason, standing, advice, ofWhole === undefined, countsAtMs === undefined]);
    found.set(key, [...(found.get(key) ?? []), condition] as unknown as Alike);
  }
  return [...found.values()];
}

function othersText(others: readonly RowCondition[]): string {
  const names = others.slice(0, MOST_NAMED).map(({ name }) => name);
  return `The same: ${names.join(', ')}${others.length > MOST_NAMED ? ` and ${others.length - MOST_NAMED} more` : ''}.`;
}

function conditionLine(family: string, condition: RowCondition, others: readonly RowCondition[], nowMs: number, isNameOnly: boolean): Html {
  const { name, type, severity, reason, standing, advice, ofWhole } = condition;
  const labels = [severity, reason, ...standing].join(', ');
  const sentences = isNameOnly ? (ofWhole === undefined ? [] : [`The same as ${ofWhole}.`]) : conditionSentences(condition, nowMs);
  const same = others.length === 0 ? undefined : html`<br>${othersText(others)}`;
  const remedy = isNameOnly || advice === undefined ? undefined : html`<br><b>${advice}</b>`;
  return html`<p class="condition"><b><a href="${conditionPath(family, type)}">${name}</a></b> <small>${labels}</small>${sentences.map((text) => html`<br>${text}`)}${same}${remedy}</p>`;
}
