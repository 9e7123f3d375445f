import {
  type Appearance,
  appearanceOf,
  type DeviceUse,
  type DeviceView,
  type DisplayReading,
  type HolderView,
  noHolderText,
  usersText,
} from './device-view.ts';
import { type Html, html } from './html.ts';
import { shortName } from './name.ts';
import { devicePath, podPath } from './paths.ts';
import { sparkline } from './spark.ts';
import { stateCell, whyLines } from './state-html.ts';
import type { Trend } from './trend.ts';
import type { ViewRow } from './view.ts';

const COLUMNS = 7;
/** Characters that the column of the names has room for. The page of the device has all names. */
const LONGEST_NAMES = 20;
const SHOWN = 3;

/** One device as a row of the table, with a second row for what is wrong. Server and browser use the same code. */
export function rowHtml({ row, depth, distance }: ViewRow, trend: Trend | undefined, nowMs: number): Html {
  const { key, id, name, pciAddress, shown, also } = row;
  const edge = edgeOf(appearanceOf(row));
  const why = whyLines(row, nowMs);
  const known = [depth === 0 && pciAddress !== name ? pciAddress : undefined, also].filter((fact) => fact !== undefined);
  const facts = [name, ...known].join(' ').length > LONGEST_NAMES ? [] : known;
  const cells = Array.from(
    { length: distance === undefined ? SHOWN : SHOWN - 1 },
    (_, at) => html`<td class="opt">${shown[at] && readingCell(shown[at])}</td>`,
  );
  const way =
    distance === undefined ? undefined : html`<td class="opt"><small title="${distance}">${distance.replace(/,.*/, '')}</small></td>`;
  const line = html`<tr data-key="${key}" class="${edge}${depth > 0 ? ' part' : ''}"><td>${stateCell(row, nowMs)}</td><th scope="row"><a class="id" href="${devicePath(row)}" title="${id}">${depth > 0 ? shortName(name) : name}</a>${
    facts.length === 0 ? undefined : html` <small class="pci">${facts.join(' ')}</small>`
  }</th><td>${useCell(row)}</td>${cells}${way}<td class="opt">${sparkline(row, trend)}</td></tr>`;
  return why.length === 0 ? line : html`${line}<tr class="why ${edge}"><td colspan="${COLUMNS}">${why}</td></tr>`;
}

/** Parts that have nothing of their own to say, as one row; the link shows them. */
export function foldHtml(whole: DeviceView, parts: readonly DeviceView[]): Html {
  const states = new Map<Appearance, number>();
  for (const part of parts) states.set(appearanceOf(part), (states.get(appearanceOf(part)) ?? 0) + 1);
  const [[worst] = ['healthy' as const]] = states;
  const held = parts.filter(({ use }) => use === 'held').length;
  const free = parts.filter(({ use }) => use === 'free').length;
  const text = [...states].map(([state, count]) => `${count} of ${parts.length} ${state}`).join(', ');
  return html`<tr data-key="parts of ${whole.key}" class="part"><td><span class="s ${worst}">${text}</span></td><th scope="row"><a class="id" href="/?text=${encodeURIComponent(whole.id)}">${countedParts(parts.length)}</a> <small>of ${whole.name}</small></th><td class="soft">${held} held, ${free} free</td><td class="opt" colspan="${COLUMNS - 3}"></td></tr>`;
}

export const countedParts = (count: number): string => `${count} ${count === 1 ? 'part' : 'parts'}`;

const edgeOf = (state: Appearance): string => (state === 'unhealthy' || state === 'missing' ? 'bad' : state === 'degraded' ? 'warn' : '');

const USE_TEXTS: Readonly<Record<DeviceUse, string>> = {
  held: '',
  'held by parts': 'by parts',
  used: '',
  free: 'free',
  'no holder': 'no holder',
  unknown: 'unknown',
};

/** Who holds a device: the first one, and how many others; and who uses it without holding it. Links are outside the order of tabs, because the list of pods has them, too. */
function useCell(device: DeviceView): Html {
  const users = usersText(device);
  return users === undefined ? holderCell(device) : html`${holderCell(device)} <small>${users}</small>`;
}

function holderCell(device: DeviceView): Html {
  const { use, holders, lastHolders } = device;
  const pods = podsOf(holders);
  const [first, ...others] = pods;
  if (first === undefined)
    return html`<span class="soft" title="${noHolderText(device)}">${lastHolders === undefined ? USE_TEXTS[use] : noHolderText(device).replace(/last: .*\//, 'last: ')}</span>`;
  const more = others.length > 0 ? `+${others.length}` : '';
  const note = [use === 'held by parts' ? 'by parts' : '', more].filter((text) => text !== '').join(' ');
  // Beside `by parts`, the column has no room for the namespace.
  const pod =
    use === 'held by parts' ? html`<span title="${first.namespace}/${first.pod}">${podAnchor(first, true)}</span>` : podLink(first, true);
  return html`${pod}${note === '' ? undefined : html` <small>${note}</small>`}`;
}

/** One holder for each pod. */
export const podsOf = <H extends Pick<HolderView, 'namespace' | 'pod'>>(holders: readonly H[]): readonly H[] => [
  ...new Map(holders.map((one) => [`${one.namespace}/${one.pod}`, one])).values(),
];

export const podLink = (holder: Pick<HolderView, 'namespace' | 'pod'>, isAgain = false): Html =>
  html`<span class="soft ns">${holder.namespace}/</span>${podAnchor(holder, isAgain)}`;

const podAnchor = (holder: Pick<HolderView, 'namespace' | 'pod'>, isAgain: boolean): Html =>
  html`<a href="${podPath(holder)}"${isAgain ? html` tabindex="-1"` : undefined}>${holder.pod}</a>`;

/** `48.1 GiB of 79.6 GiB`: the limit is the length of the bar. */
export const presentText = ({ text }: Pick<DisplayReading, 'text'>): string => text.split(' of ')[0] as string;

function readingCell(reading: DisplayReading): Html {
  const { label, ratio } = reading;
  return html`<span class="read" title="${label} ${reading.text}"><span>${label}</span><b>${presentText(reading)}</b>${ratio === undefined ? undefined : bar(reading)}</span>`;
}

/** The text beside it says the same. A device may be busy; it must not be hot. */
export const bar = ({ ratio = 0, label }: Pick<DisplayReading, 'ratio' | 'label'>): Html =>
  html`<svg class="bar${isHot({ ratio, label }) ? ' hot' : ''}" aria-hidden="true"><rect width="${Math.round(ratio * 100)}%" height="2"/></svg>`;

export const isHot = ({ ratio = 0, label }: Pick<DisplayReading, 'ratio' | 'label'>): boolean => ratio >= 0.95 && label === 'Temperature';
