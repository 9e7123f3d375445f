import { type DeviceUse, type DeviceView, type HolderView, modelText, type ShownValue, stateOf } from './device-view.ts';
import { type Html, html } from './html.ts';
import { devicePath, podPath } from './paths.ts';
import { sparkline } from './spark.ts';
import { stateCell } from './state-html.ts';
import type { Trend } from './trend.ts';
import type { ViewRow } from './view.ts';

const MOST_HOLDERS = 4;

/** One device as a row of the table. Server and browser use the same code, so that a live page equals a loaded one. */
export function rowHtml({ row, depth, distance }: ViewRow, trend: Trend | undefined, nowMs: number): Html {
  const { key, family, kind, also, pciAddress, id, name } = row;
  const facts = [`${family} ${kind}`, also, modelText(row), pciAddress === name ? undefined : pciAddress, distance].filter(
    (fact) => fact !== undefined,
  );
  return html`<tr data-key="${key}" class="is-${stateOf(row)} depth-${Math.min(depth, 3)}"><th scope="row"><a class="id" href="${devicePath(row)}" title="${id}">${name}</a><br><small>${facts.join(' · ')}</small></th><td>${stateCell(row, nowMs, true)}</td><td>${useCell(row, MOST_HOLDERS)}</td><td>${readingList(row.shown)}</td><td class="trend">${sparkline(row, trend)}</td></tr>`;
}

const USE_TEXTS: Readonly<Record<DeviceUse, Html | undefined>> = {
  held: undefined,
  'held by parts': html`<span class="soft">held by parts</span>`,
  free: html`<span class="soft">free</span>`,
  unknown: html`<span class="soft">unknown</span>`,
};

export function useCell({ use, holders }: Pick<DeviceView, 'use' | 'holders'>, most: number): Html {
  return html`${USE_TEXTS[use]}${holders.length === 0 ? undefined : holderList(holders, most)}`;
}

export function holderList(holders: readonly HolderView[], most: number): Html {
  const rest = holders.length - most;
  return html`<ul class="plain">${holders.slice(0, most).map(holderLine)}${rest > 0 ? html`<li class="soft">and ${rest} more</li>` : undefined}</ul>`;
}

function holderLine(holder: HolderView): Html {
  const { namespace, pod, container, resource, part } = holder;
  const of = part === undefined ? resource : `${resource}, on ${part}`;
  return html`<li>${namespace}/<a href="${podPath(holder)}"><b>${pod}</b></a> <small>${container}</small><br><small>${of}</small></li>`;
}

export function readingList(readings: readonly ShownValue[]): Html | undefined {
  if (readings.length === 0) return undefined;
  return html`<dl>${readings.map(({ label, text, ratio }) => html`<dt>${label}</dt><dd>${text}${ratio === undefined ? undefined : bar(ratio, label)}</dd>`)}</dl>`;
}

/** The text beside it says the same, so that a screen reader skips the bar. A device may be busy; it must not be hot. */
const bar = (ratio: number, label: string): Html =>
  html`<svg class="bar${ratio >= 0.95 && label === 'Temperature' ? ' full' : ''}" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true"><rect class="rail" width="100" height="4"/><rect class="fill" width="${Math.round(ratio * 100)}" height="4"/></svg>`;
