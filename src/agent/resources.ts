import type { ResourceDevices } from '../health/journal/ready-devices.ts';
import { kubeletHealth, type OfferPolicy } from '../health/policy/kubelet-health.ts';
import type { Clock } from '../host/clock.ts';
import { createHost } from '../host/host.ts';
import type { Resolver, Served, ServedIds } from '../join/resolve.ts';
import { createChangeLog } from '../log/changes.ts';
import type { Logger } from '../log/logger.ts';
import type { DeviceRecord } from '../model/device-record.ts';
import type { Verdict } from '../model/health.ts';
import { type PluginResource, selectorsOf } from '../model/plugin-resource.ts';
import { Readings } from '../model/readings.ts';
import type { DeviceState, Snapshot } from '../model/snapshot.ts';
import { type Offer, takeInventory } from '../plugin/offers/inventory.ts';
import { createDevicePlugin, type DevicePlugin, type DevicePluginDependencies } from '../plugin/plugin.ts';
import type { AgentSettings } from './settings.ts';

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
const UNJUDGED = { readings: Readings.NONE, processes: [], verdict: NO_VERDICT, holders: [], readAtMs: 0, stale: false };

/**
 * Finds the devices of a Kubernetes resource. Those of a resource that this agent serves are known exactly. Of others, the kubelet lists those
 * that can be allocated, and pods name those that they hold. A plugin withholds a sick device, and the list then lacks it: so each device of
 * the same family and kind that no other resource has may be of this one.
 */
export function resourceDevices(
  resource: string,
  { devices, podResources }: Pick<Snapshot, 'devices' | 'podResources'>,
  resolver: Pick<Resolver, 'resolve'>,
  served: Served | undefined,
): ResourceDevices | undefined {
  if (served !== undefined) {
    const keys = 'pool' in served ? served.pool : [...served.byId.values()].flat();
    return { devices: new Set(keys), possible: new Set(), unresolved: 0 };
  }
  const { allocatable, allocations } = podResources;
  if (allocatable === undefined) return undefined;
  const ids = new Map<string, Set<string>>();
  const add = (name: string, id: string): void => void (ids.get(name)?.add(id) ?? ids.set(name, new Set([id])));
  for (const { resource: name, deviceIds } of allocatable.devices) for (const id of deviceIds) add(name, id);
  for (const { resource: name, deviceId, claim } of allocations) if (claim === undefined) add(name, deviceId);
  const keysOf = (name: string, deviceId: string): readonly string[] =>
    resolver.resolve({ namespace: '', pod: '', container: '', resource: name, deviceId, numaNodes: [] }).devices;
  const own = [...(ids.get(resource) ?? [])].map((id) => keysOf(resource, id));
  const found = new Set(own.flat());
  const others = new Set([...ids].filter(([name]) => name !== resource).flatMap(([name, of]) => [...of].flatMap((id) => keysOf(name, id))));
  const kinds = new Set(devices.filter(({ key }) => found.has(key)).map(kindOf));
  const possible = devices.filter((state) => kinds.has(kindOf(state)) && !found.has(state.key) && !others.has(state.key));
  return {
    devices: found,
    possible: new Set(possible.map(({ key }) => key)),
    unresolved: own.filter((keys) => keys.length === 0).length,
  };
}

const kindOf = ({ device }: DeviceState): string => `${device.family}/${device.kind}`;

/** What the plugin uses of the agent's core. */
interface PluginCore extends Required<Pick<DevicePluginDependencies, 'store' | 'whyDirty'>> {
  refreshFamilies(isWanted: (family: string) => boolean): Promise<void>;
  refreshWithHolders(isWanted: (family: string) => boolean): Promise<void>;
}

/** Creates the device plugin on the agent's snapshots and verdicts. Without resources it does nothing. */
export function createAgentPlugin(
  settings: AgentSettings,
  core: PluginCore,
  policy: () => OfferPolicy,
  logger: Logger,
  clock: Clock,
): DevicePlugin {
  const { options, resources } = settings.plugin;
  warnOfResources(settings, logger);
  return createDevicePlugin({
    resources,
    options,
    store: core.store,
    access: Object.fromEntries(settings.families.map(({ family }) => [family.name, family.access?.bind(family)])),
    healthOf: (verdict) => kubeletHealth(verdict, policy()),
    dev: createHost(settings.roots, clock).dev,
    missingRetentionMs: settings.device['missing-retention'],
    // Only the families of the resource: a family that hangs must not delay the containers of another family.
    refresh: (resource) => {
      const isWanted = (family: string): boolean => isMadeOf(resource, family);
      return resource.requireClean === true ? core.refreshWithHolders(isWanted) : core.refreshFamilies(isWanted);
    },
    whyDirty: (key, sinceMs) => core.whyDirty(key, sinceMs),
    clock,
    changes: createChangeLog(logger),
  });
}

export function warnOfResources(settings: AgentSettings, logger: Logger): void {
  for (const problem of resourcesWithoutEffect(settings)) logger.warn('a resource has no devices', { problem });
}

/** Reports configured resources that will have no devices, because their families are disabled or cannot be served; one sentence each. */
export function resourcesWithoutEffect({ plugin, families }: Pick<AgentSettings, 'plugin' | 'families'>): string[] {
  return plugin.resources.flatMap(({ resource, select, requireClean }) =>
    selectorsOf(select).flatMap(({ family }) => {
      if (family === undefined) return [];
      const found = families.find((enabled) => enabled.family.name === family);
      if (found === undefined)
        return [`plugin.resources: resource "${resource}" selects from "${family}", which is not an enabled device family`];
      if (found.family.access === undefined) return [`plugin.resources: devices of "${family}" cannot be served as "${resource}"`];
      if (requireClean === true && found.family.activity?.isForHoldersOnly !== true)
        return [`plugin.resources: no container of "${resource}" can start, because the processes of "${family}" devices are not known`];
      return [];
    }),
  );
}

function isMadeOf({ select }: PluginResource, family: string): boolean {
  return selectorsOf(select).some((selector) => selector.family === undefined || selector.family === family);
}
