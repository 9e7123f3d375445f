import type { Device } from '../../model/device.ts';
import { nearness, type Place, placeOf } from '../../model/locality.ts';
import type { PluginResource, Preference } from '../../model/plugin-resource.ts';
import type { Offer } from '../offers/inventory.ts';
import { Refusal } from './answer.ts';
import { nearestSet } from './nearest-set.ts';

/** Limits the distance matrix: 1,000 places would need a million distances. */
const MOST_PLACES = 512;

export interface PreferenceRequest {
  readonly available: readonly string[];
  /** Fixed ids, a subset of `available`. */
  readonly mustInclude: readonly string[];
  /** Total number of ids, the fixed ones included. */
  readonly size: number;
  /** Devices of other resources that the container has got. */
  readonly near?: readonly Place[];
}

export function preferenceOf({ preferred, replicas = 1, pool }: PluginResource): Preference {
  if (preferred !== undefined) return preferred;
  if (pool !== undefined) return 'none';
  return replicas > 1 ? 'spread' : 'aligned';
}

/**
 * Proposes a subset of the available ids that contains all fixed ids. It has the requested size, or all ids when fewer are available.
 * The answer does not depend on the order of the ids. `all` is the complete inventory in its order: an id that is not available counts as
 * in use. Throws {@link Refusal} when more ids are fixed than requested.
 */
export function preferredIds(request: PreferenceRequest, all: readonly Placement[], preference: Preference): string[] {
  const must = new Set(request.mustInclude);
  if (must.size > request.size) {
    throw new Refusal('invalid-request', `${must.size} devices must be included in an allocation of ${request.size}`);
  }
  const available = new Set([...request.available, ...must]);
  const places = placesOf(available, all);
  const size = Math.min(request.size, places.length);
  if (size === places.length) return places.map(({ id }) => id);
  if (preference === 'aligned') return alignedIds(places, must, size, request.near ?? []);
  if (preference === 'none') return [...must, ...[...available].filter((id) => !must.has(id))].slice(0, size);
  return pickedByUse(places, must, size, all, preference);
}

/** Returns the places of the available ids in inventory order. Ids that are not in the inventory come last, without a location. */
function placesOf(available: ReadonlySet<string>, all: readonly Placement[]): Placement[] {
  const known = all.filter(({ id }) => available.has(id));
  const names = new Set(known.map(({ id }) => id));
  const unknown = [...available].filter((id) => !names.has(id)).sort();
  return [...known, ...unknown.map((id) => ({ id, device: id, physical: id, pciPath: [], links: new Map() }))];
}

/** `near`: fixed places that are not part of the answer. */
function alignedIds(available: readonly Placement[], must: ReadonlySet<string>, size: number, near: readonly Place[]): string[] {
  const places = thinned(available, must, Math.max(size, MOST_PLACES));
  if (places.length === size) return places.map(({ id }) => id);
  const all = [...places, ...near.filter(({ device }) => !places.some((place) => place.device === device))];
  const fixed = all.flatMap((place, at) => (at >= places.length || must.has((place as Placement).id) ? [at] : []));
  const chosen = nearestSet(all.length, fixed, size + all.length - places.length, nearnessOf(all));
  return chosen.flatMap((at) => places[at]?.id ?? []);
}

/** Returns the nearness of two places by their indices, cached per pair of devices, because a device can have hundreds of replicas. */
function nearnessOf(places: readonly Place[]): (a: number, b: number) => number {
  const numbers = new Map<string, number>();
  const deviceOf = places.map(({ device }) => {
    const number = numbers.get(device) ?? numbers.size;
    numbers.set(device, number);
    return number;
  });
  const known = new Float64Array(numbers.size ** 2).fill(Number.NaN);
  return (a, b) => {
    const [one, other] = [deviceOf[a] as number, deviceOf[b] as number];
    const at = Math.min(one, other) * numbers.size + Math.max(one, other);
    if (Number.isNaN(known[at])) known[at] = nearness(places[a] as Place, places[b] as Place);
    return known[at] as number;
  };
}

/** Reduces too many places to `limit`: keeps the fixed ones, then fills up evenly over the devices' replicas. Keeps the order. */
function thinned(places: readonly Placement[], must: ReadonlySet<string>, limit: number): readonly Placement[] {
  if (places.length <= limit) return places;
  const ranks = new Map<string, number>();
  const rank = new Map<string, number>();
  for (const { id, device } of places) {
    const next = must.has(id) ? -1 : (ranks.get(device) ?? 0);
    rank.set(id, next);
    if (next >= 0) ranks.set(device, next + 1);
  }
  const rankOf = ({ id }: Placement): number => rank.get(id) ?? 0;
  const kept = new Set([...places].sort((a, b) => rankOf(a) - rankOf(b)).slice(0, limit));
  return places.filter((place) => kept.has(place));
}

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

/** Location of one offered id in the node's topology. */
export interface Placement extends Place {
  readonly id: string;
}

export function placementsOf(offers: readonly Offer[]): Placement[] {
  const places = new Map<Device, Place>();
  return offers.map(({ id, baseId, devices }) => {
    const device = devices.length === 1 ? devices[0]?.device : undefined;
    if (device === undefined) return { id, device: baseId, physical: baseId, pciPath: [], links: new Map() };
    const place = places.get(device) ?? placeOf(device);
    places.set(device, place);
    return { id, ...place };
  });
}
