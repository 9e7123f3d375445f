import { type Board, problemPlace } from '../../board/board.ts';
import { type BoardView, filtersOf, type ViewGroup, type ViewRow, type ViewSort, viewOf } from '../../board/view.ts';

/** Values of `--by`, and what they are on the page. */
export const GROUPS: Readonly<Record<string, ViewGroup>> = { device: 'tree', pod: 'pod', placement: 'placement' };

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
    note: [`${problemPlace(one)}: ${one.message}`, one.remedy].filter((text) => text !== undefined).join(' · '),
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
