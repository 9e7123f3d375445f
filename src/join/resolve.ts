import type { Allocation, Resolve } from '../model/allocation.ts';
import { type Device, deviceKey } from '../model/device.ts';
import type { PoolRule } from '../model/rule.ts';

/** What is needed to find devices by the ids that plugins use. */
export interface ResolveRules {
  readonly pools: readonly PoolRule[];
  /** Per family, where ids are more than an id or alias. */
  readonly families: ReadonlyMap<string, Resolve>;
  /** Resources that this agent itself hands out: by resource, then device id, the keys of the devices behind it. */
  readonly served?: ServedIds;
}

export type ServedIds = ReadonlyMap<string, ReadonlyMap<string, readonly string[]>>;

/** Devices that an allocation names: keys, and whether more than one family claims the id. */
export interface Resolution {
  readonly devices: readonly string[];
  readonly ambiguous: boolean;
}

/** More ids than a node's pods hold at a time. */
const MOST_KNOWN = 65_536;

const NONE: Resolution = { devices: [], ambiguous: false };

/**
 * Finds the devices for (resource, device id). A configured pool wins; otherwise the families are asked. A bare number is
 * nobody's id: guessing an index would blame the wrong device. Answers are kept for as long as the set of devices stands.
 */
export class Resolver {
  readonly #rules: ResolveRules;
  readonly #devices: readonly Device[];
  readonly #byName = new Map<string, Device[]>();
  readonly #byFamily = new Map<string, Device[]>();
  readonly #known = new Map<string, Resolution>();

  constructor(devices: readonly Device[], rules: ResolveRules) {
    this.#devices = devices;
    this.#rules = rules;
    for (const device of devices) {
      push(this.#byFamily, device.family, device);
      for (const name of new Set([device.id, ...device.aliases].map((name) => name.toLowerCase()))) push(this.#byName, name, device);
    }
  }

  resolve(allocation: Allocation): Resolution {
    const key = `${allocation.resource}\u0000${allocation.deviceId}`;
    let resolution = this.#known.get(key);
    if (resolution === undefined) {
      resolution = this.#find(allocation);
      // Where ids are made anew for each pod, most of them are of pods that are gone.
      if (this.#known.size >= MOST_KNOWN) this.#known.clear();
      this.#known.set(key, resolution);
    }
    return resolution;
  }

  #find(allocation: Allocation): Resolution {
    const pool = this.#rules.pools.find((rule) => rule.resource === allocation.resource);
    if (pool !== undefined) return { devices: this.#pool(pool), ambiguous: false };
    const served = this.#rules.served?.get(allocation.resource)?.get(allocation.deviceId);
    if (served !== undefined) return { devices: served, ambiguous: false };
    if (/^\d+$/.test(allocation.deviceId)) return NONE;
    const claims = new Map<string, readonly string[]>();
    for (const [family, devices] of this.#byFamily) {
      const ids = this.#claimedBy(family, devices, allocation);
      if (ids.length > 0) claims.set(family, ids);
    }
    const devices = [...claims.values()].flat();
    return { devices, ambiguous: claims.size > 1 };
  }

  #claimedBy(family: string, devices: readonly Device[], allocation: Allocation): readonly string[] {
    const named = (this.#byName.get(allocation.deviceId.toLowerCase()) ?? []).filter((device) => device.family === family);
    if (named.length > 0) return named.map(deviceKey);
    const ids = this.#rules.families.get(family)?.(allocation, devices) ?? [];
    return ids.map((id) => deviceKey({ family, id }));
  }

  #pool(pool: PoolRule): readonly string[] {
    const patterns = pool.devices.map(wildcard);
    const matches = (device: Device): boolean =>
      [device.id, ...device.aliases].some((name) => patterns.some((pattern) => pattern.test(name)));
    return this.#devices.filter(matches).map(deviceKey);
  }
}

function wildcard(pattern: string): RegExp {
  const escaped = pattern.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${escaped.join('.*')}$`, 'i');
}

function push<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const list = map.get(key);
  if (list === undefined) map.set(key, [value]);
  else list.push(value);
}
