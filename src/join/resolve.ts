import type { Allocation, Resolve } from '../model/allocation.ts';
import { type Device, deviceKey } from '../model/device.ts';
import type { PoolRule } from '../model/rule.ts';

/** Rules that map the device ids of plugins to devices. */
export interface ResolveRules {
  readonly pools: readonly PoolRule[];
  /** Keyed by family; only for families whose plugin ids differ from a device's id and aliases. */
  readonly families: ReadonlyMap<string, Resolve>;
  /** Resources that this agent serves. */
  readonly served?: ServedIds;
}

/** Device keys of one resource: by device id, or the same keys for all places of a pool. */
export type Served = { readonly byId: ReadonlyMap<string, readonly string[]> } | { readonly pool: readonly string[] };
/** Keyed by resource. */
export type ServedIds = ReadonlyMap<string, Served>;

/** Device keys of an allocation, and whether more than one family claims its id. */
export interface Resolution {
  readonly devices: readonly string[];
  readonly ambiguous: boolean;
}

const NONE: Resolution = { devices: [], ambiguous: false };

/**
 * Finds the devices for (resource, device id). A configured pool wins; otherwise the families decide. A bare number matches no device,
 * because guessing an index could select the wrong device.
 */
export class Resolver {
  readonly #rules: ResolveRules;
  readonly #devices: readonly Device[];
  readonly #byName = new Map<string, Device[]>();
  readonly #byFamily = new Map<string, Device[]>();

  constructor(devices: readonly Device[], rules: ResolveRules) {
    this.#devices = devices;
    this.#rules = rules;
    for (const device of devices) {
      push(this.#byFamily, device.family, device);
      for (const name of new Set([device.id, ...device.aliases].map((name) => name.toLowerCase()))) push(this.#byName, name, device);
    }
  }

  resolve(allocation: Allocation): Resolution {
    const pool = this.#rules.pools.find((rule) => rule.resource === allocation.resource);
    if (pool !== undefined) return { devices: this.#pool(pool), ambiguous: false };
    const served = this.#served(allocation);
    if (served !== undefined) return { devices: served, ambiguous: false };
    if (/^\d+$/.test(allocation.deviceId)) return NONE;
    const claims = new Map<string, readonly string[]>();
    for (const [family, devices] of this.#byFamily) {
      const ids = this.#claimedBy(family, devices, allocation);
      if (ids.length > 0) claims.set(family, ids);
    }
    // The id may be a replica of a resource that this agent no longer serves, or of another plugin. Pods keep their ids.
    const deviceId = withoutReplica(allocation.deviceId);
    if (claims.size === 0 && deviceId !== allocation.deviceId) return this.resolve({ ...allocation, deviceId });
    const devices = [...claims.values()].flat();
    return { devices, ambiguous: claims.size > 1 };
  }

  /** Also resolves places and replicas of an earlier configuration, because pods may still hold them. */
  #served({ resource, deviceId }: Allocation): readonly string[] | undefined {
    const served = this.#rules.served?.get(resource);
    if (served === undefined) return undefined;
    if ('pool' in served) return /^\d+$/.test(deviceId) ? served.pool : undefined;
    const id = withoutReplica(deviceId);
    return served.byId.get(deviceId) ?? served.byId.get(id) ?? served.byId.get(`${id}::0`);
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

const withoutReplica = (deviceId: string): string => deviceId.replace(/::\d+$/, '');

function wildcard(pattern: string): RegExp {
  const escaped = pattern.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${escaped.join('.*')}$`, 'i');
}

function push<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const list = map.get(key);
  if (list === undefined) map.set(key, [value]);
  else list.push(value);
}
