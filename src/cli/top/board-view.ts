import type { ViewGroup } from '../../board/view.ts';
import { type Line, type Size, span } from '../terminal/frame.ts';
import { placed } from '../terminal/room.ts';
import { columnsOf, type Drawing, rowLine } from './columns.ts';
import type { Item } from './items.ts';
import type { TopState } from './state.ts';

const GROUP_NAMES: Readonly<Record<ViewGroup, string>> = { tree: 'device tree', pod: 'pods', topology: 'places in the node' };

/** Marks the chosen line, also where there are no colours. */
const MARK = '> ';
const NO_MARK = '  ';

/** Heads and rows of the list; `room` lines for the rows. */
export function listLines(state: TopState, items: readonly Item[], size: Size, room: number, drawing: Drawing): readonly Line[] {
  const gap = size.columns < 60 ? 1 : 2;
  const rows = items.flatMap(({ row }) => row ?? []);
  const places = placed(columnsOf(rows, drawing), size.columns - MARK.length, gap);
  const heads: Line = [span(NO_MARK, 'title'), ...rowLine(places, gap, ({ head }) => [span(head)]).map(({ text }) => span(text, 'title'))];
  const titled: Line = [...heads, span(' '.repeat(size.columns), 'title')];
  const shown = items.slice(state.offset, state.offset + room);
  const lines = shown.map((item, place): Line => {
    const isChosen = state.offset + place === state.at;
    const line = itemLine(item);
    const marked = [span(isChosen ? MARK : NO_MARK), ...line];
    return isChosen ? [...marked.map(({ text }) => span(text, 'chosen')), span(' '.repeat(size.columns), 'chosen')] : marked;
  });
  return [titled, ...lines];

  function itemLine({ row, title, note }: Item): Line {
    if (row !== undefined) return rowLine(places, gap, (column, width) => column.cell(row, width));
    return title === undefined ? [span(note ?? '', 'mild')] : [span(title, 'strong')];
  }
}

/** The last line: the filter while it is typed, otherwise how the list is made and the keys. */
export function footerLine({ isTyping, filter, group, sort, at }: TopState, items: readonly Item[], room: number): Line {
  if (isTyping) return [span('filter: ', 'strong'), span(`${filter}_`), span('  Enter keeps it, Escape drops it', 'faint')];
  const more = items.length > room ? `${at + 1}/${items.length}  ` : '';
  const filtered = filter === '' ? [] : [span(`filter: ${filter}  `, 'mild')];
  return [
    span(more, 'faint'),
    ...filtered,
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
      ['n', 'places'],
      ['Enter', 'device'],
    ].flatMap(([key = '', what = '']) => [span(key, 'strong'), span(` ${what}  `, 'faint')]),
  ];
}
