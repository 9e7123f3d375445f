import { type Board, problemPlace } from '../../board/board.ts';
import { type BoardView, VIEW_STATES, type ViewGroup, type ViewRow, type ViewSort, viewOf } from '../../board/view.ts';

/** Values of `--by`, and what they are on the page. */
export const GROUPS: Readonly<Record<string, ViewGroup>> = { device: 'tree', pod: 'pod', node: 'topology' };

const NO_DEVICE = 'There is no device. "device-agent doctor" says what is missing, "device-agent demo" shows a simulated node.';

/** One line of the list: a device, a title above devices, or a sentence below them. */
export interface Item {
  /** Stays the same over refreshes. */
  readonly id: string;
  readonly row?: ViewRow;
  readonly title?: string;
  readonly note?: string;
}

/** What the user wants to see of a board. */
export interface Wanted {
  /** As it was typed. */
  readonly filter: string;
  readonly sort: ViewSort;
  readonly group: ViewGroup;
}

export function itemsOf(board: Board, { filter, sort, group }: Wanted): readonly Item[] {
  const view: BoardView = { ...filtersOf(filter), sort, group };
  const rows = viewOf(board, view).flatMap(({ title, rows: list }): Item[] => [
    ...(title === undefined ? [] : [{ id: `title ${title}`, title }]),
    ...list.map((row): Item => ({ id: `${title ?? ''}\u0000${row.row.key}`, row })),
  ]);
  const first = rows.length > 0 ? rows : [{ id: 'none', note: board.devices.length === 0 ? NO_DEVICE : 'No row matches the filter.' }];
  return [...first, ...problemItems(board), ...unresolvedItems(board)];
}

function problemItems({ problems }: Board): Item[] {
  if (problems.length === 0) return [];
  const notes = problems.map((one, at) => ({
    id: `problem ${at}`,
    note: [`${problemPlace(one)}: ${one.message}`, one.remedy].filter((text) => text !== undefined).join(' '),
  }));
  return [{ id: 'title problems', title: 'Problems' }, ...notes];
}

function unresolvedItems({ unresolved }: Board): Item[] {
  if (unresolved.length === 0) return [];
  const notes = unresolved.map(({ namespace, pod, container, resource, deviceId, why }, at) => ({
    id: `unresolved ${at}`,
    note: `${namespace}/${pod}/${container} holds ${resource} ${deviceId}: ${why}`,
  }));
  return [{ id: 'title unresolved', title: 'Held, but no device is known' }, ...notes];
}

type Filters = Pick<BoardView, 'text' | 'family' | 'state' | 'namespace' | 'holder'>;

/**
 * Reads what a user typed after `/`. `family:`, `state:`, `namespace:` and `holder:` look at one field; all other words must be somewhere
 * in the row. A state may be shortened, because the user types it letter by letter.
 */
export function filtersOf(typed: string): Filters {
  const filters: { -readonly [name in keyof Filters]: Filters[name] } = {};
  const words: string[] = [];
  for (const word of typed.split(/\s+/).filter((one) => one !== '')) {
    const [, field, value = ''] = /^(family|state|namespace|holder):(.*)$/i.exec(word) ?? [];
    const name = field?.toLowerCase() as 'family' | 'state' | 'namespace' | 'holder' | undefined;
    if (name === undefined) words.push(word);
    else if (value === '') continue;
    else if (name !== 'state') filters[name] = value;
    else {
      const state = VIEW_STATES.find((one) => one.startsWith(value.toLowerCase()));
      // A state that does not exist is no state of any row.
      if (state === undefined) words.push(word);
      else filters.state = state;
    }
  }
  if (words.length > 0) filters.text = words.join(' ');
  return filters;
}
