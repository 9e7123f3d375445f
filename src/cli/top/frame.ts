import type { Board } from '../../board/board.ts';
import type { DeviceView } from '../../board/device-view.ts';
import { findingsOf } from '../../board/summary.ts';
import type { Trends } from '../../board/trend.ts';
import type { ViewGroup } from '../../board/view.ts';
import { fitLine, type Line, type Size, span, widthOf } from '../terminal/frame.ts';
import { placed } from '../terminal/room.ts';
import type { Style } from '../terminal/style.ts';
import { columnsOf, type Drawing, ROOMY_COLUMNS, rowLine } from './columns.ts';
import type { DeviceDetail } from './detail.ts';
import { deviceLines } from './device-view.ts';
import { headerLines, type SourceState } from './header.ts';
import { type Item, itemsOf, withReasons } from './items.ts';
import { type ScreenLayout, settled, type TopState } from './state.ts';

/** All that a frame shows. */
export interface Picture {
  readonly state: TopState;
  readonly board: Board | undefined;
  /** The last half hour of each device, where it is known. */
  readonly trends?: Trends | undefined;
  readonly sourceState: SourceState;
  /** The chosen device, and what is known of it. */
  readonly detail: { readonly key: string; readonly detail: DeviceDetail | undefined } | undefined;
  readonly size: Size;
  readonly isUtf8: boolean;
}

export interface Frame {
  readonly lines: readonly Line[];
  /** The state with its window moved to the chosen item. */
  readonly state: TopState;
  readonly shown: ScreenLayout;
  /** The device that it shows beside or below the list. */
  readonly chosen?: Pick<DeviceView, 'key' | 'family' | 'id'>;
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

function listFrame({ state, board, trends, detail, size, isUtf8 }: Picture, header: readonly Line[]): Frame {
  const isBeside = size.columns >= WIDE_COLUMNS && size.rows >= TALL_ROWS;
  const left = isBeside ? Math.max(ROOMY_COLUMNS, Math.floor(size.columns * LIST_SHARE)) : size.columns;
  const items: readonly Item[] = board === undefined ? [] : withReasons(itemsOf(board, state), left - MARK.length);
  const isRoomy = left >= ROOMY_COLUMNS;
  const room = Math.max(1, size.rows - header.length - 2);
  const moved = settled(state, items, room);
  const chosen = items[moved.at]?.row?.row;
  if (board === undefined || chosen === undefined || size.rows < TALL_ROWS) {
    const list = board === undefined ? [] : listLines(moved, items, size, room, { nowMs: Date.parse(board.now), isUtf8, isRoomy, trends });
    return {
      lines: withFooter([...header, ...list], footerLine(moved, items, room), size),
      state: moved,
      shown: { items, room, length: 0 },
    };
  }
  const drawing = { nowMs: Date.parse(board.now), isUtf8, isRoomy, trends };
  const own = detail?.key === chosen.key ? detail.detail : undefined;
  const list = listLines(moved, items, { ...size, columns: left }, room, drawing);
  const lines = isBeside
    ? besideLines(list, left, chosenLines(chosen, board, own, size.columns - left - SEPARATOR.length, drawing), room + 1)
    : [...list, [], [span('─'.repeat(size.columns), 'faint')], ...chosenLines(chosen, board, own, size.columns, drawing)];
  return {
    lines: withFooter([...header, ...lines], footerLine(moved, items, room), size),
    state: moved,
    shown: { items, room, length: 0 },
    chosen,
  };
}

function textOf({ state, board, detail, size, isUtf8 }: Picture): readonly Line[] {
  if (state.screen === 'help') return helpLines();
  const row = board?.devices.find(({ key }) => key === state.device?.key);
  if (board === undefined || row === undefined) return [[span(`${state.device?.key} is no longer listed.`)]];
  return deviceLines(row, detail?.key === row.key ? detail.detail : undefined, size.columns, { nowMs: Date.parse(board.now), isUtf8 });
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
  ['n', 'by placement: NUMA and PCIe'],
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

const GROUP_NAMES: Readonly<Record<ViewGroup, string>> = { tree: 'device tree', pod: 'pods', placement: 'placement' };

/** Marks the chosen line, also where there are no colours. */
const MARK = '> ';
const NO_MARK = '  ';

/** From so many lines on, what the list leaves free shows the chosen device; from so many columns on beside it. */
const TALL_ROWS = 40;
const WIDE_COLUMNS = 180;
/** The list needs more than half: who holds a device, and what is wrong. */
const LIST_SHARE = 0.55;
const SEPARATOR = ' │ ';

/** The chosen device as on its own screen, with the command. */
function chosenLines(
  chosen: DeviceView,
  board: Board,
  detail: DeviceDetail | undefined,
  columns: number,
  drawing: Drawing,
): readonly Line[] {
  const [finding] = findingsOf(board, [chosen]);
  const command: Line[] = finding?.command === undefined ? [] : [[span('run: ', 'faint'), span(finding.command, 'strong')]];
  return [...command, ...deviceLines(chosen, detail, columns, drawing)];
}

/** Two texts side by side, with a line between them. */
function besideLines(left: readonly Line[], width: number, right: readonly Line[], room: number): readonly Line[] {
  return Array.from({ length: room }, (_none, at) => [...fitLine(left[at] ?? [], width), span(SEPARATOR, 'faint'), ...(right[at] ?? [])]);
}

/** Heads and rows of the list; `room` lines for the rows. */
function listLines(state: TopState, items: readonly Item[], size: Size, room: number, drawing: Drawing): readonly Line[] {
  const gap = size.columns < 60 ? 1 : 2;
  const rows = items.flatMap(({ row }) => row ?? []);
  const places = placed(columnsOf(rows, drawing), size.columns - MARK.length, gap);
  const heads: Line = [span(NO_MARK, 'title'), ...rowLine(places, gap, ({ head }) => [span(head)]).map(({ text }) => span(text, 'title'))];
  const filled = Math.max(0, size.columns - heads.reduce((sum, { text }) => sum + widthOf(text), 0));
  const titled: Line = [...heads, span(' '.repeat(filled), 'title')];
  const shown = items.slice(state.offset, state.offset + room);
  const lines = shown.map((item, place): Line => {
    const isChosen = state.offset + place === state.at;
    const line = itemLine(item);
    const marked = [span(isChosen ? MARK : NO_MARK), ...line];
    if (!isChosen) return marked;
    return [...marked, span(' '.repeat(size.columns))].map(({ text, style }) =>
      span(text, style.startsWith('chosen ') ? style : (`chosen ${style}` as Style)),
    );
  });
  return [titled, ...lines];

  function itemLine({ row, title, note, why }: Item): Line {
    if (why !== undefined) return [span(why, 'mild')];
    if (row !== undefined) return rowLine(places, gap, (column, width) => column.cell(row, width));
    return title === undefined ? [span(note ?? '', 'mild')] : [span(title, 'strong')];
  }
}

/** The last line: the filter while it is typed, otherwise how the list is made and the keys. */
function footerLine({ isTyping, filter, group, sort, at }: TopState, items: readonly Item[], room: number): Line {
  if (isTyping) return [span('filter: ', 'strong'), span(`${filter}_`), span('  Enter keeps it, Escape drops it', 'faint')];
  const own = (list: readonly Item[]): number => list.filter(({ why }) => why === undefined).length;
  const more = items.length > room ? `${own(items.slice(0, at + 1))}/${own(items)}  ` : '';
  const filtered = filter === '' ? [] : [span(`filter: ${filter}  `, 'mild')];
  return [
    span(more, 'faint'),
    ...filtered,
    span('Enter', 'strong'),
    span(' device  '),
    span('?', 'strong'),
    span(' keys  '),
    span('q', 'strong'),
    span(' quit  '),
    span(`by ${GROUP_NAMES[group]}, sorted by ${sort}  `, 'faint'),
    ...[
      ['/', 'filter'],
      ['s', 'sort'],
      ['t', 'tree'],
      ['p', 'pods'],
      ['n', 'placement'],
    ].flatMap(([key = '', what = '']) => [span(key, 'strong'), span(` ${what}  `, 'faint')]),
  ];
}
