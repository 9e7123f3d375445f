import type { Board } from '../../board/board.ts';
import { type Line, type Size, span } from '../terminal/frame.ts';
import { footerLine, listLines } from './board-view.ts';
import type { DeviceDetail } from './detail.ts';
import { deviceLines } from './device-view.ts';
import { headerLines, type SourceState } from './header.ts';
import { type Item, itemsOf } from './items.ts';
import { type Shown, settled, type TopState } from './state.ts';

/** All that a frame shows. */
export interface Picture {
  readonly state: TopState;
  readonly board: Board | undefined;
  readonly sourceState: SourceState;
  readonly detail: DeviceDetail | undefined;
  readonly size: Size;
  readonly isUtf8: boolean;
}

export interface Frame {
  readonly lines: readonly Line[];
  /** The state with its window moved to the chosen item. */
  readonly state: TopState;
  readonly shown: Shown;
}

/** Draws everything. Pure: the same picture gives the same lines. */
export function frameOf(picture: Picture): Frame {
  const { state, board, sourceState, size } = picture;
  const header = headerLines(board, sourceState, size);
  if (state.screen === 'board') return listFrame(picture, header);
  const text = textOf(picture);
  const room = Math.max(1, size.rows - header.length - 1);
  const scroll = Math.max(0, Math.min(state.scroll, text.length - room));
  const body = text.slice(scroll, scroll + room);
  const more = text.length > room ? `${scroll + 1}-${Math.min(text.length, scroll + room)}/${text.length}  ` : '';
  const footer: Line = [span(more, 'faint'), span('Escape', 'strong'), span(' back  '), span('q', 'strong'), span(' quit')];
  return {
    lines: withFooter([...header, ...body], footer, size),
    state: { ...state, scroll },
    shown: { items: [], room, length: text.length },
  };
}

function listFrame({ state, board, size, isUtf8 }: Picture, header: readonly Line[]): Frame {
  const items: readonly Item[] = board === undefined ? [] : itemsOf(board, state);
  const room = Math.max(1, size.rows - header.length - 2);
  const moved = settled(state, items, room);
  const list = board === undefined ? [] : listLines(moved, items, size, room, { nowMs: Date.parse(board.now), isUtf8 });
  return {
    lines: withFooter([...header, ...list], footerLine(moved, items, room), size),
    state: moved,
    shown: { items, room, length: 0 },
  };
}

function textOf({ state, board, detail, size, isUtf8 }: Picture): readonly Line[] {
  if (state.screen === 'help') return helpLines();
  const row = board?.devices.find(({ key }) => key === state.device?.key);
  if (board === undefined || row === undefined) return [[span(`${state.device?.key} is no longer listed.`)]];
  return deviceLines(row, detail, size.columns, { nowMs: Date.parse(board.now), isUtf8 });
}

/** The footer is the last line. */
function withFooter(lines: readonly Line[], footer: Line, { rows }: Size): readonly Line[] {
  const above = lines.slice(0, Math.max(0, rows - 1));
  return [...above, ...Array.from({ length: Math.max(0, rows - 1 - above.length) }, (): Line => []), footer];
}

/** Keys as the help shows them; docs/page.md has the same table. */
export const KEYS: readonly (readonly [keys: string, what: string])[] = [
  ['Up Down k j', 'one line'],
  ['PageUp PageDown Space', 'one page'],
  ['Home End g G', 'first line, last line'],
  ['Enter Right', 'one device: conditions, what to do, holders, readings, events'],
  ['Escape Left', 'back to the list'],
  ['/', 'filter: words, or family: state: namespace: holder:'],
  ['Escape', 'drop the filter'],
  ['s', 'next order: attention, name, family, state, use, busy'],
  ['t', 'by device tree: parts under their parent'],
  ['p', 'by pod'],
  ['n', 'by place in the node: NUMA and PCIe'],
  ['Ctrl-L', 'paint the screen again'],
  ['?', 'this help'],
  ['q Ctrl-C', 'end'],
];

export function helpLines(): readonly Line[] {
  return [
    [span('Keys', 'strong')],
    ...KEYS.map(([keys, what]): Line => [span(`  ${keys.padEnd(22)} `, 'strong'), span(what)]),
    [],
    [span('A device is held by parts when containers hold parts of it; it is not free.')],
    [span('A pending condition does not count yet. A recovering one ended, and still counts.')],
  ];
}
