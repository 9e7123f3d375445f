import type { Clock } from '../host/clock.ts';
import type { ChangeLog } from '../log/changes.ts';
import type { DeviceAccess } from '../model/access.ts';
import type { Device } from '../model/device.ts';
import type { PluginResource } from '../model/plugin-resource.ts';
import type { PluginResourceStats, PluginStats } from '../model/plugin-stats.ts';
import type { DeviceDirectory } from './device-paths.ts';
import { type Tell, tellByState } from './inventory.ts';
import { Lifecycle, TIMINGS, type Timings } from './lifecycle.ts';
import type { PluginOptions } from './options.ts';
import { PluginService } from './service.ts';
import { type SnapshotSource, Supply } from './supply.ts';

export interface DevicePluginParts {
  readonly resources: readonly PluginResource[];
  readonly store: SnapshotSource;
  /** Per family; one that is absent has devices that cannot be handed out. */
  readonly access: Readonly<Record<string, ((device: Device) => DeviceAccess) | undefined>>;
  readonly clock: Clock;
  readonly changes: ChangeLog;
  readonly options: PluginOptions;
  /** What the kubelet is told of a verdict. Default: unknown is unhealthy. */
  readonly tell?: Tell;
  /** `/dev`, for resources made of paths. */
  readonly dev?: DeviceDirectory;
  /** How long a device node that went away is still offered, as unhealthy. */
  readonly missingRetentionMs: number;
  /** Has the hardware read again, for resources that are checked before a container starts. */
  readonly refresh?: (resource: PluginResource) => Promise<unknown>;
  readonly random?: () => number;
  readonly timings?: Partial<Timings>;
}

export interface DevicePlugin {
  /** Comes back at once: registering goes on for as long as the plugin runs. */
  start(): void;
  /** Comes back when no socket is left and nothing is open. */
  stop(): Promise<void>;
  stats(): PluginStats;
}

interface Part {
  readonly supply: Supply;
  readonly service: PluginService;
  readonly lifecycle: Lifecycle;
}

/** Offers the configured resources to the kubelet, each by itself. */
export function createDevicePlugin(parts: DevicePluginParts): DevicePlugin {
  const all = parts.resources.map((resource) => createPart(resource, parts));
  return {
    start() {
      for (const { supply, lifecycle } of all) {
        supply.start();
        lifecycle.start();
      }
    },
    async stop() {
      await Promise.all(all.map(({ lifecycle }) => lifecycle.stop()));
      for (const { supply } of all) supply.stop();
    },
    stats: () => ({ resources: all.map(statsOf) }),
  };
}

function createPart(resource: PluginResource, parts: DevicePluginParts): Part {
  const { store, clock, changes, options, dev, refresh } = parts;
  const supply = new Supply(resource, {
    store,
    clock,
    access: (device) => parts.access[device.family]?.(device),
    tell: parts.tell ?? tellByState,
    missingRetentionMs: parts.missingRetentionMs,
    ...(dev === undefined ? {} : { dev }),
  });
  const service = new PluginService({ supply, clock, ...(refresh === undefined ? {} : { refresh: () => refresh(resource) }) });
  const timings = { ...TIMINGS, ...parts.timings };
  const lifecycle = new Lifecycle({ supply, service, clock, changes, options, random: parts.random ?? Math.random, timings });
  return { supply, service, lifecycle };
}

function statsOf({ supply, service, lifecycle }: Part): PluginResourceStats {
  const offers = supply.offers();
  const healthy = offers.filter(({ told }) => told === 'Healthy').length;
  return {
    resource: supply.resource.resource,
    registered: service.streams > 0 && !lifecycle.following.isDropped,
    streams: service.streams,
    healthy,
    unhealthy: offers.length - healthy,
    registrations: lifecycle.registrations.counts(),
    ...(service.told === undefined ? {} : { lastUpdateMs: service.told.atMs }),
    allocations: service.allocations.counts(),
    calls: service.times.list(),
  };
}
