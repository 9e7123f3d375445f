import type { Placement } from './placement.ts';

/** The free places of one physical device. */
interface Stock {
  /** Number of its offers that are not free (in use, unhealthy, or fixed in this request) plus the offers picked so far. */
  use: number;
  /** In picking order. */
  readonly places: readonly Placement[];
}

/**
 * Picks the fixed offers first, then one offer at a time from the physical device that is used least (`spread`) or most (`packed`) at
 * that moment. `all` is the complete inventory: an offer of `all` that is not in `places` counts as in use.
 */
export function pickedByUse(
  places: readonly Placement[],
  must: ReadonlySet<string>,
  size: number,
  all: readonly Placement[],
  preference: 'spread' | 'packed',
): string[] {
  const stocks = stocksOf(places, must, all);
  const fixed = places.filter(({ id }) => must.has(id));
  const picked = preference === 'packed' ? packed(stocks) : spread(stocks, size - fixed.length);
  return [...fixed, ...picked].slice(0, size).map(({ id }) => id);
}

/** A pick makes the most used device even more used, so one sort is enough. */
function packed(stocks: readonly Stock[]): Placement[] {
  return [...stocks].sort((a, b) => b.use - a.use).flatMap((stock) => stock.places);
}

/** Works in rounds: each round picks one offer from every device that is used least. */
function spread(stocks: readonly Stock[], count: number): Placement[] {
  const picked: Placement[] = [];
  let rest = stocks.map((stock) => ({ ...stock, next: 0 }));
  while (picked.length < count && rest.length > 0) {
    const least = rest.reduce((use, stock) => Math.min(use, stock.use), Number.POSITIVE_INFINITY);
    for (const stock of rest) {
      if (stock.use !== least) continue;
      picked.push(stock.places[stock.next++] as Placement);
      stock.use += 1;
    }
    rest = rest.filter(({ places, next }) => next < places.length);
  }
  return picked;
}

function stocksOf(places: readonly Placement[], must: ReadonlySet<string>, all: readonly Placement[]): Stock[] {
  const free = new Map<string, Placement[]>();
  for (const place of places) {
    if (must.has(place.id)) continue;
    const known = free.get(place.physical);
    if (known === undefined) free.set(place.physical, [place]);
    else known.push(place);
  }
  const offered = new Map<string, number>();
  for (const { physical } of all) offered.set(physical, (offered.get(physical) ?? 0) + 1);
  const fixed = new Set(places.filter(({ id }) => must.has(id)).map(({ device }) => device));
  return [...free].map(([physical, own]) => ({
    use: Math.max(0, (offered.get(physical) ?? own.length) - own.length),
    places: unusedFirst(own, fixed),
  }));
}

/** Within one physical device, unused parts come before a second replica of a used part. */
function unusedFirst(places: readonly Placement[], fixed: ReadonlySet<string>): readonly Placement[] {
  const used = new Set(fixed);
  const [first, later]: [Placement[], Placement[]] = [[], []];
  for (const place of places) {
    (used.has(place.device) ? later : first).push(place);
    used.add(place.device);
  }
  return [...first, ...later];
}
