import { kubeletHealth, type OfferPolicy } from '../health/policy/kubelet-health.ts';
import type { Clock } from '../host/clock.ts';
import { createHost } from '../host/host.ts';
import { createChangeLog } from '../log/changes.ts';
import type { Logger } from '../log/logger.ts';
import { type PluginResource, selectorsOf } from '../model/plugin-resource.ts';
import { createDevicePlugin, type DevicePlugin } from '../plugin/plugin.ts';
import type { AgentCore } from './core.ts';
import type { AgentSettings } from './settings.ts';

/** Creates the device plugin on the agent's snapshots and verdicts. Without resources it does nothing. */
export function createAgentPlugin(
  settings: AgentSettings,
  core: Pick<AgentCore, 'store' | 'refreshFamilies' | 'refreshWithHolders' | 'whyDirty'>,
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
