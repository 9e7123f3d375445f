import { conditionHead, conditionName, nameWithPhase, phasesOf } from '../model/condition-text.ts';
import { pendingTrouble } from '../model/health.ts';
import { conditionText, healthNotes } from './condition-text.ts';
import { type ConditionView, conditionsOf, type DeviceView, sinceOf, stateOf } from './device-view.ts';
import { type Html, html } from './html.ts';
import { conditionPath } from './paths.ts';
import { clockText, durationText, timeText } from './units.ts';
import { STATE_NAMES } from './words.ts';

/**
 * The state of a device with its age, and each condition with what to do. `isBrief`: conditions for the record, and those that the parent has
 * too, have a name only, and those that differ in their instance only are one, because no row of a long table should be tall for them.
 */
export function stateCell(device: DeviceView, nowMs: number, isBrief = false): Html {
  const [state, since] = [stateOf(device), sinceOf(device)];
  const conditions = conditionsOf(device);
  const lines = (isBrief ? alike(conditions) : conditions.map((one) => [one] as const)).map(([condition, ...others]) =>
    conditionLines(device.family, condition, others, nowMs, isBrief && (condition.severity === 'info' || condition.ofWhole !== undefined)),
  );
  return html`<span class="state ${state}">${STATE_NAMES[state]}</span>${
    since === undefined ? undefined : html` <small>for ${age(Date.parse(since), nowMs)}</small>`
  }${phaseText(device)}${
    device.stale ? html`<p class="condition">Not read for ${age(Date.parse(device.readAt), nowMs)}.</p>` : undefined
  }${lines}${healthNotes(device.health).map((note) => html`<p class="condition soft">${note}</p>`)}`;
}

/** An age that the script of the page keeps up to date. */
export function age(sinceMs: number, nowMs: number): Html {
  return html`<time datetime="${timeText(sinceMs)}" data-since="${sinceMs}" title="${clockText(sinceMs, nowMs)}">${durationText(nowMs - sinceMs)}</time>`;
}

/** Text next to the state that shows pending, recovering and unverified conditions. */
function phaseText(device: DeviceView): Html | undefined {
  const leader = stateOf(device) === 'healthy' ? undefined : device.health.conditions[0];
  const [first, ...others] = pendingTrouble(device.health);
  const marked = [leader, first].filter((condition) => condition !== undefined).filter((condition) => phasesOf(condition).length > 0);
  if (marked.length === 0) return undefined;
  return html`<b>, ${marked.map(nameWithPhase).join(', ')}</b>${others.length > 0 ? ` and ${others.length} more` : undefined}`;
}

const MOST_NAMED = 8;

type Alike = readonly [ConditionView, ...ConditionView[]];

/** Conditions of one type that tell the same and ask for the same, in the order of the first ones. */
function alike(conditions: readonly ConditionView[]): readonly Alike[] {
  const found = new Map<string, Alike>();
  for (const condition of conditions) {
    const { type, severity, reason, remedy, ofWhole } = condition;
    const key = JSON.stringify([type, severity, reason, phasesOf(condition), remedy, ofWhole === undefined]);
    found.set(key, [...(found.get(key) ?? []), condition] as unknown as Alike);
  }
  return [...found.values()];
}

function othersText(others: readonly ConditionView[]): string {
  const names = others.slice(0, MOST_NAMED).map(conditionName);
  return `The same: ${names.join(', ')}${others.length > MOST_NAMED ? ` and ${others.length - MOST_NAMED} more` : ''}.`;
}

function conditionLines(
  family: string,
  condition: ConditionView,
  others: readonly ConditionView[],
  nowMs: number,
  isNameOnly: boolean,
): Html {
  const { type, severity, ofWhole } = condition;
  const { sentences, advice } = conditionText(condition, nowMs);
  const told = isNameOnly ? (ofWhole === undefined ? [] : [`The same as ${ofWhole}.`]) : sentences;
  const same = others.length === 0 ? undefined : html`<br>${othersText(others)}`;
  const remedy = isNameOnly || advice === undefined ? undefined : html`<br><b>${advice}</b>`;
  return html`<p class="condition"><small>${severity}</small> <b><a href="${conditionPath(family, type)}">${conditionHead(condition)}</a></b>${told.map((text) => html`<br>${text}`)}${same}${remedy}</p>`;
}
