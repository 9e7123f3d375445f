import type { PciePath } from '../model/locality.ts';
import type { Board } from './board.ts';
import { type DeviceView, parentKey } from './device-view.ts';
import { type Html, html } from './html.ts';
import { mapHtml, tile } from './map-html.ts';
import { type Bridge, devicesIn, type Socket, socketsOf } from './places.ts';
import type { BoardView } from './view.ts';
import { WAYS } from './ways.ts';

/** The picture above or beside the table: the map, or where the devices are. */
export const pictureHtml = (board: Pick<Board, 'devices' | 'families'>, { group }: Pick<BoardView, 'group'>): Html =>
  group === 'placement' ? placesHtml(board) : mapHtml(board);

/** NUMA nodes, bridges in them and devices in these, as boxes in boxes. Each box has the word of the way between what it holds. */
function placesHtml({ devices }: Pick<Board, 'devices'>): Html {
  if (devices.length === 0) return html``;
  const sockets = socketsOf(devices);
  const parts = new Map<string, DeviceView[]>();
  for (const one of devices) {
    const parent = parentKey(one);
    if (parent !== undefined && parent !== one.key) parts.set(parent, [...(parts.get(parent) ?? []), one]);
  }
  const tileOf = (one: DeviceView): Html => tile(one, parts.get(one.key) ?? []);
  const nodes = sockets.filter(({ numaNode }) => numaNode !== undefined).length;
  const ways = waysIn(sockets);
  return html`<section class="card" aria-labelledby="map-title"><div class="head"><h2 id="map-title">Placement</h2><span class="soft">each box has the word of the way between what it holds</span></div>
<div class="sockets">${nodes > 1 ? html`<p class="link"><b>SYS</b> <span class="soft">the link between NUMA nodes</span></p>` : undefined}${sockets.map((one) => socketHtml(one, nodes > 1 && one.numaNode !== undefined, tileOf))}</div>
<dl class="key ways">${ways.map((way) => html`<div><dt>${way}</dt><dd>${WAYS[way]}</dd></div>`)}</dl></section>`;
}

function socketHtml({ numaNode, bridges, loose }: Socket, isJoined: boolean, tileOf: (one: DeviceView) => Html): Html {
  const count = bridges.flatMap(devicesIn).length + loose.length;
  return html`<div class="socket${isJoined ? ' joined' : ''}"><h3>${numaNode === undefined ? 'NUMA node unknown' : `NUMA node ${numaNode}`} <span class="soft">${count} ${count === 1 ? 'device' : 'devices'}</span>${
    bridges.length > 1 && numaNode !== undefined ? html`<b class="way">NODE</b>` : undefined
  }</h3>${bridges.map((one) => bridgeHtml(one, 'host bridge', tileOf))}${
    loose.length === 0 ? undefined : boxHtml('PCIe path unknown', undefined, html`<ul class="tiles">${loose.map(tileOf)}</ul>`)
  }</div>`;
}

const bridgeHtml = ({ name, way, devices, bridges }: Bridge, kind: string, tileOf: (one: DeviceView) => Html): Html =>
  boxHtml(
    html`${kind} <span class="mono">${name}</span>`,
    way,
    html`${devices.length === 0 ? undefined : html`<ul class="tiles">${devices.map(tileOf)}</ul>`}${bridges.map((one) =>
      bridgeHtml(one, one.way === 'PXB' ? 'PCIe switches' : 'PCIe switch', tileOf),
    )}`,
  );

const boxHtml = (title: Html | string, way: PciePath | undefined, content: Html): Html =>
  html`<div class="box"><p class="soft">${title}${way === undefined ? undefined : html`<b class="way">${way}</b>`}</p><div>${content}</div></div>`;

/** The ways of the picture, the nearest first. */
function waysIn(sockets: readonly Socket[]): readonly PciePath[] {
  const found = new Set<PciePath>();
  const look = ({ way, bridges }: Bridge): void => {
    if (way !== undefined) found.add(way);
    bridges.forEach(look);
  };
  for (const { numaNode, bridges } of sockets) {
    bridges.forEach(look);
    if (bridges.length > 1 && numaNode !== undefined) found.add('NODE');
  }
  if (sockets.filter(({ numaNode }) => numaNode !== undefined).length > 1) found.add('SYS');
  return (Object.keys(WAYS) as PciePath[]).filter((way) => found.has(way));
}
