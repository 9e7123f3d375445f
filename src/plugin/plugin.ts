import type { Clock } from '../host/clock.ts';
import type { ChangeLog } from '../log/changes.ts';
import type { DeviceAccess } from '../model/access.ts';
import type { Device } from '../model/device.ts';
import type { PluginResource } from '../model/plugin-resource.ts';
import type { PluginResourceStats, PluginStats } from '../model/plugin-stats.ts';
import type { DeviceDirectory } from './offers/device-paths.ts';
import { type HealthRule, healthByState } from './offers/inventory.ts';
import { ResourceOffers, type SnapshotSource } from './offers/resource-offers.ts';
import type { PluginOptions } from './options.ts';
import { Registration, TIMINGS, type Timings } from './registration/registration.ts';
import { PluginService } from './service.ts';

export interface DevicePluginParts {
  readonly resources: readonly PluginResource[];
  readonly store: SnapshotSource;
  /** Keyed by family. Devices of an absent family cannot be allocated. */
  readonly access: Readonly<Record<string, ((device: Device) => DeviceAccess) | undefined>>;
  readonly clock: Clock;
  readonly changes: ChangeLog;
  readonly options: PluginOptions;
  /** Maps a verdict to the health that the kubelet gets. Default: `unknown` is unhealthy. */
  readonly healthOf?: HealthRule;
  /** Access to `/dev`, for resources made of paths. */
  readonly dev?: DeviceDirectory;
  /** How long an absent device node is still offered as unhealthy. */
  readonly missingRetentionMs: number;
  /** Reads the hardware again, for resources that are checked before a container starts. */
  readonly refresh?: (resource: PluginResource) => Promise<unknown>;
  readonly random?: () => number;
  readonly timings?: Partial<Timings>;
}

export interface DevicePlugin {
  /** Returns immediately. Registration continues in the background until `stop`. */
  start(): void;
  /** Resolves when all sockets are removed and all connections are closed. */
  stop(): Promise<void>;
  stats(): PluginStats;
}

interface Part {
  readonly offers: ResourceOffers;
  readonly service: PluginService;
  readonly registration: Registration;
}

/** Offers the configured resources to the kubelet. The resources are independent of each other. */
export function createDevicePlugin(parts: DevicePluginParts): DevicePlugin {
  const all = parts.resources.map((resource) => createPart(resource, parts));
  return {
    start() {
      for (const { offers, registration } of all) {
        offers.start();
        registration.start();
      }
    },
    async stop() {
      await Promise.all(all.map(({ registration }) => registration.stop()));
      for (const { offers } of all) offers.stop();
    },
    stats: () => ({ resources: all.map(statsOf) }),
  };
}

function createPart(resource: PluginResource, parts: DevicePluginParts): Part {
  const { store, clock, changes, options, dev, refresh, missingRetentionMs, healthOf = healthByState, random = Math.random } = parts;
  const offers = new ResourceOffers(resource, { store, clock, healthOf, missingRetentionMs, ...(dev === undefined ? {} : { dev }) });
  const service = new PluginService({
    offers,
    clock,
    healthOf,
    access: (device) => parts.access[device.family]?.(device),
    ...(refresh === undefined ? {} : { refresh: () => refresh(resource) }),
  });
  const timings = { ...TIMINGS, ...parts.timings };
  const registration = new Registration({ offers, service, clock, changes, options, random, timings });
  return { offers, service, registration };
}

function statsOf({ offers, service, registration }: Part): PluginResourceStats {
  const current = offers.current();
  const healthy = current.filter(({ health }) => health === 'Healthy').length;
  return {
    resource: offers.resource.resource,
    registered: service.streams > 0 && !registration.isDropped,
    streams: service.streams,
    healthy,
    unhealthy: current.length - healthy,
    registrations: registration.results.all(),
    ...(service.lastList === undefined ? {} : { lastUpdateMs: service.lastList.atMs }),
    allocations: service.allocations.all(),
    calls: service.times.list(),
  };
}
