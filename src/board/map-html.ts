import type { Board } from './board.ts';
import { type Appearance, appearanceOf, conditionsOf, type DeviceView, type DisplayReading, modelText, parentKey } from './device-view.ts';
import { type Html, html } from './html.ts';
import { shortName } from './name.ts';
import { APPEARANCES, byPlace } from './order.ts';
import { devicePath } from './paths.ts';
import { countedParts, podsOf, presentText } from './row-html.ts';
import { mark, shape } from './state-html.ts';
import { STATE_NAMES } from './words.ts';

/** More parts than this are cells without text, and their whole takes a row of the map. */
const MOST_NAMED_PARTS = 4;

/** All devices as tiles, in an order that does not depend on their state; parts are inside their whole. */
export function mapHtml({ devices, families: familiesOfBoard }: Pick<Board, 'devices' | 'families'>): Html {
  if (devices.length === 0) return html``;
  const known = new Set(devices.map(({ key }) => key));
  const parts = new Map<string, DeviceView[]>();
  const wholes: DeviceView[] = [];
  for (const device of devices.toSorted(byPlace)) {
    const parent = parentKey(device);
    if (parent === undefined || parent === device.key || !known.has(parent)) wholes.push(device);
    else parts.set(parent, [...(parts.get(parent) ?? []), device]);
  }
  const partsOf = (key: string, depth = 0): readonly DeviceView[] =>
    depth > 4 ? [] : (parts.get(key) ?? []).flatMap((part) => [part, ...partsOf(part.key, depth + 1)]);
  const families = new Map<string, DeviceView[]>();
  for (const whole of wholes) families.set(whole.family, [...(families.get(whole.family) ?? []), whole]);
  return html`<section class="card" aria-labelledby="map-title"><div class="head"><h2 id="map-title">Map</h2><span class="soft">fill: busy, traffic or memory</span></div><div class="map">${[
    ...families,
  ].map(
    ([family, list]) =>
      html`${groupHead(
        familiesOfBoard.find((one) => one.family === family)?.title ?? family,
        list,
        list.reduce((sum, { key }) => sum + partsOf(key).length, 0),
      )}<ul class="tiles">${list.map((one) => tile(one, partsOf(one.key)))}</ul>\n`,
  )}</div><div class="key" aria-hidden="true">${APPEARANCES.filter((state) => state !== 'recovering')
    .map((state) => mark(state, state))
    .toReversed()}</div></section>`;
}

function groupHead(title: string, list: readonly DeviceView[], parts: number): Html {
  const models = [...new Set(list.map((one) => modelText(one)).filter((text) => text !== undefined))];
  const held = list.filter(({ use }) => use === 'held' || use === 'held by parts').length;
  const known = list.some(({ use }) => use === 'unknown') ? 'known to be ' : '';
  const few = models.length > 2 ? `${models.slice(0, 2).join(', ')}, …` : models.join(', ');
  return html`<h3>${list.every(({ kind }) => kind === 'gpu') ? 'GPU' : title} <span class="soft">${list.length} × ${few === '' ? title : few}${parts === 0 ? undefined : `, ${countedParts(parts)}`}</span><span class="soft">${held} of ${list.length} ${known}held</span></h3>`;
}

/** A device with its parts inside. */
export function tile(device: DeviceView, parts: readonly DeviceView[]): Html {
  const { name, use, shown } = device;
  const state = appearanceOf(device);
  const isHeld = use === 'held' || use === 'held by parts';
  const isWide = parts.length > MOST_NAMED_PARTS;
  const pods = podsOf(device.holders.filter(({ part }) => part === undefined)).map(({ pod }) => pod);
  const [reading] = shown;
  const level = reading?.ratio ?? shown.find(({ ratio, label }) => ratio !== undefined && label !== 'Power')?.ratio;
  const nobody = use === 'free' || use === 'used' || use === 'no holder' ? use : use === 'unknown' ? 'holder unknown' : '';
  const who = pods.length > 1 ? `${pods[0]} +${pods.length - 1}` : (pods[0] ?? nobody);
  return html`<li class="tile ${state}${isHeld ? ' held' : ''}${isWide ? ' many' : ''}"${podData(device)}>${
    level === undefined ? undefined : levelHtml(level)
  }<a href="${devicePath(device)}" tabindex="-1" title="${tileTitle(device)}"><span class="n"><span class="t">${shortName(name)}</span>${shape(state)}</span>${valueHtml(device, state, reading)}<span class="p">${who}</span></a>${
    parts.length === 0 ? undefined : html`<span class="parts">${parts.map((part) => cell(part, name, isWide))}</span>`
  }</li>`;
}

export function levelHtml(ratio: number): Html {
  const percent = Math.round(ratio * 100);
  return html`<svg class="lvl" aria-hidden="true"><rect y="${100 - percent}%" width="100%" height="${percent}%"/></svg>`;
}

/** The leading reading; a device that is not well says why instead. */
function valueHtml(device: DeviceView, state: Appearance, reading: DisplayReading | undefined): Html {
  const condition = conditionsOf(device).find(({ severity }) => severity !== 'info');
  if (state !== 'healthy' && state !== 'recovering')
    return html`<span class="v word">${condition === undefined ? STATE_NAMES[state] : inWords(condition.type)}</span>`;
  const [, number, unit] = /^([\d.\u202f-]+)\s*(.*)$/.exec(reading === undefined ? '' : presentText(reading)) ?? [];
  return number === undefined
    ? html`<span class="v word">${reading && presentText(reading)}</span>`
    : html`<span class="v">${number} <small>${unit}</small></span>`;
}

/** `ThermalSlowdown` as people write it: `Thermal slowdown`. */
export const inWords = (type: string): string =>
  type
    .replace(/([a-z\d])([A-Z])(?=[a-z])/g, (_all, before: string, next: string) => `${before} ${next.toLowerCase()}`)
    .replace(/^(?:Gpu|Ecc)\b/, (word) => word.toUpperCase());

function cell(part: DeviceView, whole: string, isWide: boolean): Html {
  const isHeld = part.use === 'held';
  return html`<a class="cell ${appearanceOf(part)}${isHeld ? ' held' : ''}" href="${devicePath(part)}" tabindex="-1" title="${tileTitle(part)}"${podData(part)}>${isWide ? undefined : partName(part.name, whole)}</a>`;
}

const tileTitle = (device: DeviceView): string => {
  const pods = podsOf(device.holders).map(({ pod }) => pod);
  return [device.name, STATE_NAMES[appearanceOf(device)], pods.length === 0 ? device.use : pods.slice(0, 3).join(' ')].join(', ');
};

const podData = ({ holders: [first] }: DeviceView): Html | undefined =>
  first === undefined ? undefined : html` data-pod="${first.namespace}/${first.pod}"`;

/** What distinguishes a part from its whole: the number of `PART 7:0`, and `port0` of `0010:21:00.0-port0`. */
const partName = (name: string, whole: string): string =>
  name.startsWith(whole) ? name.slice(whole.length).replace(/^\W+/, '') || name : shortName(name.split(' ').at(-1) ?? name);
