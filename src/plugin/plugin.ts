import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../host/clock.ts';
import type { ChangeLog } from '../log/changes.ts';
import type { DeviceAccess } from '../model/access.ts';
import type { PluginResourceStats, PluginStats } from '../model/agent-stats.ts';
import { defined } from '../model/defined.ts';
import type { Device } from '../model/device.ts';
import { overlapOf } from '../model/plugin-overlap.ts';
import type { PluginResource } from '../model/plugin-resource.ts';
import { Admission } from './allocation/allocate.ts';
import type { DeviceDirectory } from './offers/device-paths.ts';
import { type HealthRule, healthByState } from './offers/inventory.ts';
import { ResourceOffers, type SnapshotSource } from './offers/resource-offers.ts';
import type { PluginOptions } from './options.ts';
import { Registration, TIMINGS, type Timings } from './registration/registration.ts';
import { PluginService, type ResourceCounts, resourceCounts, type WhyDirty } from './service.ts';

export interface DevicePluginDependencies {
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
  /** Why a container must not start on a device, for resources that must be clean. Without it, no container of these starts. */
  readonly whyDirty?: WhyDirty;
  readonly random?: () => number;
  readonly timings?: Partial<Timings>;
}

export interface DevicePlugin {
  /** Returns immediately. Registration continues in the background until `stop`. */
  start(): void;
  /** In place of `start`, for a capture: follows the devices of the resources, and offers nothing to the kubelet. */
  follow(): void;
  /**
   * Offers these resources from now on. A resource with the same settings keeps its socket and its streams. A resource with other settings
   * is registered anew. Its counts go on. Resolves when the sockets of the old resources are removed.
   */
  offer(resources: readonly PluginResource[]): Promise<void>;
  /** Resolves when all sockets are removed and all connections are closed. */
  stop(): Promise<void>;
  stats(): PluginStats;
}

interface Part {
  readonly resource: PluginResource;
  readonly rivals: readonly PluginResource[];
  readonly counts: ResourceCounts;
  readonly offers: ResourceOffers;
  readonly service: PluginService;
  readonly registration: Registration;
}

/** Offers the configured resources to the kubelet. The resources are independent of each other. */
export function createDevicePlugin(parts: DevicePluginDependencies): DevicePlugin {
  const counts = new Map<string, ResourceCounts>();
  const admission = new Admission();
  const partsOf = (resources: readonly PluginResource[]): readonly Part[] =>
    resources.map((resource, at) => {
      const kept = counts.get(resource.resource) ?? resourceCounts();
      counts.set(resource.resource, kept);
      const rivals = resources.slice(0, at).filter((earlier) => overlapOf(earlier, resource) !== 'none');
      return (
        all.find((part) => isDeepStrictEqual([part.resource, part.rivals], [resource, rivals])) ??
        createPart(resource, rivals, kept, admission, parts)
      );
    });
  let all: readonly Part[] = [];
  all = partsOf(parts.resources);
  let isRunning = false;
  // Each change waits for the one before: the old socket of a resource must be gone before the new one is registered.
  let changed: Promise<void> = Promise.resolve();
  const change = async (resources: readonly PluginResource[]): Promise<void> => {
    const before = all;
    const next = partsOf(resources);
    await Promise.all(before.filter((part) => !next.includes(part)).map(stopPart));
    all = next;
    if (isRunning) for (const part of all) if (!before.includes(part)) startPart(part);
  };
  return {
    start() {
      isRunning = true;
      for (const part of all) startPart(part);
    },
    follow() {
      for (const { offers } of all) offers.start();
    },
    offer(resources) {
      changed = changed.then(() => change(resources));
      return changed;
    },
    async stop() {
      isRunning = false;
      await changed;
      await Promise.all(all.map(stopPart));
    },
    stats: () => ({ resources: all.map(statsOf) }),
  };
}

function startPart({ offers, registration }: Part): void {
  offers.start();
  registration.start();
}

async function stopPart({ offers, registration }: Part): Promise<void> {
  await registration.stop();
  offers.stop();
}

function createPart(
  resource: PluginResource,
  rivals: readonly PluginResource[],
  counts: ResourceCounts,
  admission: Admission,
  parts: DevicePluginDependencies,
): Part {
  const { store, clock, changes, options, dev, refresh, missingRetentionMs, healthOf = healthByState, random = Math.random } = parts;
  const canServe = (family: string): boolean => parts.access[family] !== undefined;
  const offers = new ResourceOffers(resource, {
    store,
    clock,
    healthOf,
    canServe,
    missingRetentionMs,
    rivals,
    ...defined({ dev }),
  });
  const service = new PluginService({
    offers,
    counts,
    admission,
    clock,
    healthOf,
    access: (device) => parts.access[device.family]?.(device),
    ...defined({ whyDirty: parts.whyDirty, refresh: refresh && (() => refresh(resource)) }),
  });
  const timings = { ...TIMINGS, ...parts.timings };
  const registration = new Registration({ offers, service, results: counts.registrations, clock, changes, options, random, timings });
  return { resource, rivals, counts, offers, service, registration };
}

function statsOf({ counts, offers, service, registration }: Part): PluginResourceStats {
  const current = offers.current();
  const healthy = current.filter(({ health }) => health === 'Healthy').length;
  return {
    resource: offers.resource.resource,
    registered: service.streams > 0 && !registration.offer.isDropped,
    streams: service.streams,
    healthy,
    unhealthy: current.length - healthy,
    registrations: counts.registrations.all(),
    ...defined({ difference: registration.offer.difference, lastUpdateMs: service.lastList?.atMs }),
    allocations: counts.allocations.all(),
    calls: counts.calls.list(),
  };
}
