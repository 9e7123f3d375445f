import { type Appearance, appearanceOf, type DeviceView, type DisplayState, parentKey, sinceOf } from './device-view.ts';

/** Devices that need somebody come first. */
export const STATE_ORDER: readonly DisplayState[] = ['unhealthy', 'missing', 'unknown', 'degraded', 'healthy'];

const collator = new Intl.Collator('en', { numeric: true });
/** Numbers of PCI addresses are hexadecimal. */
const ADDRESS = /^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]/;
export function compareNames(a: string, b: string): number {
  const [first, second] = [ADDRESS.exec(a)?.[0], ADDRESS.exec(b)?.[0]];
  return (first === undefined || second === undefined ? 0 : compareTexts(first, second)) || collator.compare(a, b);
}

/** What needs an action comes before what ends by itself. */
export const APPEARANCES: readonly Appearance[] = ['unhealthy', 'missing', 'unknown', 'degraded', 'pending', 'recovering', 'healthy'];

/** How many devices show each state, the worst first; states that none shows are left out. Each device counts once. */
export const stateCounts = (devices: readonly DeviceView[]): readonly (readonly [Appearance, number])[] =>
  APPEARANCES.map((state) => [state, devices.filter((one) => appearanceOf(one) === state).length] as const).filter(
    ([, count]) => count > 0,
  );

/** Smaller for a row that needs somebody sooner. */
export const rankOf = (device: DeviceView): number => APPEARANCES.indexOf(appearanceOf(device));

/** Accelerators, then network adapters, then the rest: as on the map. */
const mapRank = ({ kind }: DeviceView): number => (kind === 'gpu' ? 0 : /^[psv]f$/.test(kind) ? 1 : 2);

/** Order of the map: a place on it is always the same device. */
export const byPlace = (a: DeviceView, b: DeviceView): number =>
  mapRank(a) - mapRank(b) || compareNames(a.family, b.family) || compareNames(a.name, b.name) || compareNames(a.id, b.id);

const isHeld = ({ holders }: DeviceView): boolean => holders.length > 0;

/** Among devices that are not well in the same way, those that a pod holds are first, and then the latest change. */
export function byAttention(a: DeviceView, b: DeviceView): number {
  const rank = rankOf(a);
  const isWell = rank === APPEARANCES.length - 1;
  const byNeed = isWell ? 0 : Number(isHeld(b)) - Number(isHeld(a)) || compareTexts(sinceOf(b), sinceOf(a));
  return rank - rankOf(b) || byNeed || byPlace(a, b);
}

/** Times of one format and zone are in the order of their text. */
export const compareTexts = (a = '', b = ''): number => (a < b ? -1 : a > b ? 1 : 0);

/** A row with the number of its parents. */
export interface PlacedRow {
  readonly row: DeviceView;
  readonly depth: number;
}

/** Sorts rows, and puts parts under their parent. A parent takes the place of its first part: a faulty part moves it up. */
export function inTrees(rows: readonly DeviceView[], compare: (a: DeviceView, b: DeviceView) => number): readonly PlacedRow[] {
  const known = new Set(rows.map(({ key }) => key));
  const parts = new Map<string | undefined, DeviceView[]>();
  for (const row of rows) {
    const parent = parentKey(row);
    const whole = parent !== undefined && parent !== row.key && known.has(parent) ? parent : undefined;
    const list = parts.get(whole);
    if (list === undefined) parts.set(whole, [row]);
    else list.push(row);
  }
  const placed: PlacedRow[] = [];
  const seen = new Set<string>();
  const leaders = new Map<string, DeviceView>();
  const leaderOf = (row: DeviceView, depth = 0): DeviceView => {
    const cached = leaders.get(row.key);
    if (cached !== undefined) return cached;
    const below = depth > 4 ? [] : (parts.get(row.key) ?? []).map((part) => leaderOf(part, depth + 1));
    const leader = below.reduce((first, one) => (compare(one, first) < 0 ? one : first), row);
    leaders.set(row.key, leader);
    return leader;
  };
  const place = (list: readonly DeviceView[], depth: number): void => {
    for (const row of list.toSorted((a, b) => compare(leaderOf(a), leaderOf(b)) || compare(a, b))) {
      if (seen.has(row.key)) continue;
      seen.add(row.key);
      placed.push({ row, depth });
      place(parts.get(row.key) ?? [], depth + 1);
    }
  };
  place(parts.get(undefined) ?? [], 0);
  // Devices that contain each other have no top. No hardware should report that, but no row may be lost.
  place(
    rows.filter(({ key }) => !seen.has(key)),
    0,
  );
  return placed;
}
