import type { DeviceView } from '../../board/device-view.ts';
import { DEFAULT_VIEW, VIEW_SORTS, type ViewGroup, type ViewSort } from '../../board/view.ts';
import type { Key } from '../terminal/keys.ts';
import type { Item } from './items.ts';

/** What the user looks at. Plain data. */
export interface TopState {
  readonly screen: 'board' | 'device' | 'help';
  readonly group: ViewGroup;
  readonly sort: ViewSort;
  /** Text of the filter, as it was typed. */
  readonly filter: string;
  /** True while the user types the filter. */
  readonly isTyping: boolean;
  /** Id of the chosen item, and its place: the place stays when the item goes. */
  readonly chosen: string | undefined;
  readonly at: number;
  /** Items above the first one on the screen. */
  readonly offset: number;
  /** Family and id of the device on its own screen. */
  readonly device: Pick<DeviceView, 'key' | 'family' | 'id'> | undefined;
  /** Lines above the first one of the screen of a device, or of the help. */
  readonly scroll: number;
}

export const FIRST_STATE: TopState = {
  screen: 'board',
  group: DEFAULT_VIEW.group,
  sort: DEFAULT_VIEW.sort,
  filter: '',
  isTyping: false,
  chosen: undefined,
  at: 0,
  offset: 0,
  device: undefined,
  scroll: 0,
};

/** What a key needs to know of the screen. */
export interface ScreenLayout {
  readonly items: readonly Item[];
  /** Lines for items, or for the text of a device. */
  readonly room: number;
  /** Lines of the text of a device, or of the help. */
  readonly length: number;
}

const LONGEST_FILTER = 200;

/** State after a key; undefined to end. */
export function pressed(state: TopState, key: Key, shown: ScreenLayout): TopState | undefined {
  if (key === 'ctrl-c') return undefined;
  if (state.isTyping) return typed(state, key);
  if (key === 'q') return undefined;
  if (key === '?') return { ...state, screen: state.screen === 'help' ? 'board' : 'help', scroll: 0 };
  return state.screen === 'board' ? onBoard(state, key, shown) : onText(state, key, shown);
}

function typed(state: TopState, key: Key): TopState {
  if (key === 'enter') return { ...state, isTyping: false };
  if (key === 'escape') return { ...state, isTyping: false, filter: '' };
  if (key === 'ctrl-u') return { ...state, filter: '' };
  if (key === 'backspace') return { ...state, filter: [...state.filter].slice(0, -1).join('') };
  return [...key].length === 1 ? { ...state, filter: (state.filter + key).slice(0, LONGEST_FILTER) } : state;
}

function onBoard(state: TopState, key: Key, { items, room }: ScreenLayout): TopState {
  const to = (at: number): TopState => {
    const place = placeNear(items, Math.max(0, Math.min(at, items.length - 1)), at === state.at + 1);
    return { ...state, at: place, chosen: items[place]?.id };
  };
  switch (key) {
    case 'up':
    case 'k':
      return to(state.at - 1);
    case 'down':
    case 'j':
      return to(state.at + 1);
    case 'page-up':
      return to(state.at - room);
    case 'page-down':
    case ' ':
      return to(state.at + room);
    case 'home':
    case 'g':
      return to(0);
    case 'end':
    case 'G':
      return to(items.length - 1);
    case 's':
      return { ...state, sort: VIEW_SORTS[(VIEW_SORTS.indexOf(state.sort) + 1) % VIEW_SORTS.length] ?? state.sort };
    case 't':
      return { ...state, group: 'tree' };
    case 'p':
      return { ...state, group: 'pod' };
    case 'n':
      return { ...state, group: 'placement' };
    case '/':
      return { ...state, isTyping: true };
    case 'escape':
      return { ...state, filter: '' };
    case 'enter':
    case 'right':
      return opened(state, items[state.at]);
    default:
      return state;
  }
}

/** The place itself. From a line of reasons: the device above it, or on the way down the next item. */
function placeNear(items: readonly Item[], at: number, isDown: boolean): number {
  const isOwn = ({ why }: Item): boolean => why === undefined;
  const below = isDown ? items.findIndex((item, place) => place >= at && isOwn(item)) : -1;
  return below >= 0 ? below : Math.max(0, items.slice(0, at + 1).findLastIndex(isOwn));
}

function opened(state: TopState, item: Item | undefined): TopState {
  if (item?.row === undefined) return state;
  const { key, family, id } = item.row.row;
  return { ...state, screen: 'device', device: { key, family, id }, scroll: 0 };
}

/** Keys on a screen of text. */
function onText(state: TopState, key: Key, { room, length }: ScreenLayout): TopState {
  const to = (scroll: number): TopState => ({ ...state, scroll: Math.max(0, Math.min(scroll, length - room)) });
  switch (key) {
    case 'up':
    case 'k':
      return to(state.scroll - 1);
    case 'down':
    case 'j':
      return to(state.scroll + 1);
    case 'page-up':
      return to(state.scroll - room);
    case 'page-down':
    case ' ':
      return to(state.scroll + room);
    case 'home':
    case 'g':
      return to(0);
    case 'end':
    case 'G':
      return to(length - room);
    case 'escape':
    case 'left':
    case 'backspace':
    case 'enter':
      return { ...state, screen: 'board', scroll: 0 };
    default:
      return state;
  }
}

/** Finds the chosen item among the present ones, and moves the window so that it is in it. */
export function settled(state: TopState, items: readonly Item[], room: number): TopState {
  const found = items.findIndex(({ id }) => id === state.chosen);
  const firstRow = Math.max(
    0,
    items.findIndex(({ row }) => row !== undefined),
  );
  const left = placeNear(items, Math.max(0, Math.min(state.at, items.length - 1)), false);
  const at = found >= 0 ? found : state.chosen === undefined ? firstRow : left;
  const most = Math.max(0, items.length - room);
  // The title above the first row comes with it.
  const above = at <= firstRow ? 0 : at;
  const offset = Math.min(most, state.offset > above ? above : Math.max(state.offset, at - room + 1));
  return { ...state, at, chosen: state.chosen === undefined ? undefined : items[at]?.id, offset: Math.max(0, offset) };
}
