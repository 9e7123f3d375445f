import type { ServedIds } from '../join/resolve.ts';
import { type Device, deviceKey } from '../model/device.ts';
import type { Verdict } from '../model/health.ts';
import type { PluginResource } from '../model/plugin-resource.ts';
import { Readings } from '../model/readings.ts';
import { takeInventory } from '../plugin/inventory.ts';

/** A device as far as its names among the plugin's resources depend on it. */
export interface ServedDevice {
  readonly device: Device;
  readonly missingSinceMs?: number;
}

/** What stands behind each id that the plugin hands out, replicas and places of a pool included. */
export function servedIds(resources: readonly PluginResource[], devices: readonly ServedDevice[]): ServedIds {
  const states = devices.map((known) => ({ ...UNJUDGED, ...known, key: deviceKey(known.device) }));
  return new Map(
    resources
      .filter(({ select }) => select !== undefined)
      .map((resource): [string, ReadonlyMap<string, readonly string[]>] => {
        const offers = takeInventory(resource, states, () => 'Healthy');
        return [resource.resource, new Map(offers.map((offer) => [offer.id, offer.devices.map(({ key }) => key)]))];
      }),
  );
}

const NO_VERDICT: Verdict = { state: 'unknown', sinceMs: 0, conditions: [] };
/** Names depend on what a device is, not on how it does. */
const UNJUDGED = { readings: Readings.NONE, processes: [], verdict: NO_VERDICT, holders: [], readAtMs: 0, stale: false };
