import { type Html, html } from '../../board/html.ts';
import { inWords, levelHtml } from '../../board/map-html.ts';
import { compareNames } from '../../board/order.ts';
import { mark, shape } from '../../board/state-html.ts';
import type { FleetNode } from '../fleet.ts';
import { appearanceOf, devicesOf, nodePath, percentText, stateName } from './parts.ts';

/** More nodes than this are cells without text. */
const MOST_TILES = 64;
/** More nodes than this are small cells. */
const MOST_CELLS = 2_000;
/** More links would make the page too large. The worst nodes have them, and a filter reaches the others. */
const MOST_LINKS = 1_000;
const MOST_LETTERS = 40;

/** All nodes in an order that does not depend on their state. `nodes`: worst first. */
export function mapHtml(nodes: readonly FleetNode[]): Html | undefined {
  if (nodes.length === 0) return undefined;
  const linked = new Set(nodes.slice(0, MOST_LINKS));
  const groups = new Map<string, FleetNode[]>();
  for (const node of nodes) {
    const list = groups.get(node.group ?? '');
    if (list === undefined) groups.set(node.group ?? '', [node]);
    else list.push(node);
  }
  const isSmall = nodes.length > MOST_CELLS;
  const drawn = (list: readonly FleetNode[]): Html =>
    nodes.length <= MOST_TILES
      ? html`<ul class="nodes">${list.map(tile)}</ul>`
      : html`<div class="cells${isSmall ? ' small' : ''}">${list.map((node) => (linked.has(node) ? linkedCell(node) : cell(node)))}</div>`;
  const states = [...new Set(nodes.map(({ state }) => state))];
  return html`<section class="card" aria-labelledby="map-title"><div class="head"><h2 id="map-title">Map</h2><span class="soft">fill: use${
    nodes.length > MOST_LINKS ? `; the ${MOST_LINKS} worst lead to their pages` : ''
  }</span></div><div class="map">${[...groups]
    .toSorted(([a], [b]) => compareNames(a, b))
    .map(
      ([group, list]) =>
        html`<h3>${group === '' ? 'Without a group' : group} <span class="soft">${list.length} ${list.length === 1 ? 'node' : 'nodes'}</span></h3>${drawn(list.toSorted((a, b) => compareNames(a.name, b.name)))}\n`,
    )}</div><div class="key" aria-hidden="true">${states.map((state) => mark(appearanceOf(state), stateName(state)))}</div></section>\n`;
}

function tile(node: FleetNode): Html {
  const { name, state, utilizationRatio: use, held, faults } = node;
  const isWell = state === 'healthy';
  return html`<li class="tile ${appearanceOf(state)}${held === 0 ? '' : ' held'}">${use === undefined ? undefined : levelHtml(Math.min(1, Math.max(0, use)))}<a href="${nodePath(node)}" tabindex="-1" title="${titleOf(node)}"><span class="n"><span class="t">${name}</span>${shape(appearanceOf(state))}</span>${
    isWell
      ? html`<span class="v">${percentText(use) ?? html`<small>use not known</small>`}</span>`
      : html`<span class="v word">${faults[0] === undefined ? stateName(state) : inWords(faults[0].condition)}</span>`
  }<span class="p">${held === undefined ? 'holders not known' : `${held} of ${devicesOf(node)} held`}</span></a></li>`;
}

const titleOf = ({ name, state, utilizationRatio }: FleetNode): string =>
  [name, stateName(state).toLowerCase(), utilizationRatio === undefined ? 'use not known' : percentText(utilizationRatio)].join(', ');

const linkedCell = (node: FleetNode): Html =>
  html`<a class="${classesOf(node)}" href="${nodePath(node)}" tabindex="-1" title="${titleOf(node)}"></a>`;

/** Ten thousand of them fit into one page, so they say only their name. */
const cell = (node: FleetNode): Html => html`<i class="${classesOf(node)}" title="${node.name.slice(0, MOST_LETTERS)}"></i>`;

function classesOf({ state, utilizationRatio }: FleetNode): string {
  if (state !== 'healthy') return appearanceOf(state);
  const tenths = Math.round(Math.min(1, Math.max(0, utilizationRatio ?? 0)) * 10);
  return tenths > 0 ? `u${tenths}` : '';
}
