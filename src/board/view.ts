import { conditionName } from '../model/condition-text.ts';
import { defined } from '../model/defined.ts';
import { type PciePlace, pciePathBetween } from '../model/locality.ts';
import type { Board } from './board.ts';
import {
  type Appearance,
  appearanceOf,
  conditionsOf,
  DEVICE_USES,
  type DeviceView,
  type HolderView,
  modelText,
  sinceOf,
  stateOf,
  userName,
} from './device-view.ts';
import { APPEARANCES, byAttention, compareNames, compareTexts, inTrees, type PlacedRow, rankOf } from './order.ts';
import { wayTo } from './ways.ts';

export const VIEW_SORTS = ['attention', 'name', 'family', 'state', 'use', 'busy'] as const;
export type ViewSort = (typeof VIEW_SORTS)[number];
/** `tree`: parts under their parent. `pod`: by who holds them. `placement`: by NUMA node, in the order of the PCI bridges. */
export const VIEW_GROUPS = ['tree', 'pod', 'placement'] as const;
export type ViewGroup = (typeof VIEW_GROUPS)[number];
export const VIEW_STATES = APPEARANCES;

/** What somebody wants to see of a board. An absent filter lets everything pass. */
export interface BoardView {
  /** Words that must all be somewhere in the row: name, model, condition, holder, address. */
  readonly text?: string;
  readonly family?: string;
  readonly state?: Appearance;
  readonly namespace?: string;
  /** Part of the name of a pod or a container that holds the device. */
  readonly holder?: string;
  readonly sort: ViewSort;
  readonly group: ViewGroup;
}

export const DEFAULT_VIEW: BoardView = { sort: 'attention', group: 'tree' };
const FILTERS = ['text', 'family', 'state', 'namespace', 'holder'] as const;
export const VIEW_PARAMETERS: readonly string[] = [...FILTERS, 'sort', 'group'];
const LONGEST_FILTER = 200;

/** Reads a view from the parameters of an address. `problem` says in one sentence what cannot be read. */
export function parseView(parameters: Readonly<Record<string, unknown>>): { readonly view: BoardView; readonly problem?: string } {
  const given: Record<string, string> = {};
  for (const [name, value] of Object.entries(parameters)) {
    if (typeof value !== 'string') return refused(`The parameter "${name}" may be given once only.`);
    if (VIEW_PARAMETERS.includes(name) && value.trim() !== '') given[name] = value.trim().slice(0, LONGEST_FILTER);
  }
  const { sort = DEFAULT_VIEW.sort, group = DEFAULT_VIEW.group, state, ...texts } = given;
  if (!isOneOf(VIEW_SORTS, sort)) return refused(`The parameter "sort" must be one of ${VIEW_SORTS.join(', ')}.`);
  if (!isOneOf(VIEW_GROUPS, group)) return refused(`The parameter "group" must be one of ${VIEW_GROUPS.join(', ')}.`);
  if (state !== undefined && !isOneOf(VIEW_STATES, state))
    return refused(`The parameter "state" must be one of ${VIEW_STATES.join(', ')}.`);
  const { text = '', ...named } = texts;
  return { view: { ...named, ...defined({ state }), ...filtersOf(text), sort, group } };
}

type Filters = Pick<BoardView, (typeof FILTERS)[number]>;

/**
 * Reads what somebody typed as a filter. `family:`, `state:`, `namespace:` and `holder:` look at one field; all other words must be somewhere
 * in the row. A state may be shortened, because it is typed letter by letter.
 */
export function filtersOf(typed: string): Filters {
  const filters: { -readonly [name in keyof Filters]: Filters[name] } = {};
  const words: string[] = [];
  for (const word of typed.split(/\s+/).filter((one) => one !== '')) {
    const [, field, value = ''] = /^(family|state|namespace|holder):(.*)$/i.exec(word) ?? [];
    const name = field?.toLowerCase() as Exclude<keyof Filters, 'text'> | undefined;
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

/** The filters of a view as somebody types them. */
export function filterText(view: BoardView): string {
  const named = FILTERS.flatMap((name) => (name === 'text' || view[name] === undefined ? [] : [`${name}:${view[name]}`]));
  return [...named, ...(view.text === undefined ? [] : [view.text])].join(' ');
}

const refused = (problem: string): { view: BoardView; problem: string } => ({ view: DEFAULT_VIEW, problem });

function isOneOf<T extends string>(known: readonly T[], value: string): value is T {
  return (known as readonly string[]).includes(value);
}

/** Writes a view as the query of an address, `?state=unhealthy`; empty for the default view. */
export function viewQuery(view: BoardView): string {
  const entries = VIEW_PARAMETERS.flatMap((name): [string, string][] => {
    const value = view[name as keyof BoardView];
    return value === undefined || value === '' || value === DEFAULT_VIEW[name as keyof BoardView] ? [] : [[name, value]];
  });
  return entries.length === 0 ? '' : `?${new URLSearchParams(entries)}`;
}

export interface BoardSection {
  /** Absent for a view with one section. */
  readonly title?: string;
  readonly rows: readonly ViewRow[];
}

export interface ViewRow extends PlacedRow {
  /** Way to the device above, empty where there is none; only by placement. */
  readonly distance?: string;
}

/** Chooses, sorts and groups the rows of a board. */
export function viewOf({ devices }: Pick<Board, 'devices'>, view: BoardView): readonly BoardSection[] {
  const shown = devices.filter((row) => matches(row, view));
  const compare = SORTS[view.sort];
  if (view.group === 'pod') return byPod(shown, compare);
  if (view.group === 'placement') return byPlacement(shown);
  return [{ rows: inTrees(shown, compare) }];
}

/** Those who hold a device, and those who use it. */
const podsOn = ({ holders, users = [] }: DeviceView): readonly Partial<HolderView>[] => [...holders, ...users];

export function matches(row: DeviceView, { text, family, state, namespace, holder }: BoardView): boolean {
  return (
    (family === undefined || row.family === family) &&
    (state === undefined || appearanceOf(row) === state) &&
    (namespace === undefined || podsOn(row).some((one) => one.namespace === namespace)) &&
    (holder === undefined || podsOn(row).some((one) => has(`${one.namespace}/${one.pod}/${one.container ?? ''}`, holder))) &&
    (text === undefined || text.split(/\s+/).every((word) => has(searchText(row), word)))
  );
}

const has = (text: string, part: string): boolean => text.toLowerCase().includes(part.toLowerCase());

function searchText(device: DeviceView): string {
  const { key, name, kind, also, parent, pciAddress, use, holders, users = [] } = device;
  const conditions = conditionsOf(device).map((one) => `${conditionName(one)} ${one.message}`);
  const who = [
    ...holders.flatMap(({ namespace, pod, container, resource }) => [`${namespace}/${pod}/${container}`, resource]),
    ...users.map(userName),
  ];
  return [
    key,
    name,
    kind,
    also,
    parent,
    modelText(device),
    pciAddress,
    stateOf(device),
    appearanceOf(device),
    use,
    ...conditions,
    ...who,
  ].join(' ');
}

const SORTS: Readonly<Record<ViewSort, (a: DeviceView, b: DeviceView) => number>> = {
  attention: byAttention,
  name: (a, b) => compareNames(a.name, b.name) || byAttention(a, b),
  family: (a, b) => compareNames(a.family, b.family) || compareNames(a.name, b.name) || byAttention(a, b),
  // The latest change first.
  state: (a, b) => compareTexts(sinceOf(b), sinceOf(a)) || byAttention(a, b),
  use: (a, b) => DEVICE_USES.indexOf(a.use) - DEVICE_USES.indexOf(b.use) || compareNames(holderName(a), holderName(b)) || byAttention(a, b),
  busy: (a, b) => (b.shown[0]?.ratio ?? -1) - (a.shown[0]?.ratio ?? -1) || byAttention(a, b),
};

const holderName = ({ holders: [first] }: DeviceView): string => (first === undefined ? '' : `${first.namespace}/${first.pod}`);

/** A device that several pods hold appears under each of them. */
function byPod(rows: readonly DeviceView[], compare: (a: DeviceView, b: DeviceView) => number): readonly BoardSection[] {
  const pods = new Map<string, DeviceView[]>();
  for (const row of rows) {
    const own = row.holders.filter(({ part }) => part === undefined);
    for (const pod of new Set(own.map((one) => `${one.namespace}/${one.pod}`))) pods.set(pod, [...(pods.get(pod) ?? []), row]);
  }
  const sections = [...pods].map(([title, list]): BoardSection => ({ title, rows: inTrees(list, compare) }));
  const rank = ({ rows: list }: BoardSection): number => Math.min(...list.map(({ row }) => rankOf(row)));
  const others = (['held by parts', 'used', 'free', 'no holder', 'unknown'] as const).flatMap((use): BoardSection[] => {
    const list = rows.filter((row) => row.use === use);
    return list.length === 0 ? [] : [{ title: USE_TITLES[use], rows: inTrees(list, compare) }];
  });
  return [...sections.sort((a, b) => rank(a) - rank(b) || compareNames(a.title ?? '', b.title ?? '')), ...others];
}

const USE_TITLES = {
  'held by parts': 'Held by parts: containers hold parts of these devices',
  used: 'Used by pods that do not hold these devices',
  free: 'Free',
  'no holder': 'Without a holder, and not fit for one',
  unknown: 'Unknown: the kubelet does not report who holds these devices',
} as const;

function byPlacement(rows: readonly DeviceView[]): readonly BoardSection[] {
  const nodes = [...new Set(rows.map(({ numaNode }) => numaNode))].sort((a, b) => (a ?? 1e9) - (b ?? 1e9));
  return nodes.map((numaNode) => {
    const here = rows.filter((row) => row.numaNode === numaNode);
    const placed = inTrees(here, (a, b) => compareNames(a.pciPath ?? '~', b.pciPath ?? '~') || compareNames(a.name, b.name));
    return {
      title: numaNode === undefined ? 'NUMA node unknown' : `NUMA node ${numaNode}`,
      rows: placed.map((one, at) => {
        const above = placed.slice(0, at).findLast(({ depth }) => depth === 0)?.row;
        const distance = above === undefined || one.depth > 0 ? undefined : distanceText(above, one.row);
        return { ...one, distance: distance ?? '' };
      }),
    };
  });
}

type PlacedName = Pick<DeviceView, 'name' | 'pciPath' | 'numaNode'>;

/** Describes the way between two devices; undefined when the place of one device is unknown. */
function distanceText(above: PlacedName, row: PlacedName): string | undefined {
  if (above.pciPath !== undefined && above.pciPath === row.pciPath) return `same card as ${above.name}`;
  const path = pciePathBetween(pciePlace(above), pciePlace(row));
  return path && wayTo(above.name, path);
}

const pciePlace = ({ pciPath, numaNode }: PlacedName): PciePlace => ({
  pciPath: pciPath?.split('/') ?? [],
  ...defined({ numaNode }),
});
