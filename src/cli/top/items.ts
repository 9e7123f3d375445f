import { type Board, problemPlace, unreadText } from '../../board/board.ts';
import { nameWithInstance, shortMessage } from '../../board/condition-text.ts';
import { appearanceOf, conditionsOf, type DeviceView, hasOnlyFaultsOfWhole, leadOf, remedyOf } from '../../board/device-view.ts';
import { type BoardView, filtersOf, type ViewGroup, type ViewRow, type ViewSort, viewOf } from '../../board/view.ts';
import { REMEDY_TEXTS } from '../../board/words.ts';
import { phasesOf } from '../../model/condition-text.ts';
import { fitText, widthOf, wrapText } from '../terminal/frame.ts';

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
  /** A line of what is wrong with the device above it. The keys pass it by. */
  readonly why?: string;
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
  const none = unreadText(board) || NO_DEVICE;
  const first = rows.length > 0 ? rows : [{ id: 'none', note: board.devices.length === 0 ? none : 'No row matches the filter.' }];
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

/** Puts below each faulty device what it has and what to do, in lines of so many cells. */
export function withReasons(items: readonly Item[], columns: number): readonly Item[] {
  return items.flatMap((item) => {
    const lines = item.row === undefined ? [] : reasonLines(item.row.row, columns - WHY_INDENT.length);
    return [item, ...lines.map((line, at): Item => ({ id: `${item.id}\u0000${at}`, why: WHY_INDENT + line }))];
  });
}

const WHY_INDENT = '    ';
const MOST_WHY_LINES = 2;

/** A long message is cut, what to do never: the screen of the device has all of it. */
function reasonLines(device: DeviceView, columns: number): readonly string[] {
  const [first, ...others] = conditionsOf(device);
  const lead = leadOf(device);
  if (first === undefined || lead === undefined || appearanceOf(device) === 'healthy' || hasOnlyFaultsOfWhole(device)) return [];
  const advice = REMEDY_TEXTS[remedyOf(device) ?? 'none'];
  const name = [nameWithInstance(lead), ...phasesOf(lead)].join(' ');
  const also = others.length === 0 ? '' : ` +${others.length}`;
  const todo = advice === undefined ? [] : wrapText(advice, columns);
  const [end = ''] = todo;
  const text = `${name}${also}: ${shortMessage(lead)}`;
  // In one line if it has room for both.
  if (advice !== undefined && todo.length === 1 && widthOf(text) + widthOf(end) + 3 <= columns)
    return [`${text.replace(/\.$/, '')} · ${end}`];
  const lines = wrapText(text, columns);
  const told = lines.slice(0, MOST_WHY_LINES);
  const cut = lines.length > told.length ? told.with(-1, fitText(`${told.at(-1)} …`, columns).trimEnd()) : told;
  return [...cut, ...todo];
}
