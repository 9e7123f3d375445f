import type { Served, ServedIds } from '../join/resolve.ts';
import type { DeviceRecord } from '../model/device-record.ts';
import type { Verdict } from '../model/health.ts';
import type { PluginResource } from '../model/plugin-resource.ts';
import { type Offer, takeInventory } from '../plugin/offers/inventory.ts';

/** The part of a device that determines its ids in the plugin's resources. */
export type ServedDevice = Pick<DeviceRecord, 'key' | 'device' | 'missingSinceMs'>;

/** Maps each id that the plugin serves to device keys, including the ids of replicas and pool places. */
export function servedIds(resources: readonly PluginResource[], devices: readonly ServedDevice[]): ServedIds {
  if (resources.length === 0) return new Map();
  const states = devices.map((known) => ({ ...UNJUDGED, ...known }));
  return new Map(
    resources
      .filter(({ select }) => select !== undefined)
      .map((resource): readonly [string, Served] => {
        const offers = takeInventory(resource, states, () => 'Healthy');
        if (resource.pool !== undefined) return [resource.resource, { pool: keysOf(offers[0]) }];
        return [resource.resource, { byId: new Map(offers.map((offer) => [offer.id, keysOf(offer)])) }];
      }),
  );
}

const keysOf = (offer: Offer | undefined): readonly string[] => offer?.devices.map(({ key }) => key) ?? [];

const NO_VERDICT: Verdict = { state: 'unknown', sinceMs: 0, conditions: [] };
/** Ids do not depend on readings or health, so these fields are empty. */
const UNJUDGED = { readings: [], processes: [], verdict: NO_VERDICT, holders: [], readAtMs: 0, stale: false };
