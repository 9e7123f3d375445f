import { type ResolveRules, Resolver, type ServedIds } from '../join/resolve.ts';
import type { Device } from '../model/device.ts';
import { arePlainEqual } from './plain-equal.ts';
import type { Remembered } from './seating.ts';
import type { ServedDevice } from './served.ts';

export interface ResolverSettings {
  readonly rules: ResolveRules;
  /** What stands behind the ids of the resources that this agent hands out. */
  readonly served?: (known: readonly ServedDevice[]) => ServedIds;
}

/** A device as a resolver was made for it. An id that can move, such as an index, may stand for another one while it is missing. */
interface Resolved {
  device: Device;
  readonly isMissing: boolean;
}

/** Keeps the resolver for as long as the devices are what they were: any of their facts may decide which resource they belong to. */
export class ResolverKeeper {
  readonly #settings: ResolverSettings;
  #stock: readonly Resolved[] = [];
  #resolver: Resolver | undefined;

  constructor(settings: ResolverSettings) {
    this.#settings = settings;
  }

  /** The same object for devices of the same content. */
  of(known: ReadonlyMap<string, Remembered>): Resolver {
    if (this.#resolver !== undefined && isStock(this.#stock, known)) return this.#resolver;
    const all = [...known.values()];
    const devices = all.map(({ report }) => report.device);
    this.#stock = all.map(({ report, missingSinceMs }) => ({ device: report.device, isMissing: missingSinceMs !== undefined }));
    this.#resolver = new Resolver(devices, this.#rules(all));
    return this.#resolver;
  }

  #rules(known: readonly Remembered[]): ResolveRules {
    const { rules, served } = this.#settings;
    if (served === undefined) return rules;
    return { ...rules, served: served(known.map(({ report: { device }, ...rest }) => ({ device, ...rest }))) };
  }
}

function isStock(stock: readonly Resolved[], known: ReadonlyMap<string, Remembered>): boolean {
  if (stock.length !== known.size) return false;
  let place = 0;
  for (const { report, missingSinceMs } of known.values()) {
    const resolved = stock[place] as Resolved;
    if (resolved.isMissing !== (missingSinceMs !== undefined) || !arePlainEqual(resolved.device, report.device)) return false;
    // The same object is told at a glance the next time.
    resolved.device = report.device;
    place += 1;
  }
  return true;
}
